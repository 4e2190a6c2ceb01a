"""Work that some steps do and most do not: the mean over all recorded steps, long ones too."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trnscope.advisor.context import StepContext
from trnscope.advisor.removal import HostCut, Removal
from trnscope.analysis.names import slices_named
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

LEAST_SHARE = 0.05
"""Of the mean step: what ``explain`` asks of any other cause. train-doctor warns of checkpoints
and logging from 2 % on."""


@dataclass(frozen=True, eq=False, repr=False)
class RareWork:
    """Stretches of the main thread, somewhere in the recorded steps."""

    slices: U32
    removal: Removal
    total_ns: int
    num_steps: int
    steps_ns: int
    """How long all recorded steps are together."""

    @property
    def per_step_ns(self) -> int:
        """Mean over all recorded steps."""
        return self.total_ns // self.num_steps

    @property
    def is_worth_it(self) -> bool:
        """Whether it is a share of the steps that is worth an edit."""
        return self.total_ns >= LEAST_SHARE * self.steps_ns


def all_frames(context: StepContext, pattern: re.Pattern[str]) -> U32:
    """Outermost Python frames of the main thread in any recorded step, whose name has a match."""
    trace, steps = context.trace, context.all_steps
    ids = slices_named(trace, trace.slices.of_kind(SliceKind.PYTHON), pattern.search)
    start = trace.slices.start_ns[ids]
    ids = ids[(start >= steps[0].start_ns) & (start < steps[-1].end_ns)]
    return context.outermost(context.on_main(ids))


def time_in_steps(context: StepContext, ids: U32) -> Intervals:
    """The time of slices from the begin of the first recorded step to the end of the last."""
    slices, steps = context.trace.slices, context.all_steps
    time = Intervals.lasting(slices.start_ns[ids], slices.dur_ns[ids])
    return time.clip(steps[0].start_ns, steps[-1].end_ns)


def rare_work(context: StepContext, ids: U32, time: Intervals | None = None) -> RareWork:
    """Slices of the main thread; ``time`` where they stand for more or less than their own."""
    steps = context.all_steps
    if time is None:
        time = time_in_steps(context, ids)
    time = time.clip(steps[0].start_ns, steps[-1].end_ns)
    cuts = () if context.main is None else (HostCut(context.main, time),)
    whole = sum(step.duration_ns for step in steps)
    return RareWork(ids, Removal(cuts), time.total, len(steps), whole)
