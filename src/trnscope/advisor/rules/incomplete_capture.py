"""CA03: part of the trace is missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Rule
from trnscope.analysis.launch import launch_calls, launches_without_work
from trnscope.store.reader import Trace


class IncompleteCaptureRule(Rule):
    """Part of what happened is not in the trace, so no verdict is given.

    What it finds
    -------------
    A file that is cut off or damaged, and launches without any device work: the device was not
    recorded.

    Why it costs time
    -----------------
    It costs none. But advice from half of the evidence is worse than none.

    How it is computed
    ------------------
    From the health of the profile (`trnscope health`). Conclusions that need the missing part are
    withheld, which is all of them.

    When it is wrong
    ----------------
    If only the end of a long trace is missing, the rest may well be sound: look at single figures
    with `trnscope breakdown`, which marks them.

    Example
    -------
    The job was killed while the trace was being written.

    What to try
    -----------
    Record fewer steps, so that writing is quick; let the process end in peace; record
    `ProfilerActivity.CUDA` (or the device's) too.

    References
    ----------
    Missing and doubled data is the most frequent complaint (user_reports.md, C and D); a confident
    diagnosis of an empty window: GindaChen/nsys-ai#498.
    """

    code = "CA03"
    name = "incomplete-capture"
    subject = "the recording"
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where a part is missing."""
        reason = missing_part(context.trace)
        if reason is None:
            return
        yield Claim(
            title=f"The recording is incomplete: {reason}",
            evidence=np.empty(0, np.uint32),
            likely=None,
            confidence=Confidence.HIGH,
            tries=(
                "record again, fewer steps (trnscope run --steps 4 ...), and let the program end "
                "by itself",
            ),
            how="no figure of time belongs to it",
            is_fault=True,
        )


def missing_part(trace: Trace) -> str | None:
    """What is missing; absent for a trace that carries a verdict."""
    if not trace.health.complete:
        warnings = trace.health.warnings
        return warnings[0].message if warnings else "parts of the file are missing"
    lost = launches_without_work(trace).size
    if lost and trace.launches.device_slice.size == 0:
        return f"{lost} of {launch_calls(trace).size} launches, but no device work at all"
    return None
