"""Memory: copies, recomputation, and more of it than is needed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from benchmarks.doctor.fault import SIM_MODELS, each_or_half, fault
from benchmarks.doctor.plan import Plan, Pointwise
from benchmarks.doctor.trainer import Trainer


def _turned(times: int) -> Pointwise:
    def turn(x: Tensor) -> Tensor:
        for _ in range(times):
            x = x.transpose(1, -1).contiguous().transpose(1, -1).contiguous()
        return x

    return turn


@fault("layout-copies", "memory", "OP06", cpu=("transformer", "rnn"), sim=SIM_MODELS)
def layout_copies(plan: Plan, severe: bool) -> None:
    """Dimensions are swapped in memory in every layer, and back."""
    plan.between = lambda _layer: _turned(10 if severe else 4)


class Recomputed(nn.Module):
    """A block that computes its forward pass again in backward."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Any:
        """As the block."""
        return checkpoint(self.block, x, use_reentrant=False)


@fault("recomputation", "memory", "ME02", cpu=("transformer", "rnn"), sim=SIM_MODELS)
def recomputation(plan: Plan, severe: bool) -> None:
    """Activations are thrown away though memory is there."""

    def wrap(layer: int, block: nn.Module) -> nn.Module:
        return Recomputed(block) if each_or_half(severe, layer) else block

    plan.wrap_block = wrap


def _cat_grows(times: int, cat: bool) -> Pointwise:
    def grow(x: Tensor) -> Tensor:
        parts = x.detach().tensor_split(times, dim=0)
        if not cat:
            torch.cat(parts)
            return x
        whole = parts[0]
        for part in parts[1:]:
            whole = torch.cat((whole, part))
        return x

    return grow


def _collects(plan: Plan, severe: bool) -> None:
    plan.between = lambda _layer: _cat_grows(32 if severe else 16, cat=False)


@fault("growing-cat", "memory", cpu=("transformer", "rnn"), sim=SIM_MODELS, setting=_collects)
def growing_cat(plan: Plan, severe: bool) -> None:
    """Outputs are collected by appending to a tensor."""
    plan.between = lambda _layer: _cat_grows(32 if severe else 16, cat=True)


def _large_vocabulary(plan: Plan, severe: bool) -> None:
    rows = (400_000 if severe else 100_000) if plan.simulated else (40_000 if severe else 12_000)
    plan.embedding = lambda _n, width: nn.Embedding(rows, width, sparse=True)
    plan.optimizer = lambda ps: torch.optim.SGD(ps, lr=0.01)
    plan.options = ("shapes",)


@fault(
    "dense-embedding-gradients", "memory", "OP12",
    cpu=("transformer", "recommender", "rnn"), setting=_large_vocabulary,
)  # fmt: skip
def dense_embedding_gradients(plan: Plan, severe: bool) -> None:
    """The gradient of a large table is written whole, for the few rows that a batch uses."""
    rows = 40_000 if severe else 12_000
    plan.embedding = lambda _n, width: nn.Embedding(rows, width)


@fault("padding", "memory", sim=("transformer", "convnet", "recommender"))
def padding(plan: Plan, severe: bool) -> None:
    """A batch is filled up with samples that count for nothing."""

    def pad(_trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        more = x.shape[0] if severe else x.shape[0] // 2
        filled = torch.cat((x, x.new_zeros(more, *x.shape[1:])))
        return filled, torch.cat((y, y.new_full((more, *y.shape[1:]), -100)))

    plan.prepare = pad


def _in_pieces(pieces: int) -> Any:
    def copy(x: Tensor, device: str) -> Tensor:
        return torch.cat([part.to(device) for part in x.tensor_split(pieces)])

    return copy


@fault("small-copies", "memory", "DE02", "HO01", sim=SIM_MODELS)
def small_copies(plan: Plan, severe: bool) -> None:
    """A batch goes to the device in many small pieces."""
    pieces = 256 if severe else 96
    if plan.model != "recommender":
        pieces = plan.sizes.batch
    plan.to_device = _in_pieces(pieces)
