"""OP15: numbers of 64 bits where 32 would do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.shapes import input_shapes, input_types, num_elements
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_ATEN = re.compile(r"^aten::(?!to$|_to_copy$|copy_$)")
LEAST_ELEMENTS = 1024
"""Of an input in float64 itself. Losses and counters of a few numbers cost nothing. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.4, 0.6, 0.75
"""On the CPU: half as many numbers fit into a register, and with torch 2.13 a model of products was
measured to take 2 to 3 times as long."""
DEVICE_SHARES = (0.4, 0.5, 0.95)
"""On a device: from one that computes 64 bits at half the rate of 32 (data sheets of A100 and H100)
to one that does so at 1/64 (of GeForce cards)."""


class Float64OpsRule(Rule):
    """Tensors of 64-bit numbers are computed with.

    What it finds
    -------------
    Ops with an input that is in float64 ("double") and has at least 1,024 elements itself, casts
    left out.

    Why it costs time
    -----------------
    Each number takes twice the memory and at least twice the time; no device has fast products for
    it. It comes in unnoticed with numpy arrays, whose default it is, and spreads to all that is
    computed from them.

    How it is computed
    ------------------
    From the recorded type and shape of each input: torch records a number of Python, as in
    `x * 0.5`, as a double without dimensions, which is no tensor. The replay runs the steps with
    60 % of these ops gone (low 40 %, high 75 %); on a device 50 % (40 %, 95 %).

    When it is wrong
    ----------------
    Some sums and scientific models need 64 bits. Ops on lists of tensors (`cat`, `_foreach_`) are
    not counted: the trace holds no number format of them.

    Example
    -------
    `torch.from_numpy(x)` of a numpy array, and a model that was made `.double()` to match it: 42 ms
    per step in place of 14.

    What to try
    -----------
    `torch.from_numpy(x).float()` once where the data are read, or `np.float32` in numpy; a model in
    its default format.

    References
    ----------
    numpy: default types; msprof-analyze names ops in double that fall back to a slower unit.
    """

    code = "OP15"
    name = "float64-ops"
    subject = "64-bit numbers"
    needs = (Need.HOST_OPS, Need.SHAPES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all ops in float64."""
        ops = context.outermost(context.ops(_ATEN))
        ids = _in_double(context, ops[~context.lies_in(ops, context.loading)])
        if ids.size == 0:
            return
        everything = context.removal_of(ids)
        on_device = bool(everything.device)
        low, likely, high = DEVICE_SHARES if on_device else (LOW_SHARE, LIKELY_SHARE, HIGH_SHARE)
        number = max(1, ids.size // context.window.num_steps)
        yield Claim(
            title=f"{number:,} ops per step compute in float64",
            evidence=ids,
            likely=everything.scaled(likely),
            low=everything.scaled(low),
            high=everything.scaled(high),
            confidence=Confidence.MEDIUM,
            tries=(
                "torch.from_numpy(x).float() where the data come in, and the model in float32 "
                "(no .double(), no torch.set_default_dtype(torch.float64))",
            ),
            how=f"the steps replayed with {percent(likely)} of these ops gone",
        )


def _in_double(context: StepContext, ops: U32) -> U32:
    both = zip(input_types(context, ops), input_shapes(context, ops), strict=True)
    return ops[np.array([_is_large(types, shapes) for types, shapes in both], np.bool_)]


def _is_large(
    types: tuple[str, ...] | None, shapes: tuple[tuple[int, ...] | None, ...] | None
) -> bool:
    """Whether an input in float64 is large. A list of tensors has one type and many shapes: where
    the two cannot be paired, nothing is known."""
    if not types or not shapes or len(types) != len(shapes):
        return False
    return any(
        of_it == "double" and shape is not None and num_elements(shape) >= LEAST_ELEMENTS
        for of_it, shape in zip(types, shapes, strict=True)
    )
