"""OP07: casts from one number format to another."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.unfused_norm import norm_ops
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind

_CAST = re.compile(r"^aten::_to_copy$")
LOW_SHARE, LIKELY_SHARE = 0.3, 0.9
"""Some casts stay, around ops that need float32: assumptions of ours; high is all of them."""


class DtypeCastsRule(Rule):
    """Tensors are cast from one number format to another all through the step.

    What it finds
    -------------
    `aten::_to_copy` that moves nothing between host and device: what `.to(dtype)`, `.float()`,
    `.half()` and autocast do.

    Why it costs time
    -----------------
    A cast reads and writes the whole tensor. Autocast casts the weights again in every forward
    pass, and once more in each of several passes without its cache.

    How it is computed
    ------------------
    The replay runs the steps with 90 % of the casts and of their backward gone, host and device
    (low 30 %, high all).

    When it is wrong
    ----------------
    Casts are what mixed precision costs; the products they make quicker may be worth more.

    Example
    -------
    `x.double()` of an input that comes from numpy, then `.float()` in each layer.

    What to try
    -----------
    Keep weights and activations in bfloat16 (`model.to(torch.bfloat16)`); convert the input once,
    in the loader; `torch.compile`, which fuses casts into their neighbours.

    References
    ----------
    xprof's needless conversions.
    """

    code = "OP07"
    name = "dtype-casts"
    subject = "casts between number formats"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all casts outside of the loader and of norms."""
        casts = context.outermost(context.ops(_CAST))
        outside = np.concatenate((context.loading, norm_ops(context))).astype(np.uint32)
        casts = casts[~context.lies_in(casts, outside)]
        moving = context.launches_of(context.device(SliceKind.MEMCPY))
        casts = casts[~context.holds(casts, moving)]
        if casts.size == 0:
            return
        everything = context.removal_of(context.with_backward(casts))
        number = casts.size // context.window.num_steps
        yield Claim(
            title=f"{number:,} casts between number formats per step",
            evidence=casts,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.LOW,
            with_backward=True,
            tries=(
                "convert inputs and weights once, outside of the step, and keep one format",
                "torch.compile, which fuses casts into their neighbours",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the casts gone",
        )
