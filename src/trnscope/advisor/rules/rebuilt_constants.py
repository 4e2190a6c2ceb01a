"""OP11: the same constants are computed again in every step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.made_values import COMPARISONS, POSITIONS, MadeValues, OpInputs
from trnscope.advisor.rules.op_sequence import OpSequence, all_forward_ops
from trnscope.advisor.rules.shapes import input_shapes, input_types, input_values
from trnscope.advisor.words import percent
from trnscope.store.tables import U32


def _aten(*names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names)


_MADE = _aten("ones", "zeros", "full", "arange", "linspace", "eye", "tril_indices", "triu_indices")
"""Ops that make a tensor out of nothing."""
_MARKS = _aten("triu", "tril", "sin", "cos", "outer", "eye", "tril_indices", "triu_indices")
"""Ops that make a mask or an encoding of it; comparisons do of positions."""
_ENDING = _aten("eq", "ne", "logical_not", "to", "copy_", "cat", "stack")
"""What may come right after."""
_BETWEEN = _aten("mul", "div", "pow", "neg", "reciprocal", "sub", "add", "rsub", "exp", "log")
_VIEWS = _aten(
    "unsqueeze", "expand", "slice", "view", "transpose", "reshape", "select", "alias", "detach",
    "t", "squeeze", "permute",
)  # fmt: skip
_GOES_ON = _MARKS | COMPARISONS | _ENDING | _BETWEEN | _VIEWS
_ASIDE = _aten("empty", "result_type")
"""What stands between ops of a row and takes none of its values."""
LOW_SHARE, LIKELY_SHARE = 0.7, 0.95
"""What is left over is taking a slice of what was kept; high is all of it. Assumptions of ours."""


class RebuiltConstantsRule(Rule):
    """Masks or position encodings are computed again in every step.

    What it finds
    -------------
    Rows of ops in the forward pass that begin by making a tensor out of nothing (`arange`, `full`,
    `ones` ...) and make a triangular mask (`triu`, `tril`, a comparison of positions) or sines and
    cosines of positions of it. Each input of such an op is a number, or a tensor of a size that the
    row made.

    Why it costs time
    -----------------
    The result depends on nothing but the shape, and is the same in every layer and step. A mask of
    T x T elements is written two or three times before it is used.

    How it is computed
    ------------------
    A trace does not say which tensor an op takes: that it is one of the row is told from shapes.
    A row ends at the first op with an input of another size, with a tensor without dimensions, or
    with two tensors where the row made one. The replay runs the steps with 95 % of these ops gone,
    host and device (low 70 %, high all).

    When it is wrong
    ----------------
    If the shapes differ in every step, keep the largest and slice it. Where data have the very
    size of something in the row, they are taken for it. Encodings that also take a kept tensor
    (the frequencies of rotary encodings) are not found.

    Example
    -------
    `torch.triu(torch.full((T, T), -math.inf), 1)` in each of six attention layers, T = 512: half of
    the step.

    What to try
    -----------
    Make it once in `__init__` and keep it: `self.register_buffer("mask", mask, persistent=False)`;
    or make it once per step and pass it to all layers; `is_causal=True` needs no mask.

    References
    ----------
    torch.nn.Module.register_buffer.
    """

    code = "OP11"
    name = "rebuilt-constants"
    subject = "computing the same constants again"
    needs = (Need.HOST_OPS, Need.SHAPES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such rows."""
        rows = _rows(context, all_forward_ops(context))
        if not rows:
            return
        ids = np.unique(np.concatenate(rows)).astype(np.uint32)
        everything = context.removal_of(ids)
        number = max(1, len(rows) // context.window.num_steps)
        times = "once" if number == 1 else f"{number:,} times"
        what = _what(context.names(ids))
        yield Claim(
            title=f"{what} built anew {times} per step",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                'build it once in __init__ and keep it: self.register_buffer("mask", mask, '
                "persistent=False)",
                "is_causal=True of scaled_dot_product_attention, where the mask is causal",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops gone",
        )


def _what(names: list[str]) -> str:
    present = set(names)
    if present & _aten("sin", "cos"):
        return "Position encodings are"
    return "A mask is" if present & (_aten("triu", "tril") | COMPARISONS) else "Constants are"


def _rows(context: StepContext, ops: OpSequence) -> list[U32]:
    """The ops of each constant."""
    inputs = _inputs(context, ops)
    found: list[U32] = []
    row: list[int] = []
    made = MadeValues()
    for at, name in enumerate(ops.names):
        if row and not (ops.same_stretch(row[-1], at) and _belongs(made, inputs[at], name)):
            found += _constant(ops, row)
            row, made = [], MadeValues()
        if name in _MADE:
            made.make(inputs[at])
        if row or name in _MADE:
            row.append(at)
    return found + _constant(ops, row)


def _belongs(made: MadeValues, inputs: OpInputs, name: str) -> bool:
    if name in _MADE or name in _ASIDE:
        return True
    return name in _GOES_ON and made.take(inputs)


def _inputs(context: StepContext, ops: OpSequence) -> list[OpInputs]:
    recorded = zip(
        ops.names,
        input_shapes(context, ops.ids),
        input_types(context, ops.ids),
        input_values(context, ops.ids),
        strict=True,
    )
    return [OpInputs(name, one or (), two or (), three or ()) for name, one, two, three in recorded]


def _constant(ops: OpSequence, row: list[int]) -> list[U32]:
    """Up to the last mark, and what belongs to it; nothing where there is none."""
    names = [ops.names[at] for at in row]
    marks = _MARKS | (COMPARISONS if POSITIONS & set(names) else frozenset())
    last = max((place for place, name in enumerate(names) if name in marks), default=-1)
    if last < 0:
        return []
    while last + 1 < len(row) and names[last + 1] in _ENDING | _VIEWS:
        last += 1
    return [ops.ids[np.array(row[: last + 1], np.int64)]]
