"""CA05: part of the device's work has no launch in the trace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

LEAST_SHARE = 0.1
"""Of the device time of the judged steps. Ours: less moves no finding over its threshold."""


class UnlinkedWorkRule(Rule):
    """Part of the device's work was launched by something that the trace does not show.

    What it finds
    -------------
    Device work of the judged steps whose launch is not in the trace, a tenth of the device time or
    more. From 40 % of the whole trace on there is no verdict at all (CA03).

    Why it costs time
    -----------------
    It costs none. But such work is charged to no op, and nothing is known of what it waited for:
    the replay leaves it where it was, so that findings about the host say too little.

    How it is computed
    ------------------
    No figure of time belongs to it.

    When it is wrong
    ----------------
    Work that was queued before recording began is real and was done; only its cause is missing.

    Example
    -------
    Host events of the first 14 ms of a step are missing: 509 of 1,707 kernels have no launch.

    What to try
    -----------
    Record more steps, so that the first one weighs less: `schedule(wait=1, warmup=2, active=4)`, or
    `trnscope run`; wait for the device before recording begins.

    References
    ----------
    Users on lost events: pytorch/pytorch#192021, pytorch/kineto#1380, sgl-project/sglang#22589.
    """

    code = "CA05"
    name = "unlinked-work"
    subject = "the recording"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where much of the work is unlinked."""
        work = context.device()
        unlinked = _without_launch(context, work)
        share = context.duration_ns(unlinked) / max(context.duration_ns(work), 1)
        if unlinked.size == 0 or share < LEAST_SHARE:
            return
        yield Claim(
            title=f"{percent(share)} of the device's work has no launch in the trace: findings "
            "about the host say too little",
            evidence=unlinked,
            likely=None,
            confidence=Confidence.HIGH,
            tries=(
                "record more steps (trnscope run --steps 8 ...), after warm-up, so that what was "
                "queued before weighs less",
            ),
            how="no figure of time belongs to it",
            is_fault=True,
        )


def _without_launch(context: StepContext, work: U32) -> U32:
    launches = context.trace.launches
    return np.asarray(work[np.isin(work, launches.device_slice[~launches.has_launch])], np.uint32)
