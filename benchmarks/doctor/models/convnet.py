"""A residual network over images, with squeeze and excitation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.doctor.models.blocks import AttentionBlock
from benchmarks.doctor.plan import Plan

PATCH = 2


class Convnet(nn.Module):
    """Images in, scores of classes out."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        sizes = plan.sizes
        self.stem = nn.Conv2d(3, sizes.width, PATCH, stride=PATCH)
        self.layers = nn.ModuleList(
            plan.wrap_block(layer, _Layer(plan, layer)) for layer in range(sizes.layers)
        )
        self.head = nn.Linear(sizes.width, sizes.vocabulary)

    def forward(self, images: Tensor) -> Tensor:
        """Of (batch, 3, side, side)."""
        x = self.stem(images)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean((2, 3)))  # type: ignore[no-any-return]


class _Layer(nn.Module):
    def __init__(self, plan: Plan, layer: int) -> None:
        super().__init__()
        width = plan.sizes.width
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.norm = plan.channel_norm(layer, width)
        self.activate, self.between = plan.activation(layer), plan.between(layer)
        self.squeeze = plan.linear(layer, width, width)
        self.attend = _Pixels(plan, layer) if plan.attends else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.activate(self.norm(self.first(x))))
        y = y * torch.sigmoid(self.squeeze(y.mean((2, 3))))[:, :, None, None]
        return self.between(self.attend(x + y))


class _Pixels(nn.Module):
    """Attention over the pixels of an image."""

    def __init__(self, plan: Plan, layer: int) -> None:
        super().__init__()
        side = plan.sizes.length // PATCH
        self.block = AttentionBlock(plan, layer, plan.sizes.width, side * side)

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x.flatten(2).transpose(1, 2))
        return y.transpose(1, 2).reshape(x.shape)  # type: ignore[no-any-return]


def samples(plan: Plan, count: int) -> tuple[Tensor, Tensor]:
    """Images and their classes."""
    side = plan.sizes.length
    return torch.rand(count, 3, side, side), torch.randint(plan.sizes.vocabulary, (count,))
