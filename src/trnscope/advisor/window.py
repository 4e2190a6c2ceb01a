"""Which stretch of a trace the doctor looks at: its steps without the ones that stand out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.breakdown import step_windows
from trnscope.analysis.memo import once_per_trace
from trnscope.analysis.step_finder import Step, find_steps
from trnscope.analysis.threads import is_host_thread
from trnscope.store.reader import Trace

STANDS_OUT = 3.0
"""A step longer than this many medians is left out: compiling and first allocations take that
long, an ordinary step does not (gpu-idle flags a first step beyond 3x)."""
MOST_WORK = 100_000
"""Pieces of device work that are replayed: a run of the graph takes some 3 µs for each, and a
diagnosis some thirty runs. More steps would not change a mean by much."""
LEAST_TO_JUDGE = 3
"""Fewer steps have no median worth the name."""


@dataclass(frozen=True)
class StepWindow:
    """Steps that follow one another, from the start of the first to the end of the last; ns."""

    start_ns: int
    end_ns: int
    steps: tuple[Step, ...]
    """At least one; the whole trace as one where it has no steps."""
    has_steps: bool
    left_out: tuple[Step, ...]
    """Steps that stand out, and those cut off from the others by them."""

    @property
    def num_steps(self) -> int:
        """The denominator of figures per step."""
        return len(self.steps)

    @property
    def step_ns(self) -> int:
        """The mean step."""
        return (self.end_ns - self.start_ns) // self.num_steps


@once_per_trace
def typical_steps(trace: Trace) -> StepWindow | None:
    """The longest run of steps of which none stands out; absent for a trace without work."""
    windows = step_windows(trace)
    if not windows.steps:
        return None
    has_steps = bool(find_steps(trace).steps)
    run = _longest_run(windows.steps)
    left_out = tuple(step for step in windows.steps if step not in run)
    kept = _first_ones(trace, run)
    return StepWindow(kept[0].start_ns, kept[-1].end_ns, kept, has_steps, left_out)


def one_step(trace: Trace, number: int) -> StepWindow | None:
    """The step whose name ends with this number; absent where there is none."""
    found = [step for step in find_steps(trace).steps if _number_of(step.name) == number]
    if not found:
        return None
    return StepWindow(found[0].start_ns, found[0].end_ns, (found[0],), True, ())


def host_bounds(trace: Trace, window: StepWindow) -> tuple[int, int]:
    """The window itself; without steps the part of it in which the host shows anything, ns."""
    if window.has_steps:
        return window.start_ns, window.end_ns
    on_host = is_host_thread(trace)[trace.slices.track]
    if not on_host.any():
        return window.start_ns, window.end_ns
    start = trace.slices.start_ns[on_host]
    end = start + trace.slices.dur_ns[on_host]
    return max(window.start_ns, int(start.min())), min(window.end_ns, int(end.max()))


def _number_of(name: str) -> int | None:
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if digits else None


def _first_ones(trace: Trace, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """As many of the steps, from the first, as hold no more device work than is replayed."""
    start = np.sort(trace.slices.start_ns[trace.launches.device_slice])
    ends = np.array([step.end_ns for step in steps], np.int64)
    held = np.searchsorted(start, ends) - np.searchsorted(start, steps[0].start_ns)
    return steps[: max(1, int(np.count_nonzero(held <= MOST_WORK)))]


def _longest_run(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if len(steps) < LEAST_TO_JUDGE:
        return steps
    limit = STANDS_OUT * float(np.median([step.duration_ns for step in steps]))
    best: tuple[Step, ...] = ()
    run: tuple[Step, ...] = ()
    for step in steps:
        follows = bool(run) and run[-1].end_ns == step.start_ns
        run = () if step.duration_ns > limit else ((*run, step) if follows else (step,))
        best = run if len(run) > len(best) else best
    return best
