"""The input pipeline."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import default_collate

from benchmarks.doctor.fault import fault
from benchmarks.doctor.plan import Plan
from benchmarks.doctor.trainer import Trainer

MODELS = ("convnet", "transformer", "rnn")
"""Whose batches are of few samples."""


def _recorded_with_stacks(plan: Plan, _severe: bool) -> None:
    plan.options = ("stack",)
    plan.sampled = True


def tokenize(loops: int) -> Any:
    """Looks at characters one by one."""

    def look(x: Tensor) -> Tensor:
        total = 0
        for number in range(loops):
            total += number % 7
        return x if total >= 0 else -x

    return look


@fault("slow-sample-code", "loading", "IN03", "IN02", cpu=MODELS, setting=_recorded_with_stacks)
def slow_sample_code(plan: Plan, severe: bool) -> None:
    """Python over each element of each sample."""
    plan.sample = tokenize(20_000 if severe else 6_000)


def read_from_disk(seconds: float) -> Any:
    """Storage that takes its time."""

    def read(x: Tensor) -> Tensor:
        time.sleep(seconds)
        return x

    return read


def _slow_storage(plan: Plan, severe: bool) -> None:
    plan.sample = read_from_disk(0.004 if severe else 0.0015)
    plan.workers = 4
    plan.sampled = True


@fault(
    "single-process-loading", "loading", "IN02", cpu=MODELS, setting=_slow_storage,
    clock="wall", apart=True,
)  # fmt: skip
def single_process_loading(plan: Plan, _severe: bool) -> None:
    """Samples come from slow storage, and the main thread waits for each."""
    plan.workers = 0


def _slower_storage(plan: Plan, severe: bool) -> None:
    plan.sample = read_from_disk(0.016 if severe else 0.009)
    plan.workers = 8
    plan.sampled = True


@fault(
    "too-few-workers", "loading", "IN05", "IN01", cpu=MODELS, setting=_slower_storage,
    clock="wall", apart=True,
)  # fmt: skip
def too_few_workers(plan: Plan, _severe: bool) -> None:
    """One worker for storage that needs several."""
    plan.workers = 1


def collate_slowly(loops: int) -> Any:
    """Puts a batch together with a loop over numbers."""

    def collate(samples: list[Any]) -> Any:
        total = 0
        for number in range(loops):
            total += number % 5
        return default_collate(samples)

    return collate


@fault("slow-collate", "loading", "IN07", "IN03", cpu=MODELS, setting=_recorded_with_stacks)
def slow_collate(plan: Plan, severe: bool) -> None:
    """A collate function in Python."""
    plan.collate = collate_slowly(160_000 if severe else 50_000)


@fault("preparation-on-main-thread", "loading", "IN08", cpu=MODELS)
def preparation_on_main_thread(plan: Plan, severe: bool) -> None:
    """Batches are normalised and augmented in the loop, in many passes."""
    count = 600_000 if severe else 250_000

    def prepare(_trainer: Trainer, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        noise = torch.rand(count).sort().values
        return (x + noise[0] * 1e-3 if x.is_floating_point() else x), y

    plan.prepare = prepare
