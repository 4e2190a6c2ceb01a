"""HO10: gradients are clipped one parameter at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from trnscope.advisor.context import ATEN, BACKWARD_NODES, OPTIMIZER_STEP, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.intervals import I64, Intervals
from trnscope.store.tables import U32

_NORMS = re.compile(r"^aten::(norm|linalg_vector_norm|linalg_norm|frobenius_norm|clamp_)$")
_SCALING = re.compile(r"^aten::(_foreach_)?(mul_?|div_?|clamp_)$")
_OVER_A_LIST = re.compile(r"^aten::_foreach_")
LEAST_PER_STEP = 16
"""Norms of single gradients; fewer are not worth an edit. Ours."""
LEAST_SCALED = 0.5
"""Of the tensors whose norm is taken: a loop may scale only those above a limit. Norms that nothing
follows are logged. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.3, 0.6, 0.9
"""What one op over all gradients takes off a loop: the reading of the gradients stays. Assumptions
of ours."""


class ClippingByLoopRule(Rule):
    """Gradients are clipped by a loop over the parameters, with several ops for each.

    What it finds
    -------------
    At least 16 norms (or clamps) of single tensors between backward and the optimizer's step, and
    ops that scale at least half as many. Norms that are only logged clip nothing, and are left to
    other rules.

    Why it costs time
    -----------------
    Each op of each parameter costs a dispatch and a launch. If each norm is read (`.item()`), the
    host waits for the device as often.

    How it is computed
    ------------------
    The main thread from the first such op after backward to the optimizer's step, and what it
    launches there. The replay runs the steps with 60 % of it gone (low 30 %, high 90 %).

    When it is wrong
    ----------------
    With a few large parameters the reading of the gradients is the cost, and stays.

    Example
    -------
    `for p in model.parameters(): total += p.grad.norm().item() ** 2`, and a second loop that
    scales.

    What to try
    -----------
    `torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`, which works on all gradients at once
    and reads nothing; `torch._foreach_norm` for a report.

    References
    ----------
    torch.nn.utils.clip_grad_norm_, argument `foreach`.
    """

    code = "HO10"
    name = "clipping-by-loop"
    subject = "clipping gradients"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the stretches between backward and the optimizer."""
        ops = context.outermost(context.on_main(context.ops(ATEN)))
        begin, end, norms = _stretches(context, np.intersect1d(ops, context.ops(_NORMS)))
        number = norms.size // context.window.num_steps
        if context.main is None or number < LEAST_PER_STEP:
            return
        time = Intervals.union_of(begin, end)
        start = context.trace.slices.start_ns[ops]
        ops = ops[time.covered_within(start, start + 1) > 0]
        if _num_scaled(context, ops, norms.size) < LEAST_SCALED * norms.size:
            return
        work = context.launched_in(ops)
        everything = Removal(
            (HostCut(context.main, time),), (DeviceCut(work),) if work.size else ()
        )
        yield Claim(
            title=f"Gradients are clipped one at a time: {number:,} norms per step",
            evidence=ops,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm) in place of the loop",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the time from the first norm "
            "to the optimizer gone",
        )


def _num_scaled(context: StepContext, ops: U32, number: int) -> int:
    """Tensors that some of these ops scale: one each, or all for an op over a list.

    Numbers (a norm that is divided) are none, where shapes tell.
    """
    scaling = np.intersect1d(ops, context.ops(_SCALING)).astype(np.uint32)
    if any(_OVER_A_LIST.match(name) for name in context.names(scaling)):
        return number
    shapes = context.trace.attribute("input_dims")
    if shapes is None:
        return scaling.size
    has, text = shapes.of(scaling)
    texts = context.trace.strings.take(text[has])
    return scaling.size - sum(one.replace(" ", "").startswith("[[]") for one in texts)


def _stretches(context: StepContext, norms: U32) -> tuple[I64, I64, U32]:
    """From the first norm between a backward and the next optimizer's step to that step; the norms,
    each once though several optimizers follow."""
    slices = context.trace.slices
    nodes = context.ops(BACKWARD_NODES)
    backward_end = np.sort(slices.start_ns[nodes] + slices.dur_ns[nodes])
    begin, end, kept = [], [], [norms[:0]]
    at = slices.start_ns[norms]
    steps = np.sort(slices.start_ns[context.on_main(context.ranges(OPTIMIZER_STEP))])
    for before, step in pairwise([context.window.start_ns, *steps.tolist()]):
        place = int(np.searchsorted(backward_end, step)) - 1
        first = max(before, int(backward_end[place])) if place >= 0 else step
        mine = norms[(at >= first) & (at < step)]
        if mine.size:
            begin.append(int(slices.start_ns[mine].min()))
            end.append(step)
            kept.append(mine)
    ids = np.concatenate(kept).astype(np.uint32)
    return np.array(begin, np.int64), np.array(end, np.int64), ids
