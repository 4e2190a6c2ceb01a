"""CA01: nothing in the trace says where a step begins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Rule


class NoStepsRule(Rule):
    """The trace does not say where one step ends and the next begins.

    What it finds
    -------------
    No `ProfilerStep` ranges, no repeated range named step, iteration or batch, and no optimizer
    steps.

    Why it costs time
    -----------------
    It costs none. But figures per step are then figures for the whole trace, start-up included.

    How it is computed
    ------------------
    No figure of time belongs to it.

    When it is wrong
    ----------------
    A trace of a single request has no steps: its figures stand as they are.

    Example
    -------
    `with torch.profiler.profile() as prof:` around a loop that never calls `prof.step()`.

    What to try
    -----------
    `prof.step()` at the end of each iteration, or record with `trnscope run`.

    References
    ----------
    A missing step() call is what most new users meet (pytorch/pytorch#121141).
    """

    code = "CA01"
    name = "no-steps"
    subject = "the recording"
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where there are no steps."""
        if context.window.has_steps:
            return
        yield Claim(
            title="No steps in the trace: the whole of it stands as one",
            evidence=np.empty(0, np.uint32),
            likely=None,
            confidence=Confidence.HIGH,
            tries=("call prof.step() at the end of each iteration, or record with trnscope run",),
            how="no figure of time belongs to it",
            is_fault=True,
        )
