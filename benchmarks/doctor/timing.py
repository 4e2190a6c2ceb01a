"""What a fault costs without a profiler: two programs take turns, on the clock that fits.

Other programs run on the machine. CPU time leaves most of that out; where a fault makes its
program wait, wall time has to do. The lower quartile of the steps is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.doctor.case import Case
from benchmarks.doctor.trainer import Trainer

WARM_UP = 4
STEPS = 16
QUARTILE = 25
Clock = Callable[[], int]


@dataclass(frozen=True)
class Timing:
    """A step of each, ns."""

    faulty_ns: int
    healthy_ns: int

    def to_json(self) -> dict[str, int]:
        """Its fields."""
        return asdict(self)


def time_case(case: Case) -> Timing:
    """Both programs in this process."""
    clock = time.process_time_ns if case.fault.clock == "cpu" else time.perf_counter_ns
    if case.fault.apart:
        faulty_ns = _stretch(Trainer(case.plan()), clock)
        return Timing(faulty_ns, _stretch(Trainer(case.twin.plan()), clock))
    programs = [Trainer(case.plan()), Trainer(case.twin.plan())]
    known: tuple[list[int], list[int]] = ([], [])
    for number in range(WARM_UP + STEPS):
        for program, times in zip(programs, known, strict=True):
            taken = _timed(program, clock)
            if number >= WARM_UP:
                times.append(taken)
    return Timing(_typical(known[0], case), _typical(known[1], case))


def _stretch(program: Trainer, clock: Clock) -> int:
    times = [_timed(program, clock) for _ in range(WARM_UP + STEPS)][WARM_UP:]
    return int(np.mean(times))


def _typical(times: list[int], case: Case) -> int:
    """A quartile; the mean where the fault is not in every step."""
    if case.fault.kind == "recompilation":
        return int(np.mean(times))
    return int(np.percentile(times, QUARTILE))


def _timed(program: Trainer, clock: Clock) -> int:
    started = clock()
    program.step()
    return clock() - started
