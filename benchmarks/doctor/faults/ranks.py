"""Two ranks on the simulated device that exchange gradients."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from benchmarks.doctor.fault import SIM_MODELS, fault
from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer


def shared(megabytes: float) -> Any:
    """Gradients go in buckets during backward."""

    def wrap(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(model, bucket_cap_mb=megabytes)

    return wrap


def _two_ranks(plan: Plan, _severe: bool) -> None:
    plan.ranks = 2
    plan.wrap_model = shared(25)


@fault("reduction-after-backward", "ranks", "CM04", "CM01", sim=SIM_MODELS, setting=_two_ranks)
def reduction_after_backward(plan: Plan, severe: bool) -> None:
    """All gradients are reduced when backward has ended."""
    plan.wrap_model = lambda model: model
    plan.before_update.append(_reduce_each if severe else _reduce_flat)


def _gradients(trainer: Trainer) -> list[torch.Tensor]:
    return [p.grad for p in trainer.model.parameters() if p.grad is not None]


def _reduce_each(trainer: Trainer) -> None:
    for gradient in _gradients(trainer):
        dist.all_reduce(gradient)
        gradient.div_(2)


def _reduce_flat(trainer: Trainer) -> None:
    gradients = _gradients(trainer)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat.div_(2)
    parts = flat.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def _many_small_layers(plan: Plan, severe: bool) -> None:
    _two_ranks(plan, severe)
    plan.wrap_block = lambda _layer, block: _with_scales(block, 120 if severe else 60)


def _with_scales(block: nn.Module, count: int) -> nn.Module:
    return _Scaled(block, count)


class _Scaled(nn.Module):
    """A block with many small parameters."""

    def __init__(self, block: nn.Module, count: int) -> None:
        super().__init__()
        self.block = block
        self.scales = nn.ParameterList(nn.Parameter(torch.zeros(8)) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.block(x)
        return y + torch.cat(list(self.scales)).mean()


@fault("small-reductions", "ranks", "CM02", "CM04", "CM01", sim=SIM_MODELS,
       setting=_many_small_layers)  # fmt: skip
def small_reductions(plan: Plan, _severe: bool) -> None:
    """One reduction for each parameter."""
    plan.wrap_model = lambda model: model
    plan.before_update.append(_reduce_each)


def _hold(trainer: Trainer) -> AbstractContextManager[object]:
    run = trainer.run
    return run.no_sync() if isinstance(run, DistributedDataParallel) else nullcontext()


def _accumulating(plan: Plan, severe: bool) -> None:
    _two_ranks(plan, severe)
    plan.micro_batches = 4 if severe else 2
    plan.without_sync = _hold


@fault("reduction-each-micro-batch", "ranks", "CM05", "CM01", sim=SIM_MODELS,
       setting=_accumulating)  # fmt: skip
def reduction_each_micro_batch(plan: Plan, _severe: bool) -> None:
    """Gradients are reduced after each pass, though they are only added up."""
    plan.without_sync = lambda _: nullcontext()
