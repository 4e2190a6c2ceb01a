"""Faults of a NeuronCore: one program an op, ops that it lacks, ever new programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.doctor.attention import attend
from benchmarks.doctor.fault import SIM_MODELS, fault
from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer

BATCH = {"convnet": 32, "transformer": 2, "recommender": 512}
LENGTH = {"convnet": 32, "transformer": 128, "recommender": 8}
"""Of programs that the host cannot launch fast enough op by op."""


def compiled(model: nn.Module) -> Any:
    """One program for forward, one for backward."""
    return torch.compile(model, backend="neuron")


def _small_and_compiled(plan: Plan, _severe: bool) -> None:
    sizes = plan.sizes
    plan.sizes = replace(sizes, batch=BATCH[plan.model], length=LENGTH[plan.model], layers=4)
    plan.wrap_model = compiled
    plan.attention = lambda _layer: attend


@fault("program-an-op", "neuron", "NE02", "HO02", sim=SIM_MODELS,
       setting=_small_and_compiled)  # fmt: skip
def program_an_op(plan: Plan, severe: bool) -> None:
    """Nothing is compiled, or one layer of four."""
    plan.wrap_model = lambda model: model
    if not severe:
        plan.wrap_block = lambda layer, block: compiled(block) if layer == 0 else block


@fault("blocks-compiled-apart", "neuron", "NE05", "NE02", "CO03",
       sim=SIM_MODELS, setting=_small_and_compiled)  # fmt: skip
def blocks_compiled_apart(plan: Plan, severe: bool) -> None:
    """Every block is a program of its own, and the core changes between them."""
    plan.wrap_model = lambda model: model
    plan.wrap_block = lambda layer, block: compiled(block) if severe or layer % 2 else block


@fault("fallback-to-cpu", "neuron", "NE01", sim=SIM_MODELS)
def fallback_to_cpu(plan: Plan, severe: bool) -> None:
    """An op that the device lacks runs on the host."""
    times = 3 if severe else 1

    def show(trainer: Trainer) -> None:
        for parameter in list(trainer.model.parameters()) * times:
            if parameter.grad is not None:
                torch.fft.rfft(parameter.grad.flatten()[:65536].float())

    plan.before_update.append(show)


@fault("ever-new-shapes", "neuron", "NE03", sim=SIM_MODELS)
def ever_new_shapes(plan: Plan, severe: bool) -> None:
    """Batches of ever new sizes, each of which is compiled."""
    every = 1 if severe else 3

    def cut(trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        fewer = 1 + trainer.number // every if trainer.number % every == 0 else 0
        kept = max(x.shape[0] - fewer, 1)
        return x[:kept], y[:kept]

    plan.prepare = cut
