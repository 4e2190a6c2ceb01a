"""What the simulated device adds to an op, in real time: ``python -m benchmarks.device_overhead``.

Each op runs on the CPU and on the device in turns, in the same process: a batch of calls here, a
batch there, many times over. Two clocks are read around each batch:

- the clock on the wall, which is what a program waits for. Batches are short, so that most of them
  fall between two interruptions by other programs; the figure is the lower quartile of all batches,
  the same for both sides.
- the processor time of the calling thread, which a busy machine lengthens less. The figure is the
  median.

The device computes its numbers on another thread. What is measured is the call, not the numbers:
between two batches the device is waited for, off the clock. Ends with status 3 where a goal is
missed on either clock.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

import trnscope.sim

CALLS = 40
ROUNDS = 100
GOAL_US = 5.0
GOAL_PROFILED_US = 15.0
GATE_FAILED = 3
Call = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Of one call, in us."""

    wall_us: float
    thread_us: float


@dataclass(frozen=True)
class Overhead:
    """One op on both devices."""

    name: str
    cpu: Times
    device: Times

    @property
    def added(self) -> Times:
        """What the device adds."""
        return Times(
            self.device.wall_us - self.cpu.wall_us, self.device.thread_us - self.cpu.thread_us
        )


@dataclass(frozen=True)
class Section:
    """All ops under one condition, and what may be added."""

    title: str
    rows: tuple[Overhead, ...]
    goal_us: float

    @property
    def worst(self) -> Times:
        """The most that is added to any op, on each clock."""
        return Times(
            max(row.added.wall_us for row in self.rows),
            max(row.added.thread_us for row in self.rows),
        )

    @property
    def is_met(self) -> bool:
        """Whether both stay within the goal."""
        return max(self.worst.wall_us, self.worst.thread_us) <= self.goal_us


def ops_on(device: str) -> dict[str, Call]:
    """The ops, by name, with small tensors: what is measured is the way to them."""
    x, w = torch.randn(16, 16, device=device), torch.randn(16, 16, device=device)
    b, q = torch.randn(16, device=device), torch.randn(1, 2, 8, 16, device=device)
    return {
        "add": lambda: x + w,
        "add_": lambda: x.add_(w),
        "mm": lambda: x @ w,
        "linear": lambda: functional.linear(x, w, b),
        "layer_norm": lambda: functional.layer_norm(x, (16,)),
        "softmax": lambda: x.softmax(-1),
        "attention": lambda: functional.scaled_dot_product_attention(q, q, q),
        "view": lambda: x.view(-1),
        "transpose": lambda: x.t(),
        "empty": lambda: torch.empty(16, device=device),
    }


def batch(call: Call) -> Times:
    """One call, over a row of them."""
    thread, wall = time.thread_time_ns(), time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    wall, thread = time.perf_counter_ns() - wall, time.thread_time_ns() - thread
    return Times(wall / CALLS / 1000, thread / CALLS / 1000)


def figures(batches: list[Times]) -> Times:
    """The lower quartile on the wall, the median of the thread."""
    quartile, _, _ = statistics.quantiles((one.wall_us for one in batches), n=4)
    return Times(quartile, statistics.median(one.thread_us for one in batches))


def compare(name: str, on_cpu: Call, on_device: Call) -> Overhead:
    """Both sides in turns."""
    batch(on_cpu), batch(on_device)
    torch.neuron.synchronize()
    here, there = [], []
    for _ in range(ROUNDS):
        here.append(batch(on_cpu))
        there.append(batch(on_device))
        torch.neuron.synchronize()
    return Overhead(name, figures(here), figures(there))


def measure(context: Callable[[], AbstractContextManager[object]]) -> tuple[Overhead, ...]:
    """All ops, each inside a context of its own."""
    results = []
    on_cpu, on_device = ops_on("cpu"), ops_on("neuron")
    for name, call in on_cpu.items():
        with context():
            results.append(compare(name, call, on_device[name]))
    return tuple(results)


def table(section: Section) -> str:
    """As text, with the worst op against the goal."""
    lines = [
        f"{section.title}: us a call",
        f"{'':12}{'wall clock, lower quartile':^34}{'thread time, median':^34}",
        f"{'op':12}" + f"{'CPU':>10}{'neuron':>12}{'added':>12}" * 2,
    ]
    for row in section.rows:
        cpu, device, added = row.cpu, row.device, row.added
        lines.append(
            f"{row.name:12}{cpu.wall_us:>10.2f}{device.wall_us:>12.2f}{added.wall_us:>12.2f}"
            f"{cpu.thread_us:>10.2f}{device.thread_us:>12.2f}{added.thread_us:>12.2f}"
        )
    worst, word = section.worst, "met" if section.is_met else "MISSED"
    lines.append(
        f"worst: {worst.wall_us:.2f} us on the wall, {worst.thread_us:.2f} us of the thread; "
        f"goal: at most {section.goal_us:g} us: {word}\n"
    )
    return "\n".join(lines)


def main() -> int:
    """Print both tables; the exit status."""
    trnscope.sim.activate()
    torch.set_num_threads(1)
    both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    sections = (
        Section("without a profiler", measure(nullcontext), GOAL_US),
        Section(
            "while torch.profiler records",
            measure(lambda: profile(activities=both)),
            GOAL_PROFILED_US,
        ),
    )
    print(f"real time, not simulated time; {ROUNDS} batches of {CALLS} calls on each side\n")
    for section in sections:
        print(table(section))
    return 0 if all(section.is_met for section in sections) else GATE_FAILED


if __name__ == "__main__":
    sys.exit(main())
