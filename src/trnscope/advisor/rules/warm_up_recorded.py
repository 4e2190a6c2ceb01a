"""CA02: steps that are not like the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.window import STANDS_OUT
from trnscope.analysis.names import slices_named
from trnscope.model.kinds import SliceKind


class WarmUpRecordedRule(Rule):
    """The recording contains steps that are not like the others, mostly the first ones.

    What it finds
    -------------
    Steps at least three times as long as the median step.

    Why it costs time
    -----------------
    First steps allocate memory, load libraries, choose algorithms and compile. They happen once,
    and a mean over them is no mean of anything.

    How it is computed
    ------------------
    Such steps are left out of all other figures, with those that they cut off from the rest.

    When it is wrong
    ----------------
    Steps may really differ (evaluation, checkpoints, long inputs): then the long ones deserve a
    look of their own, `trnscope explain --step N`.

    Example
    -------
    Steps of 2.1 s, 80 ms, 81 ms, 79 ms.

    What to try
    -----------
    Record later steps: `schedule(wait=1, warmup=3, active=8)`, or `trnscope run --warmup 5`.

    References
    ----------
    gpu-idle and others flag a first step above three times the median.
    """

    code = "CA02"
    name = "warm-up-recorded"
    subject = "the recording"
    needs = (Need.STEPS,)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where steps were left out."""
        left_out = context.window.left_out
        if not left_out:
            return
        trace = context.trace
        names = frozenset(step.name for step in left_out)
        shown = slices_named(trace, trace.slices.of_kind(SliceKind.ANNOTATION), names.__contains__)
        long = [step.name for step in left_out if step.duration_ns > context.window.step_ns]
        total = len(left_out) + context.window.num_steps
        yield Claim(
            title=f"{len(left_out)} of {total} steps are left out: {long[0]} "
            f"{'and others take' if len(long) > 1 else 'takes'} over {STANDS_OUT:g} medians",
            evidence=np.asarray(shown, np.uint32),
            likely=None,
            confidence=Confidence.HIGH,
            tries=("record later steps: trnscope run --warmup 5 ...",),
            how="left out of all other figures",
            is_fault=True,
        )
