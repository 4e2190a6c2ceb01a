"""DE03: copies from one place on the device to another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_WITHIN = re.compile(r"DtoD|d2d|Device.?To.?Device|Device -> Device", re.IGNORECASE)
_COPY = re.compile(r"^aten::(copy_|clone|contiguous|_to_copy|to|cat)$")
LOW_SHARE, LIKELY_SHARE = 0.3, 0.6
"""Some copies stay, whatever the code: assumptions of ours; high is all of them."""


class DeviceCopiesRule(Rule):
    """Tensors are copied from one place on the device to another, many times a step.

    What it finds
    -------------
    Copies within the device (`Memcpy DtoD`): `clone()`, `copy_()`, slices of one tensor put into
    another.

    Why it costs time
    -----------------
    A copy reads and writes the whole tensor, costs the host a launch, and computes nothing.

    How it is computed
    ------------------
    The replay runs the steps with 60 % of these copies gone, device and host (low 30 %, high all).

    When it is wrong
    ----------------
    Copies that keep a value from being overwritten are needed. Buckets of DistributedDataParallel
    are copied by its own code (`gradient_as_bucket_view=True` avoids most of it).

    Example
    -------
    Compiled parts that clone their inputs: 773 copies and 14.6 ms of a step of 124 ms.

    What to try
    -----------
    Take out `clone()` and `copy_()` that nothing needs; write results where they belong (`out=`);
    one preallocated tensor in place of `cat`.

    References
    ----------
    TraceLens: copies in a direction above 5 %.
    """

    code = "DE03"
    name = "device-copies"
    subject = "copies within the device"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES, Need.HOST_OPS)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all copies within the device and the ops that make them."""
        copies = context.device(SliceKind.MEMCPY, pattern=_WITHIN)
        if copies.size == 0:
            return
        ops = context.ops(_COPY)
        ops = context.outermost(ops)
        ops = ops[context.holds(ops, context.launches_of(copies))]
        everything = context.removal_of(ops)
        number = copies.size / context.window.num_steps
        yield Claim(
            title=f"{number:,.0f} copies per step from one place on the device to another, most in "
            f"{_callers(context, ops)}",
            evidence=copies,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "take out clone() and copy_() that nothing needs; write results in place (out=)",
                "DistributedDataParallel: gradient_as_bucket_view=True",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these copies gone",
        )


def _callers(context: StepContext, ops: U32) -> str:
    """The op that most of these are called from; their own name where no op is around them."""
    slices = context.trace.slices
    parent = np.asarray(slices.parent[ops], np.uint32)
    around = np.where(slices.kind[parent] == SliceKind.CPU_OP, parent, ops).astype(np.uint32)
    names = Counter(context.names(around)) if ops.size else Counter({"no op": 1})
    return names.most_common(1)[0][0]
