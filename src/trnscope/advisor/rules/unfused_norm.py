"""OP03: a normalisation written out op by op."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.op_sequence import OpSequence, forward_ops
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_ROOTS = frozenset(("aten::rsqrt", "aten::sqrt"))
_AVERAGES = frozenset(("aten::mean", "aten::var", "aten::sum", "aten::std"))
_SQUARES = frozenset(("aten::pow", "aten::square", "aten::mul", "aten::var", "aten::std"))
_BEFORE = frozenset(
    ("aten::pow", "aten::square", "aten::mul", "aten::sub", "aten::to", "aten::mean")
)
_AFTER = frozenset(("aten::mul", "aten::div", "aten::add", "aten::to", "aten::reciprocal"))
_REACH_BACK, _REACH_ON = 6, 4
"""Ops before and after the root that may belong to a norm: layer norm by hand has nine in all."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.4, 0.8, 0.95
"""A norm of six ops reads and writes its input six times, a fused one once: 5/6 goes where memory
is the limit, less where arithmetic or dispatch is. Assumptions of ours."""


class UnfusedNormRule(Rule):
    """A normalisation is computed op by op instead of by one fused op.

    What it finds
    -------------
    A square or variance, a mean, a square root and the products around them, in a row: RMSNorm or
    LayerNorm as one writes it from the paper.

    Why it costs time
    -----------------
    Every op reads and writes the whole activation, and backward does it again. Little arithmetic,
    much memory traffic, and a launch for each.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of these ops and of their backward gone, host and device
    (low 40 %, high 95 %). Backward ops are found by autograd's sequence numbers.

    When it is wrong
    ----------------
    A root and a mean in a row may be another formula (a standard deviation for a report). In a
    model that is compiled the ops do not show, and the rule is silent.

    Example
    -------
    `x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight`: five ops each way.

    What to try
    -----------
    `torch.nn.functional.rms_norm`, `layer_norm`; `torch.compile` of that module.

    References
    ----------
    TraceLens' norm rule.
    """

    code = "OP03"
    name = "unfused-norm"
    subject = "normalisation op by op"
    needs = (Need.HOST_OPS,)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all norms and their backward."""
        ids = norm_ops(context)
        if ids.size == 0:
            return
        everything = context.removal_of(context.with_backward(ids))
        yield Claim(
            title="A normalisation is computed op by op",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=(
                "torch.nn.functional.rms_norm (torch.nn.RMSNorm) or layer_norm in its place",
                "torch.compile the module that computes it",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops and of their "
            "backward gone",
        )


@once_per_context
def norm_ops(context: StepContext) -> U32:
    """The forward ops of norms written out, rising."""
    ops = forward_ops(context)
    parts = [
        _around(ops, at)
        for at, name in enumerate(ops.names)
        if name in _ROOTS and _looks_like_a_norm(ops, at)
    ]
    return np.unique(np.concatenate([np.empty(0, np.uint32), *parts])).astype(np.uint32)


def _looks_like_a_norm(ops: OpSequence, at: int) -> bool:
    before = _names(ops, at, range(max(0, at - _REACH_BACK), at))
    after = _names(ops, at, range(at + 1, min(len(ops.names), at + 1 + _REACH_ON)))
    scales = "aten::mul" in after or "aten::div" in after
    return scales and bool(_AVERAGES & set(before[-3:])) and bool(_SQUARES & set(before))


def _names(ops: OpSequence, at: int, places: range) -> list[str]:
    return [ops.names[place] for place in places if ops.same_stretch(place, at)]


def _around(ops: OpSequence, at: int) -> U32:
    last = at
    averages = [
        place
        for place in range(max(0, at - _REACH_BACK), at)
        if ops.names[place] in _AVERAGES and ops.same_stretch(place, at)
    ]
    first = averages[0] if averages else at
    while at - first < _REACH_BACK and _is_one(ops, at, first - 1, _BEFORE):
        first -= 1
    while last - at < _REACH_ON and _is_one(ops, at, last + 1, _AFTER):
        last += 1
    return ops.part(first, last)


def _is_one(ops: OpSequence, at: int, place: int, wanted: frozenset[str]) -> bool:
    inside = 0 <= place < len(ops.names) and ops.same_stretch(place, at)
    return inside and ops.names[place] in wanted
