"""Blocks that several models have, put together from a plan's pieces."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from benchmarks.doctor.plan import Plan


class MlpBlock(nn.Module):
    """Norm, two linear layers with an activation between them, added to what came in."""

    def __init__(self, plan: Plan, layer: int, width: int, growth: int = 4) -> None:
        super().__init__()
        self.norm = plan.norm(layer, width)
        self.up = plan.linear(layer, width, growth * width)
        self.down = plan.linear(layer, growth * width, width)
        self.activate = plan.activation(layer)
        self.between = plan.between(layer)

    def forward(self, x: Tensor) -> Tensor:
        """Of (..., width)."""
        y: Tensor = self.down(self.activate(self.up(self.norm(x))))
        return self.between(x + y)


class AttentionBlock(nn.Module):
    """Norm and causal attention over positions, added to what came in."""

    def __init__(self, plan: Plan, layer: int, width: int, length: int) -> None:
        super().__init__()
        self.heads = plan.sizes.heads
        self.norm = plan.norm(layer, width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attend = plan.attention(layer)
        self.make_mask = plan.mask
        self.register_buffer("mask", torch.full((length, length), -math.inf).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        """Of (batch, length, width)."""
        batch, length, width = x.shape
        parts = self.project(self.norm(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mask = self.mask if self.make_mask is None else self.make_mask(x)
        y = self.attend(q, k, v, mask).transpose(1, 2).reshape(batch, length, width)
        return x + self.out(y)  # type: ignore[no-any-return]


def blocks(plan: Plan, width: int) -> nn.Sequential:
    """As many of the first kind as the plan has layers."""
    made = [
        plan.wrap_block(layer, MlpBlock(plan, layer, width)) for layer in range(plan.sizes.layers)
    ]
    return nn.Sequential(*made)
