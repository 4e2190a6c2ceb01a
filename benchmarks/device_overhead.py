"""What the simulated device adds to an op, in real time: ``python -m benchmarks.device_overhead``.

Each op runs on the CPU and on the device in turns, in the same process; the figures are medians
over the rounds. The device computes its numbers on another thread: an op's figure is the processor
time of the calling thread, which a busy machine lengthens less than the clock on the wall.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

import trnscope.sim

CALLS = 300
ROUNDS = 15
GOAL_US = 5.0
GOAL_PROFILED_US = 15.0
Call = Callable[[], object]


@dataclass(frozen=True)
class Overhead:
    """Real processor time of one op, in us."""

    name: str
    cpu_us: float
    device_us: float

    @property
    def added_us(self) -> float:
        """What the device adds."""
        return self.device_us - self.cpu_us


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


def microseconds(call: Call) -> float:
    """Processor time of one call, over a row of them."""
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - start) / CALLS * 1e6


def compare(name: str, on_cpu: Call, on_device: Call) -> Overhead:
    """Both sides in turns."""
    on_cpu(), on_device()
    rounds = []
    for _ in range(ROUNDS):
        rounds.append((microseconds(on_cpu), microseconds(on_device)))
        torch.neuron.synchronize()
    return Overhead(
        name,
        statistics.median(cpu for cpu, _ in rounds),
        statistics.median(device for _, device in rounds),
    )


def measure(context: Callable[[], AbstractContextManager[object]]) -> list[Overhead]:
    """All ops, each inside a context of its own."""
    results = []
    on_cpu, on_device = ops_on("cpu"), ops_on("neuron")
    for name, call in on_cpu.items():
        with context():
            results.append(compare(name, call, on_device[name]))
    return results


def table(title: str, results: list[Overhead], goal_us: float) -> str:
    """As text, with the worst op against the goal."""
    lines = [title, f"{'op':12}{'CPU us':>10}{'neuron us':>12}{'added us':>11}"]
    lines += [
        f"{one.name:12}{one.cpu_us:>10.2f}{one.device_us:>12.2f}{one.added_us:>11.2f}"
        for one in results
    ]
    worst = max(one.added_us for one in results)
    lines.append(f"worst: {worst:.2f} us an op; goal: at most {goal_us:g} us\n")
    return "\n".join(lines)


def main() -> None:
    trnscope.sim.activate()
    torch.set_num_threads(1)
    both = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    print(
        "processor time of the calling thread, not simulated time; medians of", ROUNDS, "rounds\n"
    )
    print(table("without a profiler", measure(nullcontext), GOAL_US))
    profiled = measure(lambda: profile(activities=both))
    print(table("while torch.profiler records", profiled, GOAL_PROFILED_US))


if __name__ == "__main__":
    main()
