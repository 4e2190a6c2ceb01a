"""CA06: device work begins before it was launched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import about_ns, percent

TOLERANCE_NS = 5_000
"""The clocks of host and device differ by some µs in sound traces."""
LEAST_SHARE = 0.01
"""Of the linked work; single pieces are a profiler's slip. Ours."""


class ClocksDisagreeRule(Rule):
    """Device work begins before the call that launched it: the two clocks disagree.

    What it finds
    -------------
    Work that starts 5 µs or more before its launch, in one of a hundred pieces or more.

    Why it costs time
    -----------------
    It costs none. But waits, idle time and launch latencies compare the two clocks, and are wrong
    by as much.

    How it is computed
    ------------------
    No figure of time belongs to it.

    When it is wrong
    ----------------
    If one process's trace was joined to another's by correlation ids that both use, the links are
    wrong, not the clocks.

    Example
    -------
    Kernels up to 90 µs before their launch after a clock was set during recording.

    What to try
    -----------
    Record again; shorter recordings drift less; keep the profiler and the driver up to date.

    References
    ----------
    Negative launch latencies: pytorch/kineto#1380.
    """

    code = "CA06"
    name = "clocks-disagree"
    subject = "the recording"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where work comes before its launch."""
        launches, start = context.trace.launches, context.trace.slices.start_ns
        work = launches.device_slice[launches.has_launch]
        early_ns = start[launches.launch_slice[launches.has_launch]] - start[work]
        is_early = early_ns >= TOLERANCE_NS
        share = float(is_early.mean())
        if share < LEAST_SHARE:
            return
        by = about_ns(int(early_ns.max()))
        yield Claim(
            title=f"{percent(share)} of the device's work begins before its launch, by up to {by}: "
            "the clocks of host and device disagree",
            evidence=np.asarray(work[is_early], np.uint32),
            likely=None,
            confidence=Confidence.HIGH,
            tries=("record again; waits and idle time of this recording are wrong by as much",),
            how="no figure of time belongs to it",
            is_fault=True,
        )
