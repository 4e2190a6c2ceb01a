"""Two ranks on the simulated device that exchange gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor, nn

from benchmarks.doctor.fault import SIM_MODELS, fault
from benchmarks.doctor.plan import Plan, Sizes
from benchmarks.doctor.trainer import Trainer

BUCKET_BYTES = 25 << 20


class Overlapped:
    """Reduces gradients in buckets, each as soon as backward has made all that is in it.

    What DistributedDataParallel does; that one compares values of its own across ranks, and here
    the simulated device computes none.
    """

    def __init__(self, model: nn.Module, bucket_bytes: int) -> None:
        self.bucket_bytes = bucket_bytes
        self.bucket: list[Tensor] = []
        self.going: list[tuple[Any, Tensor, list[Tensor]]] = []
        self.is_held = False
        self.count, self.size = 0, 0
        self.parameters = [one for one in model.parameters() if one.requires_grad]
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self._made)

    def _made(self, parameter: Tensor) -> None:
        if self.is_held or parameter.grad is None:
            return
        self.bucket.append(parameter.grad)
        self.size += parameter.grad.numel() * parameter.grad.element_size()
        self.count += 1
        if self.size >= self.bucket_bytes or self.count == len(self.parameters):
            self._send()

    def _send(self) -> None:
        flat = torch.cat([one.flatten() for one in self.bucket])
        self.going.append((dist.all_reduce(flat, async_op=True), flat, self.bucket))
        self.bucket, self.size = [], 0

    def finish(self) -> None:
        """Wait for all of them, and write the means."""
        for handle, flat, gradients in self.going:
            handle.wait()
            parts = flat.split([one.numel() for one in gradients])
            shaped = [p.view_as(g) for p, g in zip(parts, gradients, strict=True)]
            torch._foreach_copy_(gradients, shaped)
        self.going, self.count = [], 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Only add gradients up."""
        self.is_held = True
        yield
        self.is_held = False


REDUCERS: WeakKeyDictionary[Trainer, Overlapped] = WeakKeyDictionary()


def _reducer(trainer: Trainer) -> Overlapped:
    if trainer not in REDUCERS:
        REDUCERS[trainer] = Overlapped(trainer.model, BUCKET_BYTES)
    return REDUCERS[trainer]


def _start(trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    _reducer(trainer)
    return x, y


SIZES = {
    "convnet": Sizes(batch=96, length=32, width=1024, layers=3, vocabulary=64),
    "transformer": Sizes(4, 1024, 2048, 4, 4096, heads=16),
    "recommender": Sizes(batch=6144, length=8, width=2048, layers=3, vocabulary=16384),
}
"""Of which the gradients are large beside the activations."""


def _two_ranks(plan: Plan, _severe: bool) -> None:
    plan.ranks = 2
    plan.sizes = SIZES[plan.model]
    plan.prepare = _start
    plan.before_update = [lambda trainer: _reducer(trainer).finish()]


def _alone(_trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x, y


@fault("reduction-after-backward", "ranks", "CM04", "CM01", sim=SIM_MODELS, setting=_two_ranks)
def reduction_after_backward(plan: Plan, severe: bool) -> None:
    """All gradients are reduced when backward has ended."""
    plan.prepare = _alone
    plan.before_update = [_reduce_each if severe else _reduce_flat]


def _gradients(trainer: Trainer) -> list[Tensor]:
    return [p.grad for p in trainer.model.parameters() if p.grad is not None]


def _reduce_each(trainer: Trainer) -> None:
    for gradient in _gradients(trainer):
        dist.all_reduce(gradient)


def _reduce_flat(trainer: Trainer) -> None:
    gradients = _gradients(trainer)
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
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

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x)
        return y + torch.cat(list(self.scales)).mean()


@fault("small-reductions", "ranks", "CM02", "CM04", "CM01", sim=SIM_MODELS,
       setting=_many_small_layers)  # fmt: skip
def small_reductions(plan: Plan, _severe: bool) -> None:
    """One reduction for each parameter."""
    plan.prepare = _alone
    plan.before_update = [_reduce_each]


def _accumulating(plan: Plan, severe: bool) -> None:
    _two_ranks(plan, severe)
    plan.micro_batches = 4 if severe else 2
    plan.without_sync = lambda trainer: _reducer(trainer).held()


@fault("reduction-each-micro-batch", "ranks", "CM05", "CM01", sim=SIM_MODELS,
       setting=_accumulating)  # fmt: skip
def reduction_each_micro_batch(plan: Plan, _severe: bool) -> None:
    """Gradients are reduced after each pass, though they are only added up."""

    @contextmanager
    def reduced(trainer: Trainer) -> Iterator[None]:
        yield
        _reducer(trainer).finish()

    plan.without_sync = reduced
