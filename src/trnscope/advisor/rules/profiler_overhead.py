"""CA04: the profiler slows down what it measures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Rule
from trnscope.advisor.words import percent

_OWN = re.compile(r"^(?!Command Buffer Full)")
"""Nsight's exception: there the host waits because it launches faster than the device works."""
LEAST_SLOWDOWN = 0.25
"""Of a recorded step over one that is not recorded; stacks alone cost
some 7 % (vllm-project/vllm#35240), a quarter changes what a step is bound by. Ours."""
LEAST_SHARE = 0.05
"""Of the steps, that the profiler's own slices take. Ours."""


class ProfilerOverheadRule(Rule):
    """Recording slows the steps down enough to change the picture.

    What it finds
    -------------
    Steps that took at least a quarter longer under the profiler than without, beyond what steps
    vary by themselves; or slices of the profiler itself that take 5 % of the steps.

    Why it costs time
    -----------------
    Only while recording. But the profiler slows the host and not the device, so that a step looks
    more bound by the host than it is.

    How it is computed
    ------------------
    `trnscope run` times steps without recording and writes the comparison beside the trace; or from
    the profiler's own overhead slices.

    When it is wrong
    ----------------
    Where steps differ much from one another, the comparison says little; then it is not made.

    Example
    -------
    A step of 23 ms that takes 43 ms under the profiler (facebookresearch/dlrm#197).

    What to try
    -----------
    Record without stacks, shapes and memory; record fewer steps.

    References
    ----------
    User reports of what profilers cost: pytorch/kineto#325, vllm-project/vllm#35240.
    """

    code = "CA04"
    name = "profiler-overhead"
    subject = "the profiler"
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where its cost is clear."""
        own = context.overheads(_OWN)
        taken_ns = context.per_step(context.union_of(own).total)
        share = taken_ns / max(context.step_ns, 1)
        slowdown = _measured(context)
        if slowdown is None and share < LEAST_SHARE:
            return
        yield Claim(
            title=f"Recording made the steps {percent(slowdown)} longer"
            if slowdown is not None
            else f"The profiler itself takes {percent(share)} of the steps",
            evidence=own,
            likely=None,
            confidence=Confidence.MEDIUM,
            tries=("record again without --stack, --shapes and --memory, and fewer steps",),
            how="recorded steps compared with steps of the same run that were not recorded"
            if slowdown is not None
            else "slices of the profiler over the steps",
            is_fault=True,
        )


def _measured(context: StepContext) -> float | None:
    """How much longer recorded steps took, where that is clear and large."""
    notes = context.recording
    if notes is None or notes.slowdown_ratio is None:
        return None
    is_large = notes.slowdown_ratio >= LEAST_SLOWDOWN
    return notes.slowdown_ratio if is_large and notes.slowdown_is_clear else None
