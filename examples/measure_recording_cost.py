"""Measures what each option of recording costs: host time a step, file size, time to stop.

    python examples/measure_recording_cost.py

Two training loops on one CPU thread: many tiny operations, where the cost is highest, and a
small transformer. Rounds with and without recording take turns. Time is this process's CPU
time, and of all rounds the least is shown, so that other programs on the machine count for little.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import trnscope
from trnscope.demo.train_transformer import CHARACTERS, CONTEXT, SmallTransformer

ROUNDS = 15
STEPS = 10
OPTIONS = {
    "as it is": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stacks": {"with_stack": True},
    "all three": {"record_shapes": True, "profile_memory": True, "with_stack": True},
}


def tiny_ops() -> Callable[[], None]:
    """Twenty layers of 32 numbers: the operations do next to nothing."""
    model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(20)])
    return _training(model, torch.randn(4, 32))


def small_transformer() -> Callable[[], None]:
    """The demo's model on a batch of 16."""
    return _training(SmallTransformer(), torch.randint(len(CHARACTERS), (16, CONTEXT)))


def _training(model: torch.nn.Module, inputs: torch.Tensor) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).pow(2).mean().backward()
        optimizer.step()

    return step


def cpu_ms_per_step(step: Callable[[], None]) -> float:
    """CPU time of this process for one step, ms."""
    started = time.process_time()
    for _ in range(STEPS):
        step()
    return (time.process_time() - started) * 1e3 / STEPS


def measure(step: Callable[[], None], options: dict[str, bool], folder: Path) -> tuple[float, ...]:
    """(ms a step alone, recorded; ms to stop and write; MB): each the least of all rounds."""
    rounds = []
    for _ in range(ROUNDS):
        without = cpu_ms_per_step(step)
        run = trnscope.profile(folder, **options)
        run.start()
        recorded = cpu_ms_per_step(step)
        started = time.process_time()
        run.stop()
        stop = (time.process_time() - started) * 1e3
        rounds.append((without, recorded, stop, run.path.stat().st_size / 1e6))
        run.path.unlink()
    return tuple(min(values) for values in zip(*rounds, strict=True))


def main() -> None:
    """Print one table for each training loop."""
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {os.cpu_count()} CPUs, one thread, {STEPS} steps recorded")
    with tempfile.TemporaryDirectory() as folder:
        for make in (tiny_ops, small_transformer):
            step = make()
            cpu_ms_per_step(step)
            print(f"\n{make.__name__:18}  step alone   recorded   slower   stop+write      trace")
            for name, options in OPTIONS.items():
                alone, recorded, stop, size = measure(step, options, Path(folder))
                print(
                    f"{name:18} {alone:8.2f} ms {recorded:7.2f} ms {recorded / alone - 1:7.0%} "
                    f"{stop:9.0f} ms {size:7.1f} MB"
                )


if __name__ == "__main__":
    main()
