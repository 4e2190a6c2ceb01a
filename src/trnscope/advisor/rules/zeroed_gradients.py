"""HO12: gradients are filled with zeros instead of being dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import ATEN, BACKWARD_NODES, OPTIMIZER_STEP, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.store.tables import U32

_ZEROING = re.compile(r"^aten::(zero_|_foreach_zero_|fill_)$")
_RESET = re.compile(r"Optimizer\.zero_grad#")
_ACCUMULATE = re.compile(r"AccumulateGrad$")
_ADD = re.compile(r"^aten::add_$")
LEAST_PER_STEP = 8
"""Tensors filled with zeros, outside of the optimizer's own call. Ours."""
LOW_SHARE = 0.6
"""A gradient that was dropped has to be allocated again. Ours."""


class ZeroedGradientsRule(Rule):
    """Gradients are filled with zeros in each step, and backward adds to the zeros.

    What it finds
    -------------
    Ops that fill gradients with zeros (`zero_grad(set_to_none=False)`, or a loop of
    `p.grad.zero_()`), and backward's sums onto these gradients.

    Why it costs time
    -----------------
    All gradients are written once with zeros, and then read and written again to add to them. A
    gradient that was dropped (the default, `set_to_none=True`) is simply taken over from backward.

    How it is computed
    ------------------
    The replay runs the steps without filling, and without as many of backward's sums
    (`AccumulateGrad`) as there were fillings. Low: 60 %.

    When it is wrong
    ----------------
    Code that reads `p.grad` of a parameter without a gradient expects zeros rather than `None`.
    With gradients accumulated over several batches only the first sum goes.

    Example
    -------
    `optimizer.zero_grad(set_to_none=False)` with 8 layers of 768 x 768 and batch 4: 31 ms per step
    in place of 24.

    What to try
    -----------
    `optimizer.zero_grad(set_to_none=True)`, which drops them (the default since PyTorch 2.0);
    `p.grad = None` in a loop of your own.

    References
    ----------
    PyTorch performance tuning guide, on setting gradients to None.
    """

    code = "HO12"
    name = "zeroed-gradients"
    subject = "filling gradients with zeros"
    needs = (Need.HOST_OPS,)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the fillings and the sums onto them."""
        zeroing, number = _fillings(context)
        nodes = context.ops(_ACCUMULATE)
        sums = context.ops(_ADD)
        sums = context.outermost(sums[context.lies_in(sums, nodes)])
        if number == 0 or sums.size == 0:
            return
        filled = context.removal_of(zeroing)
        everything = filled.plus(context.removal_of(sums, min(1.0, number / sums.size)))
        each = number // context.window.num_steps
        yield Claim(
            title="Gradients are filled with zeros instead of being dropped"
            + (f": {each:,} per step" if each > 1 else ""),
            evidence=np.union1d(zeroing, sums).astype(np.uint32),
            likely=everything,
            low=everything.scaled(LOW_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "optimizer.zero_grad(set_to_none=True), which is the default since PyTorch 2.0; in "
                "a loop of your own p.grad = None in place of p.grad.zero_()",
            ),
            how="the steps replayed without filling and without backward's sums onto the zeros",
        )


def _fillings(context: StepContext) -> tuple[U32, int]:
    """Ops of the main thread that fill gradients with zeros, and the tensors they fill."""
    ops = context.outermost(context.on_main(context.ops(ATEN)))
    ops = np.intersect1d(ops, context.ops(_ZEROING)).astype(np.uint32)
    outside = np.concatenate(
        (context.ranges(OPTIMIZER_STEP), context.ops(BACKWARD_NODES), context.loading)
    ).astype(np.uint32)
    ops = ops[~context.lies_in(ops, outside)]
    by_optimizer = ops[context.lies_in(ops, context.ranges(_RESET))]
    if by_optimizer.size:
        ops = by_optimizer
    elif ops.size < LEAST_PER_STEP * context.window.num_steps:
        return ops[:0], 0
    return ops, _num_tensors(context, ops)


def _num_tensors(context: StepContext, ops: U32) -> int:
    """One for each op; an op over a list counts as all sums of backward."""
    many = sum(name.startswith("aten::_foreach") for name in context.names(ops))
    return ops.size if many == 0 else int(context.ops(_ACCUMULATE).size)
