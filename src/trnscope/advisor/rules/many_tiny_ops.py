"""OP01: more dispatch than work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import ATEN, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

TINY_OP_NS = 20_000
"""A host op shorter than this is mostly dispatch, which takes 2 to 10 µs, more under a profiler."""
TINY_KERNEL_NS = 10_000
"""nsys-ai calls launches averaging less than this small."""
MOST_BETWEEN_NS = 60_000
"""From the end of one tiny op to the start of the next that belongs to it: Python and autograd take
some 10 µs, several times that under a profiler. Ours."""
LEAST_PER_STEP = 300
"""Below, there is not enough to fuse; TraceML and others ask for 500 ops."""
LEAST_SHARE = 0.2
"""Of the step. Ours: below, other work is the better aim."""
LEAST_ON_CPU = 0.25
"""The same on the CPU, with the time from one op to the next. Ours."""
SHARES = (0.3, 0.5, 0.8)
SHARES_ON_CPU = (0.4, 0.8, 1.0)
"""What fusing takes off: assumptions of ours."""


class ManyTinyOpsRule(Rule):
    """The step is made of many ops so small that starting them costs more than doing them.

    What it finds
    -------------
    At least 300 tiny pieces of work per step: kernels below 10 µs that take a fifth of it or more,
    or, on the CPU, ops below 20 µs that take a quarter with what calls them.

    Why it costs time
    -----------------
    A kernel needs some µs to start and to drain, an op some µs of dispatch, whatever its size.

    How it is computed
    ------------------
    The replay runs the steps with half of these gone (low 30 %, high 80 %). Ops on the CPU count
    with the time from one to the next, up to 60 µs, of which 80 % goes (low 40 %, high all).

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
            ids = _tiny(context, context.outermost(context.ops(ATEN)), TINY_OP_NS)
        number = ids.size // context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        if kernels.size:
            everything = Removal((), (DeviceCut(np.sort(ids)),))
            taken_ns = context.duration_ns(ids)
        else:
            everything = _with_starts(context, ids)
            taken_ns = context.per_step(everything.host_ns)
        if taken_ns < (LEAST_SHARE if kernels.size else LEAST_ON_CPU) * context.step_ns:
            return
        low, likely, high = SHARES if kernels.size else SHARES_ON_CPU
        what = "kernels" if kernels.size else "ops"
        yield Claim(
            title=f"{number:,} tiny {what} per step: starting them costs more than doing them",
            evidence=ids,
            likely=everything.scaled(likely),
            low=everything.scaled(low),
            high=everything.scaled(high),
            confidence=Confidence.LOW,
            tries=(
                "compile the model: model = torch.compile(model)",
                "turn loops over small tensors into one op over a stacked tensor",
            ),
            how=f"the steps replayed with {percent(likely)} of them gone",
        )


def _with_starts(context: StepContext, ids: U32) -> Removal:
    """Tiny ops, with the short times from one to the next: what calls them is part of the price."""
    slices = context.trace.slices
    cuts = []
    for track in np.unique(slices.track[ids]).tolist():
        mine = ids[slices.track[ids] == track]
        mine = mine[np.argsort(slices.start_ns[mine], kind="stable")]
        start = slices.start_ns[mine]
        end = start + slices.dur_ns[mine]
        near = start[1:] - end[:-1] <= MOST_BETWEEN_NS
        reach = np.append(np.where(near, start[1:], end[:-1]), end[-1])
        cuts.append(HostCut(track, Intervals.union_of(start, reach)))
    return Removal(tuple(cuts))


def _tiny(context: StepContext, ids: U32, limit_ns: int) -> U32:
    return ids[context.trace.slices.dur_ns[ids] < limit_ns]
