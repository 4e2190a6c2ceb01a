"""OP01: more dispatch than work."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_ATEN = re.compile(r"^aten::")
TINY_OP_NS = 20_000
"""A host op shorter than this is mostly dispatch, which takes 2 to 10 µs, more under a profiler."""
TINY_KERNEL_NS = 10_000
"""nsys-ai calls launches averaging less than this small."""
LEAST_PER_STEP = 300
"""Below, there is not enough to fuse; TraceML and others ask for 500 ops."""
LEAST_SHARE = 0.2
"""Of the step. Ours: below, other work is the better aim."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.3, 0.5, 0.8
"""What fusing takes off: assumptions of ours."""


class ManyTinyOpsRule(Rule):
    """The step is made of many ops so small that starting them costs more than doing them.

    What it finds
    -------------
    At least 300 tiny pieces of work per step that take a fifth of it or more: kernels below 10 µs,
    or, on the CPU, ops below 20 µs.

    Why it costs time
    -----------------
    A kernel needs some µs to start and to drain, an op some µs of dispatch, whatever its size.

    How it is computed
    ------------------
    The replay runs the steps with half of these gone (low 30 %, high 80 %).

    When it is wrong
    ----------------
    Work may be small because the model is: then a larger batch is what helps. Under the profiler
    each op takes longer than without.

    Example
    -------
    A loop over 64 experts, or over time steps, with ops on a few hundred numbers each.

    What to try
    -----------
    `torch.compile`; batch the loop into one op; a larger batch.

    References
    ----------
    VTune's many short tasks, nsys-ai, TraceML.
    """

    code = "OP01"
    name = "many-tiny-ops"
    subject = "tiny pieces of work"
    needs = (Need.HOST_OPS,)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over tiny kernels, or without a device over tiny ops."""
        kernels = context.device(SliceKind.KERNEL)
        ids = _tiny(context, kernels, TINY_KERNEL_NS)
        if kernels.size == 0:
            ids = _tiny(context, context.outermost(context.ops(_ATEN)), TINY_OP_NS)
        number = ids.size // context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        if context.duration_ns(ids) < LEAST_SHARE * context.step_ns:
            return
        everything = (
            Removal((), (DeviceCut(np.sort(ids)),)) if kernels.size else context.host_removal(ids)
        )
        what = "kernels" if kernels.size else "ops"
        yield Claim(
            title=f"{number:,} tiny {what} per step: starting them costs more than doing them",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.LOW,
            tries=(
                "compile the model: model = torch.compile(model)",
                "turn loops over small tensors into one op over a stacked tensor",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of them gone",
        )


def _tiny(context: StepContext, ids: U32, limit_ns: int) -> U32:
    return ids[context.trace.slices.dur_ns[ids] < limit_ns]
