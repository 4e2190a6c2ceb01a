"""RMSNorm, written three ways that compute the same.

RMSNorm divides each row by the root of the mean of its squares and scales every column:
``y = x / sqrt(mean(x * x) + eps) * weight`` (Zhang and Sennrich, 2019).
"""

from __future__ import annotations

import torch
from torch import nn

EPS = 1e-6


class OpByOp(nn.Module):
    """As people first write it: each line is an op of its own, and each op reads and writes HBM."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to (rows, width)."""
        squares = x.pow(2)
        mean = squares.mean(-1, keepdim=True)
        scale = torch.rsqrt(mean + EPS)
        return x * scale * self.weight


class Fused(nn.Module):
    """One op for all of it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, width) to (rows, width)."""
        return torch.rms_norm(x, self.weight.shape, self.weight, EPS)


def compiled(width: int, backend: str) -> nn.Module:
    """The first way, given to a compiler."""
    module: nn.Module = torch.compile(OpByOp(width), backend=backend)  # type: ignore[assignment]
    return module
