"""OP08: attention by two products and a softmax."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.op_sequence import OpSequence, forward_ops
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_PRODUCTS = frozenset(("aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum"))
_SOFTMAX = frozenset(("aten::softmax", "aten::_softmax"))
_REACH = 8
"""Ops between a product and the softmax: scale, mask, casts and copies."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.25, 0.65, 0.9
"""From short sequences, where little but launches goes, to long ones, where the scores are never
written (FlashAttention, arXiv 2205.14135, reports 2 to 4 times for 512 to 2048 tokens)."""


class UnfusedAttentionRule(Rule):
    """Attention is computed by two products with a softmax between them.

    What it finds
    -------------
    A batched product, a softmax and another batched product in the forward pass, with no
    `scaled_dot_product_attention`.

    Why it costs time
    -----------------
    The scores of every token with every other are written to memory and read again several times.
    Fused attention keeps them on the chip.

    How it is computed
    ------------------
    The replay runs the steps with 65 % of everything from the first product to the second, and of
    its backward, gone (low 25 %, high 90 %).

    When it is wrong
    ----------------
    For sequences shorter than some 128 tokens fused attention gains little. A product before a
    softmax also ends a classifier, but no product follows there.

    Example
    -------
    `softmax(q @ k.transpose(-2, -1) / sqrt(d) + mask) @ v`.

    What to try
    -----------
    `torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)` with the mask that
    is added today. Only where that mask is causal (no token sees a later one), `is_causal=True`
    does without it and is faster; elsewhere it would change what the model computes.

    References
    ----------
    FlashAttention, arXiv 2205.14135; TraceLens.
    """

    code = "OP08"
    name = "unfused-attention"
    subject = "attention without a fused op"
    needs = (Need.HOST_OPS,)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all attentions and their backward."""
        ids = _attention_ops(forward_ops(context))
        if ids.size == 0:
            return
        everything = context.removal_of(context.with_backward(ids))
        yield Claim(
            title="Attention is computed by separate products and a softmax",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=(
                "torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask) in its "
                "place, with the mask of today; is_causal=True only for a causal model",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops and of their "
            "backward gone",
        )


def _attention_ops(ops: OpSequence) -> U32:
    parts = [np.empty(0, np.uint32)]
    for at, name in enumerate(ops.names):
        if name not in _SOFTMAX:
            continue
        first = _nearest(ops, at, -1)
        last = _nearest(ops, at, +1)
        if first is not None and last is not None:
            parts.append(ops.part(first, last))
    return np.unique(np.concatenate(parts)).astype(np.uint32)


def _nearest(ops: OpSequence, at: int, direction: int) -> int | None:
    """The nearest product before or after, in the same step."""
    for step in range(1, _REACH + 1):
        place = at + direction * step
        if not 0 <= place < len(ops.names) or not ops.same_stretch(at, place):
            return None
        if ops.names[place] in _PRODUCTS:
            return place
    return None
