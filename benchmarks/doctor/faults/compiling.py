"""torch.compile, in pieces or again and again. Its backend here is torch's own ops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.doctor.fault import fault
from benchmarks.doctor.plan import Plan, Pointwise
from benchmarks.doctor.trainer import Trainer

MODELS = ("convnet", "transformer", "recommender")


def _compiled(plan: Plan, _severe: bool) -> None:
    plan.wrap_model = compiled
    plan.warm_up = 4


def compiled(model: nn.Module) -> Any:
    """Traced, and run by torch's own ops."""
    torch._dynamo.config.cache_size_limit = 64
    return torch.compile(model, backend="aot_eager", dynamic=False)


def _break(times: int) -> Pointwise:
    def look(x: Tensor) -> Tensor:
        for _ in range(times):
            torch._dynamo.graph_break()
            json_like(3000)
        return x

    return look


@torch._dynamo.disable
def json_like(number: int) -> str:
    """Something that cannot be traced."""
    return ",".join(str(one) for one in range(number))


@fault("graph-breaks", "compiling", "CO03", cpu=MODELS, setting=_compiled)
def graph_breaks(plan: Plan, severe: bool) -> None:
    """Python that cannot be traced, between layers."""
    plan.between = lambda layer: _break(2) if severe or layer == 0 else lambda x: x


def _other_batch(every: int) -> Any:
    def cut(trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        number = trainer.number
        fewer = number // every if number % every == 0 else 0
        kept = max(x.shape[0] - fewer % x.shape[0], 1)
        return x[:kept], y[:kept]

    return cut


@fault("recompilation", "compiling", "CO02", cpu=MODELS, setting=_compiled)
def recompilation(plan: Plan, severe: bool) -> None:
    """Batches of ever new sizes."""
    plan.prepare = _other_batch(2 if severe else 4)


class Late(nn.Module):
    """Compiled only after some calls."""

    def __init__(self, model: nn.Module, calls: int) -> None:
        super().__init__()
        self.run: Any = model
        self.left = calls

    def forward(self, x: Tensor) -> Any:
        """As the model."""
        self.left -= 1
        if self.left == 0:
            self.run = compiled(self.run)
        return self.run(x)


@fault("compiling-recorded", "compiling", "CO01", cpu=MODELS, costs=False)
def compiling_recorded(plan: Plan, severe: bool) -> None:
    """The first steps of a compiled model are recorded."""
    plan.wrap_model = lambda model: Late(model, 6 if severe else 9)
    plan.warm_up = 4


@fault("warm-up-recorded", "compiling", "CA02", cpu=MODELS, costs=False)
def warm_up_recorded(plan: Plan, severe: bool) -> None:
    """The first steps are recorded, with all that happens once."""
    plan.warm_up = 0

    def first_time(trainer: Trainer) -> None:
        if trainer.number == 1:
            torch.rand(3_000_000 if severe else 1_500_000).sort()

    plan.before_update.append(first_time)
