"""CM06: gradients travel in float32 though the model computes in 16 bits."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.collective_ops import is_compute_16_bit, large_reductions
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_FLOAT32 = re.compile(r"^(float32|float|f32)$", re.IGNORECASE)
_NAMED_FLOAT32 = re.compile(r"_Sum_(float|f32)(?![0-9])", re.IGNORECASE)
_LARGE_NS = 50_000
"""A shorter reduction is latency, which half the bytes do not change. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.25, 0.45, 0.5
"""Half of the bytes go; the start-up of each collective stays, and the casts cost something."""


class Fp32ReductionRule(Rule):
    """Gradients travel between ranks in float32, though the model computes in 16 bits.

    What it finds
    -------------
    All-reduces or reduce-scatters of 4,096 float32 numbers or more in steps whose ops compute in
    bfloat16 or float16 (autocast, say), without those shorter than 50 µs. Smaller ones, a loss or
    a metric, are no gradients, however long they wait for a slow rank; where sizes were not
    recorded nothing is said.

    Why it costs time
    -----------------
    A reduction takes time by its bytes. Gradients that were computed with 8 bits of mantissa lose
    little if they travel with as many.

    How it is computed
    ------------------
    The replay runs the steps with 45 % of these reductions' time gone (low 25 %, high half).

    When it is wrong
    ----------------
    Many ranks add many gradients: sums of bfloat16 over hundreds of ranks lose digits. Watch the
    loss. What a reduction waits for a slower rank comes back with no type. Where reductions hide
    behind backward nothing comes back, and nothing is said.

    Example
    -------
    DDP with autocast: weights, and so gradients, are float32; 101 MB per step instead of 50.

    What to try
    -----------
    `model.register_comm_hook(None, default_hooks.bf16_compress_hook)` for DDP;
    `MixedPrecision(reduce_dtype=torch.bfloat16)` for FSDP.

    References
    ----------
    torch: "DDP communication hooks".
    """

    code = "CM06"
    name = "fp32-reduction"
    subject = "reducing gradients in float32"
    needs = (Need.HOST_OPS, Need.DEVICE_WORK, Need.COLLECTIVES, Need.MESSAGES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the large float32 reductions."""
        ids = _in_float32(context, large_reductions(context).slices)
        ids = np.sort(ids[context.trace.slices.dur_ns[ids] >= _LARGE_NS])
        if ids.size == 0 or not is_compute_16_bit(context):
            return
        everything = Removal((), (DeviceCut(ids),))
        number = ids.size / context.window.num_steps
        yield Claim(
            title=f"Gradients travel in float32 though the model computes in 16 bits: "
            f"{number:.0f} reductions per step",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "DDP: model.register_comm_hook(None, default_hooks.bf16_compress_hook)",
                "FSDP: MixedPrecision(reduce_dtype=torch.bfloat16)",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these reductions' time gone",
        )


def _in_float32(context: StepContext, ids: U32) -> U32:
    """By the recorded type; where it is absent, by the kernel's name."""
    types = context.trace.attribute("dtype")
    if types is None:
        return _by_name(context, ids)
    has, text = types.of(ids)
    is_float = [
        bool(known and _FLOAT32.match(context.trace.strings[one]))
        for known, one in zip(has.tolist(), text.tolist(), strict=True)
    ]
    return ids[np.array(is_float, np.bool_)]


def _by_name(context: StepContext, ids: U32) -> U32:
    named = [_NAMED_FLOAT32.search(name) is not None for name in context.names(ids)]
    return ids[np.array(named, np.bool_)]
