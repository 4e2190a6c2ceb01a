"""OP11: the same constants are computed again in every step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.op_sequence import OpSequence, all_forward_ops
from trnscope.advisor.words import percent
from trnscope.store.tables import U32


def _aten(*names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names)


_MADE = _aten("ones", "zeros", "full", "arange", "linspace", "eye", "tril_indices", "triu_indices")
"""Ops that make a tensor out of nothing."""
_MARKS = _aten("triu", "tril", "sin", "cos", "outer", "eye", "tril_indices", "triu_indices")
"""Ops that make a mask or an encoding of it."""
_COMPARED = _aten("ge", "gt", "le", "lt")
"""The same, of positions."""
_ENDING = _aten("eq", "ne", "logical_not", "to", "copy_", "cat", "stack")
"""What may come right after."""
_BETWEEN = _aten("mul", "div", "pow", "neg", "reciprocal", "sub", "add", "rsub", "exp", "log")
_VIEWS = _aten(
    "unsqueeze", "expand", "slice", "view", "transpose", "reshape", "select", "alias", "detach",
    "t", "squeeze", "permute", "empty", "lift_fresh", "result_type",
)  # fmt: skip
LOW_SHARE, LIKELY_SHARE = 0.7, 0.95
"""What is left over is taking a slice of what was kept; high is all of it. Assumptions of ours."""


class RebuiltConstantsRule(Rule):
    """Masks or position encodings are computed again in every step.

    What it finds
    -------------
    Rows of ops in the forward pass that begin by making a tensor out of nothing (`arange`, `full`,
    `ones` ...) and make a triangular mask (`triu`, `tril`, a comparison of positions) or sines and
    cosines of positions of it.

    Why it costs time
    -----------------
    The result depends on nothing but the shape, and is the same in every layer and step. A mask of
    T x T elements is written two or three times before it is used.

    How it is computed
    ------------------
    The replay runs the steps with 95 % of these ops gone, host and device (low 70 %, high all).

    When it is wrong
    ----------------
    If the shapes differ in every step, keep the largest and slice it.

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
    needs = (Need.HOST_OPS,)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such rows."""
        rows = _rows(all_forward_ops(context))
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
    return "A mask is" if present & (_aten("triu", "tril") | _COMPARED) else "Constants are"


def _rows(ops: OpSequence) -> list[U32]:
    """The ops of each constant."""
    found: list[U32] = []
    row: list[int] = []
    for at, name in enumerate(ops.names):
        if row and not ops.same_stretch(row[-1], at):
            found += _constant(ops, row)
            row = []
        if name in _MADE or (row and name in _MARKS | _COMPARED | _ENDING | _BETWEEN | _VIEWS):
            row.append(at)
        elif row:
            found += _constant(ops, row)
            row = []
    return found + _constant(ops, row)


def _constant(ops: OpSequence, row: list[int]) -> list[U32]:
    """Up to the last mark, and what belongs to it; nothing where there is none."""
    names = [ops.names[at] for at in row]
    marks = _MARKS | (_COMPARED if "aten::arange" in names else frozenset())
    last = max((place for place, name in enumerate(names) if name in marks), default=-1)
    if last < 0:
        return []
    while last + 1 < len(row) and names[last + 1] in _ENDING | _VIEWS:
        last += 1
    return [ops.ids[np.array(row[: last + 1], np.int64)]]
