"""What the host does besides launching work."""

from __future__ import annotations

import gc
import io
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.doctor.fault import SIM_MODELS, fault
from benchmarks.doctor.plan import Plan, Pointwise
from benchmarks.doctor.trainer import Trainer

MODELS = ("convnet", "transformer", "rnn")


def _recorded_with_stacks(plan: Plan, _severe: bool) -> None:
    plan.options = ("stack",)


@fault("python-in-step", "host", "HO03", cpu=MODELS)
def python_in_step(plan: Plan, severe: bool) -> None:
    """Metrics are written as JSON every step."""
    kept = [{"number": number} for number in range(9_000 if severe else 3_000)]
    plan.after_step.append(lambda _: (json.dumps(kept), None)[1])


KEPT: list[dict[str, int]] = []
"""What a large program holds."""


@fault("gc-in-step", "host", "HO04", cpu=MODELS, setting=_recorded_with_stacks)
def gc_in_step(plan: Plan, severe: bool) -> None:
    """Garbage is collected by hand after each step."""
    KEPT.extend({"number": number} for number in range(150_000 if severe else 20_000))
    plan.after_step.append(lambda _: (gc.collect(), None)[1])


@fault("checkpoint-each-step", "host", "HO08", cpu=MODELS, setting=_recorded_with_stacks)
def checkpoint_each_step(plan: Plan, severe: bool) -> None:
    """The model is saved in every step."""

    def save(trainer: Trainer) -> None:
        for _ in range(3 if severe else 1):
            with tempfile.TemporaryFile() as file:
                torch.save(trainer.optimizer.state_dict(), file)
                torch.save(trainer.model.state_dict(), io.BytesIO())

    plan.after_step.append(save)


@contextmanager
def _anomalies() -> Iterator[None]:
    with torch.autograd.set_detect_anomaly(True):
        yield


def _deeper(plan: Plan, severe: bool) -> None:
    plan.sizes = replace(plan.sizes, layers=6 if severe else 2)


@fault("anomaly-detection", "host", "HO07", cpu=MODELS, setting=_deeper)
def anomaly_detection(plan: Plan, _severe: bool) -> None:
    """Debugging was left on, in a deep model or a shallow one."""
    plan.around_step = _anomalies


@fault("too-many-threads", "host", "HO05", cpu=MODELS, clock="wall")
def too_many_threads(plan: Plan, severe: bool) -> None:
    """More threads than processors."""
    plan.threads = 16 if severe else 6


def _read(times: int) -> Pointwise:
    def read(x: Tensor) -> Tensor:
        for _ in range(times):
            x.detach().flatten()[:64].sum().item()
        return x

    return read


def _not_read(times: int) -> Pointwise:
    def average(x: Tensor) -> Tensor:
        for _ in range(times):
            x.detach().flatten()[:64].sum()
        return x

    return average


def _with_averages(plan: Plan, severe: bool) -> None:
    plan.between = lambda _layer: _not_read(16 if severe else 8)


@fault("item-in-layers", "host", "HO01", sim=SIM_MODELS, setting=_with_averages)
def item_in_layers(plan: Plan, severe: bool) -> None:
    """Statistics of activations are read on the host."""
    plan.between = lambda _layer: _read(16 if severe else 8)


@fault("printing-values", "host", "HO06", "HO01", sim=SIM_MODELS)
def printing_values(plan: Plan, severe: bool) -> None:
    """A few numbers of the gradients are printed one at a time."""

    def show(trainer: Trainer) -> None:
        for parameter in list(trainer.model.parameters())[:4]:
            values = parameter.detach().flatten()[: 64 if severe else 24]
            print(sum(float(value) for value in values))

    plan.after_step.append(show)
