"""HO03: stretches of Python in which nothing runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.functions import main_function
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32, Bool

LEAST_GAP_NS = 500_000
"""A stretch without any op or runtime call this long is more than the way from one op to the
next, which takes some 10 µs, or 100 µs with stacks recorded. Ours."""
LEAST_GAP_WITH_FRAMES_NS = 2_000_000
"""The same where Python frames were recorded, which makes Python code some four times as slow:
measured with torch 2.13 for `clip_grad_norm_` and `zero_grad` of 80 parameters."""
_RECORDER = re.compile(r"trnscope/capture/hooks\.py\(\d+\): _report$")
"""Our own part of a step, when it is recorded."""
ENOUGH_STEPS = 3
"""With so many steps, a stretch that most of them show is no accident. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""What goes when such code is moved, vectorised or done less often: assumptions of ours; high is
all of it."""


class PythonOverheadRule(Rule):
    """The program runs Python code between its ops, and nothing else happens meanwhile.

    What it finds
    -------------
    Stretches of at least 0.5 ms of the main thread (2 ms where Python frames were recorded) in
    which no op runs on any thread and no batch is asked for, at the same place in most of the
    steps: logging, metrics, augmentation by hand, checkpoints, configuration.

    Why it costs time
    -----------------
    Python runs one thing at a time. While it does, nothing is launched, and on the CPU nothing is
    computed.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of these stretches gone (low 50 %, high all).

    When it is wrong
    ----------------
    A stretch may also be a wait that the trace does not show: a lock, a file, another process.

    Example
    -------
    `logger.info(f"{model.state_dict()}")` in the loop: 30 ms per step.

    What to try
    -----------
    Do it less often, outside of the loop, or in another thread or process.

    References
    ----------
    pytscope's and train-doctor's phases for logging and checkpoints.
    """

    code = "HO03"
    name = "python-overhead"
    subject = "Python code outside of any op"
    needs = (Need.HOST_OPS, Need.REAL_HOST)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such stretches."""
        gaps = long_gaps(context)
        if context.main is None or len(gaps) == 0:
            return
        everything = Removal((HostCut(context.main, gaps),))
        found = main_function(context, gaps)
        name = None if found is None else found.name
        is_sure = found is not None or context.window.num_steps >= ENOUGH_STEPS
        yield Claim(
            title="Python code outside of any op holds up the step"
            + (f", most of it in {name}" if name else ""),
            evidence=_around(context, gaps) if found is None else found.calls,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM if is_sure else Confidence.LOW,
            tries=(
                f"do the work of {name} less often, outside of the loop, or vectorised"
                if name
                else "see which Python code it is: record with trnscope run --stack",
                "log and compute metrics every N steps",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these stretches gone",
        )


@once_per_context
def long_gaps(context: StepContext) -> Intervals:
    """When the main thread shows no op, nobody works for it, and no batch is asked for.

    Only stretches that most steps show between the same two ops: a thread that the system
    takes off its processor stops anywhere.
    """
    start_ns, end_ns = context.host_window
    whole = Intervals(np.array([start_ns], np.int64), np.array([end_ns], np.int64))
    free = whole.subtract(context.busy_threads)
    for time in context.time_by_thread(context.loading).values():
        free = free.subtract(time)
    for time in context.time_by_thread(context.frames(_RECORDER)).values():
        free = free.subtract(time)
    least_ns = LEAST_GAP_WITH_FRAMES_NS if context.frames().size else LEAST_GAP_NS
    long = free.end - free.start >= least_ns
    gaps = Intervals(free.start[long], free.end[long])
    kept = _recurring(context, gaps)
    return Intervals(gaps.start[kept], gaps.end[kept])


def _recurring(context: StepContext, gaps: Intervals) -> Bool:
    """Which gaps lie between two ops that have a gap between them in most of the steps."""
    ops = context.outermost(context.on_main(context.ops()))
    start, name = (
        context.trace.slices.start_ns[ops],
        context.trace.slices.name[ops].astype(np.int64),
    )
    names = np.concatenate(([-1], name, [-1]))
    place = np.searchsorted(start, gaps.start, side="right")
    ends = np.array([step.end_ns for step in context.window.steps], np.int64)
    step = np.searchsorted(ends, gaps.start, side="right").tolist()
    keys = list(zip(names[place].tolist(), names[place + 1].tolist(), strict=True))
    seen: dict[tuple[int, int], set[int]] = {}
    for key, at in zip(keys, step, strict=True):
        seen.setdefault(key, set()).add(at)
    often = [2 * len(seen[key]) > context.window.num_steps for key in keys]
    return np.array(often, np.bool_)


def _around(context: StepContext, gaps: Intervals) -> U32:
    """The ops of the main thread that end where a gap begins."""
    ops = context.on_main(context.ops())
    end = context.trace.slices.start_ns[ops] + context.trace.slices.dur_ns[ops]
    return ops[np.isin(end, gaps.start)]
