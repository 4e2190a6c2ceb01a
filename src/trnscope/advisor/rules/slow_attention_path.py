"""OP13: attention that could be fused takes the slow path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.needs import has_device_of
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.shapes import input_shapes
from trnscope.advisor.words import percent
from trnscope.model.kinds import DeviceKind
from trnscope.store.tables import U32

_SLOW = re.compile(r"^aten::_scaled_dot_product_attention_math$")
_DROPOUT = re.compile(r"^aten::(dropout|native_dropout|bernoulli_)$")
SHARES = (0.15, 0.4, 0.75)
"""Low, likely and high, from short sequences to long ones, as for attention written out (OP08).
Assumptions of ours."""
DROPOUT_SHARES = (0.4, 0.75, 0.9)
"""The same with dropout, whose random numbers alone take longer than a product: measured on the CPU
with torch 2.13 for 256 tokens (likely)."""


class SlowAttentionPathRule(Rule):
    """`scaled_dot_product_attention` computes step by step, because no fused kernel takes its
    inputs.

    What it finds
    -------------
    `aten::_scaled_dot_product_attention_math`: the fallback of
    `torch.nn.functional.scaled_dot_product_attention`, which multiplies, masks, normalises and
    multiplies in separate passes.

    Why it costs time
    -----------------
    The scores of every token with every other are written to memory and read again several times,
    also in backward.

    How it is computed
    ------------------
    The replay runs the steps with 40 % of these calls and of their backward gone (low 15 %, high
    75 %); where they hold dropout with 75 % (40 %, 90 %).

    When it is wrong
    ----------------
    On a NeuronCore the compiler decides, and the rule is silent. For short sequences the fallback
    is as quick.

    Example
    -------
    `dropout_p=0.1` on the CPU, whose fused kernel has no dropout: 190 ms per step in place of 63.
    Queries of three dimensions in place of four: 18 in place of 14.

    What to try
    -----------
    Queries, keys and values of four dimensions (batch, heads, tokens, width); no dropout on the
    CPU; a mask that needs no gradient; on CUDA bfloat16 or float16, and a head width that is a
    multiple of 8. `with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION):` says why it
    can't.

    References
    ----------
    torch.nn.functional.scaled_dot_product_attention; FlashAttention, arXiv 2205.14135.
    """

    code = "OP13"
    name = "slow-attention-path"
    subject = "attention without its fused kernel"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such calls and their backward."""
        ids = context.outermost(context.ops(_SLOW))
        if ids.size == 0 or has_device_of(context.trace, DeviceKind.NEURON):
            return
        everything = context.removal_of(context.with_backward(ids))
        reason, edit = _reason(context, ids)
        low, likely, high = DROPOUT_SHARES if _has_dropout(context, ids) else SHARES
        yield Claim(
            title=f"scaled_dot_product_attention takes its slow path{reason}",
            evidence=ids,
            likely=everything.scaled(likely),
            low=everything.scaled(low),
            high=everything.scaled(high),
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=(
                edit,
                "ask for the fused kernel, which then says what it lacks: with "
                "torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION):",
            ),
            how=f"the steps replayed with {percent(likely)} of these calls and of their "
            "backward gone",
        )


def _has_dropout(context: StepContext, ids: U32) -> bool:
    return bool(context.lies_in(context.ops(_DROPOUT), ids).any())


def _reason(context: StepContext, ids: U32) -> tuple[str, str]:
    """Why, as far as the trace tells, and the edit for it."""
    if _has_dropout(context, ids):
        return ": it has dropout", (
            "set the dropout of attention to 0 (dropout_p=0.0; on the CPU no fused kernel has it)"
        )
    shapes = [known[0] for known in input_shapes(context, ids) if known]
    if any(shape is not None and len(shape) == 3 for shape in shapes):
        return ": its inputs have three dimensions", (
            "give it four dimensions (batch, heads, tokens, width): q.unsqueeze(1) for one head"
        )
    return "", (
        "four dimensions (batch, heads, tokens, width), no dropout on the CPU, a mask that needs "
        "no gradient; on CUDA bfloat16 or float16"
    )
