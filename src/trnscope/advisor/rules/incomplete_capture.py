"""CA03: part of the trace is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Rule
from trnscope.advisor.words import percent
from trnscope.analysis.launch import launch_calls, launches_without_work
from trnscope.model.kinds import INSIDE_DEVICE
from trnscope.store.reader import Trace

MOST_UNLINKED = 0.4
"""Of the device time without a launch; beyond, what the host has to do with it is unknown. Ours."""

_RECORD_LESS = (
    "record again, fewer steps (trnscope run --steps 4 ...), and let the program end by itself"
)
_RECORD_DEVICE = (
    "record steps that run on the device, with its activity (ProfilerActivity.CUDA, XPU or "
    "PrivateUse1); trnscope run does"
)
_RECORD_HOST = (
    "record the host too (ProfilerActivity.CPU), from before the first launch; trnscope run does"
)


class IncompleteCaptureRule(Rule):
    """Part of what happened is not in the trace, so no verdict is given.

    What it finds
    -------------
    A file that is cut off or damaged; launches of which most have no device work (the device was
    not recorded, or a graph was captured and not run); device work of which more than 40 % has no
    launch (the host was not recorded; a device profile of a NeuronCore alone is no such case).

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
    Missing and doubled data is what users of profilers report most; a confident
    diagnosis of an empty window: GindaChen/nsys-ai#498.
    """

    code = "CA03"
    name = "incomplete-capture"
    subject = "the recording"
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where a part is missing."""
        missing = missing_part(context.trace)
        if missing is None:
            return
        yield Claim(
            title=f"The recording is incomplete: {missing.reason}",
            evidence=np.empty(0, np.uint32),
            likely=None,
            confidence=Confidence.HIGH,
            tries=(missing.remedy,),
            how="no figure of time belongs to it",
            is_fault=True,
        )


@dataclass(frozen=True)
class MissingPart:
    """What a recording lacks, and how to record it."""

    reason: str
    remedy: str


def missing_part(trace: Trace) -> MissingPart | None:
    """What is missing; absent for a trace that carries a verdict."""
    if not trace.health.complete:
        warnings = trace.health.warnings
        reason = warnings[0].message if warnings else "parts of the file are missing"
        return MissingPart(reason, _RECORD_LESS)
    lost, calls = launches_without_work(trace).size, launch_calls(trace).size
    if 2 * lost > calls:
        return MissingPart(
            f"{lost} of {calls} launches have no device work: the device was not recorded, or they "
            "were captured into a graph that did not run",
            _RECORD_DEVICE,
        )
    share = _unlinked_share(trace)
    if share > MOST_UNLINKED:
        return MissingPart(
            f"{percent(share)} of the device work has no launch: it was launched before recording "
            "began, or the host was not recorded",
            _RECORD_HOST,
        )
    return None


def _unlinked_share(trace: Trace) -> float:
    """Of the device time, whose launch is not in the trace; 0 without device work.

    Engines and queues of a device profile do not count: it shows no host by design.
    """
    work, dur = trace.launches.device_slice, trace.slices.dur_ns
    inside = [track.kind in INSIDE_DEVICE for track in trace.tracks]
    unlinked = work[~trace.launches.has_launch]
    unlinked = unlinked[~np.array(inside, np.bool_)[trace.slices.track[unlinked]]]
    return int(dur[unlinked].sum()) / max(int(dur[work].sum()), 1)
