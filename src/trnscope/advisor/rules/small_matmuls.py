"""OP09: many products too small to fill anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import ATEN, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_PRODUCTS = re.compile(r"^aten::(mm|addmm|bmm|baddbmm|mv|addmv)$")
SMALL_FLOP = 2_000_000
"""Floating point operations of one product: a core of today does this many in some 50 µs, a GPU in
less time than a launch takes. Ours."""
LEAST_PER_STEP = 64
"""Fewer are not worth batching. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.4, 0.8, 1.0
"""What goes when a loop of products becomes one batched product: assumptions of ours."""


class SmallMatmulsRule(Rule):
    """Many small matrix products are computed one by one.

    What it finds
    -------------
    At least 64 products per step of less than two million operations each.

    Why it costs time
    -----------------
    A product this small costs more to start than to compute, and uses a fraction of the device.

    How it is computed
    ------------------
    Operations are 2 x m x k x n of the recorded shapes, times the batch. The replay runs the steps
    with 80 % of these products, the ops they were called for, and their backward gone (low 40 %,
    high all).

    When it is wrong
    ----------------
    Products that depend on one another (a recurrent cell) cannot be batched.

    Example
    -------
    One `nn.Linear(64, 64)` for each of 32 heads or experts, in a Python loop.

    What to try
    -----------
    Stack the weights and call `torch.bmm` (or one wide `Linear`); grouped products.

    References
    ----------
    TraceLens' many tiny batched products.
    """

    code = "OP09"
    name = "small-matmuls"
    subject = "small matrix products"
    needs = (Need.HOST_OPS, Need.SHAPES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all small products."""
        ids = _small(context, context.ops(_PRODUCTS))
        number = ids.size // context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        everything = context.removal_of(context.with_backward(_whole_ops(context, ids)))
        yield Claim(
            title=f"{number:,} matrix products per step are too small to be worth their start",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=("stack the weights and compute them as one: torch.bmm, or one wider Linear",),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these products gone",
        )


def _whole_ops(context: StepContext, ids: U32) -> U32:
    """With the ops that were called for them: ``linear``, which transposes first."""
    outer = context.outermost(context.ops(ATEN))
    return np.union1d(ids, outer[context.holds(outer, ids)]).astype(np.uint32)


def _small(context: StepContext, ids: U32) -> U32:
    shapes = context.trace.attribute("input_dims")
    if shapes is None:
        return ids[:0]
    has, text = shapes.of(ids)
    flop = {one: _flop(context.trace.strings[one]) for one in np.unique(text[has]).tolist()}
    small = [
        known and flop[one] is not None and (flop[one] or 0) < SMALL_FLOP
        for known, one in zip(has.tolist(), text.tolist(), strict=True)
    ]
    return ids[np.array(small, np.bool_)]


def _flop(dims: str) -> int | None:
    """2 x m x k x n, times the batch, of the last two inputs that are matrices."""
    try:
        shapes = [shape for shape in json.loads(dims) if isinstance(shape, list)]
    except ValueError:
        return None
    matrices = [s for s in shapes if s and all(isinstance(d, int) for d in s) and len(s) >= 2]
    if len(matrices) < 2:
        return None
    left, right = matrices[-2], matrices[-1]
    return int(2 * np.prod(left, dtype=object) * right[-1])
