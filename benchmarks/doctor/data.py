"""Samples for each model, and the loader that makes batches of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from benchmarks.doctor.models import convnet, recommender, transformer
from benchmarks.doctor.plan import Plan

SAMPLES = {
    "convnet": convnet.samples,
    "transformer": transformer.samples,
    "recommender": recommender.samples,
    "rnn": transformer.samples,
}
BATCHES = 40
"""In an epoch; no program runs as many steps."""


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """The same few samples again and again, each handed to the plan's piece of code."""

    def __init__(self, plan: Plan) -> None:
        self.inputs, self.targets = SAMPLES[plan.model](plan, min(plan.sizes.batch, 64))
        self.change = plan.sample
        self.count = BATCHES * plan.sizes.batch

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        at = index % len(self.inputs)
        return self.change(self.inputs[at]), self.targets[at]


class Ready(Dataset[tuple[Tensor, Tensor]]):
    """Whole batches, made once."""

    def __init__(self, plan: Plan) -> None:
        self.batch = SAMPLES[plan.model](plan, plan.sizes.batch)

    def __len__(self) -> int:
        return BATCHES

    def __getitem__(self, _index: int) -> tuple[Tensor, Tensor]:
        return self.batch


def loader(plan: Plan) -> Iterator[Any]:
    """Batches without end."""
    sampled = plan.sampled
    made: DataLoader[Any] = DataLoader(
        Samples(plan) if sampled else Ready(plan),
        plan.sizes.batch if sampled else None,
        num_workers=plan.workers,
        collate_fn=plan.collate if sampled else None,
        persistent_workers=plan.workers > 0,
        multiprocessing_context="fork" if plan.workers else None,
    )
    while True:
        yield from made


def seed() -> None:
    """The same numbers each time."""
    torch.manual_seed(0)
