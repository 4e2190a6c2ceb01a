"""CM05: gradients are reduced for each micro-batch of one optimizer step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.collective_ops import reductions, removal_of
from trnscope.store.tables import U32

_FORWARD = re.compile(r"^DistributedDataParallel\.forward$")
_OPTIMIZER = re.compile(r"^Optimizer\.step#")
_REDUCER = re.compile(r"^torch(::|\.)distributed(::|\.)(ddp\.)?reducer::")
LOW_SHARE = 0.8
"""Of the reductions that are not the last: all of them go with `no_sync()`, less what the other
ranks' lateness moves elsewhere. Ours."""


class ReducedEveryMicroBatchRule(Rule):
    """Gradients are accumulated over several micro-batches, and reduced over the ranks in each.

    What it finds
    -------------
    Several passes through `DistributedDataParallel` for one optimizer step, each with all its
    reductions.

    Why it costs time
    -----------------
    Only the sum of the gradients is needed. With k micro-batches the ranks exchange k times as much
    as they need to.

    How it is computed
    ------------------
    The replay runs the steps without the reductions of all micro-batches but the last, their calls
    and the copies of gradients into buckets. Low: 80 % of that.

    When it is wrong
    ----------------
    Several models, each in its own DistributedDataParallel and with its own optimizer, look like
    micro-batches only if their optimizers take one step together.

    Example
    -------
    Accumulation over 4 micro-batches: 12 all-reduces of 34 MB per step instead of 3.

    What to try
    -----------
    `with model.no_sync():` around forward and backward of all micro-batches but the last.

    References
    ----------
    TraceML's rule for accumulation without `no_sync`; torch's DistributedDataParallel: `no_sync`.
    """

    code = "CM05"
    name = "reduced-every-micro-batch"
    subject = "reducing gradients of each micro-batch"
    needs = (Need.HOST_OPS, Need.DEVICE_WORK, Need.COLLECTIVES)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the reductions of all micro-batches but the last."""
        optimizing = np.sort(context.trace.slices.start_ns[context.ranges(_OPTIMIZER)])
        passes = np.sort(context.trace.slices.start_ns[context.ranges(_FORWARD)])
        if optimizing.size == 0 or passes.size < 2 * optimizing.size:
            return
        needless = _needless(context, passes.tolist(), optimizing.tolist())
        if needless.size == 0:
            return
        each = round(passes.size / optimizing.size)
        bucketing = _bucketing(context, passes.tolist(), optimizing.tolist())
        everything = removal_of(context, needless).plus(context.removal_of(bucketing))
        yield Claim(
            title=f"Gradients are reduced {each} times for one optimizer step, once in each "
            "micro-batch",
            evidence=needless,
            likely=everything,
            low=everything.scaled(LOW_SHARE),
            confidence=Confidence.HIGH,
            tries=(
                "with model.no_sync(): around forward and backward of all micro-batches but the "
                "last",
            ),
            how="the steps replayed without the reductions of all micro-batches but the last",
        )


def _bucketing(context: StepContext, passes: list[int], optimizing: list[int]) -> U32:
    """Ops that copy gradients into buckets in passes that no optimizer's step follows."""
    ops = context.outermost(context.ops(_REDUCER))
    start = context.trace.slices.start_ns[ops]
    inside = np.zeros(ops.size, np.bool_)
    for begin, end in _unfinished(passes, optimizing):
        inside |= (start >= begin) & (start < end)
    return ops[inside]


def _unfinished(passes: list[int], optimizing: list[int]) -> list[tuple[int, int]]:
    """From the begin of a pass to that of the next, where no optimizer's step lies between."""
    pairs = pairwise(passes)
    return [
        (begin, end) for begin, end in pairs if not any(begin <= time < end for time in optimizing)
    ]


def _needless(context: StepContext, passes: list[int], optimizing: list[int]) -> U32:
    """The reductions of passes that no optimizer's step follows; none where one has none."""
    found = reductions(context)
    kept: list[U32] = []
    for begin, end in _unfinished(passes, optimizing):
        inside = (found.launched_ns >= begin) & (found.launched_ns < end)
        if not inside.any():
            return found.slices[:0]
        kept.append(found.slices[inside])
    return np.sort(np.concatenate(kept)) if kept else found.slices[:0]
