"""The ops of the forward pass one after another, as the model's code calls them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import ATEN, OPTIMIZER, StepContext, once_per_context
from trnscope.store.tables import U32

_NOT_FORWARD = re.compile(r"autograd::engine|Backward\d*$|^CompiledFunction|^Torch-Compiled")
_NO_WORK = frozenset(
    "aten::" + name
    for name in (
        "view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "slice",
        "select", "detach", "alias", "as_strided", "split", "chunk", "unbind", "size", "flatten",
        "result_type", "lift_fresh", "empty", "zeros", "ones", "empty_like", "unflatten",
    )
)  # fmt: skip
"""Ops that move no data: they stand in no chain and break none."""
POINTWISE = frozenset(
    "aten::" + name
    for name in (
        "add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "div", "div_", "pow", "square", "neg",
        "sqrt", "rsqrt", "reciprocal", "exp", "log", "tanh", "erf", "sigmoid", "abs", "where",
        "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "masked_fill", "masked_fill_",
        "relu", "gelu", "silu", "softplus", "addcmul", "addcdiv", "lerp", "sin", "cos",
    )
)  # fmt: skip
"""Ops that compute each element by itself."""


@dataclass(frozen=True, eq=False, repr=False)
class OpSequence:
    """Ops that no other aten op contains, by thread, then time."""

    ids: U32
    names: list[str]
    stretches: list[tuple[int, int]]
    """Thread and step of each: nothing in a row reaches from one to another."""

    def part(self, first: int, last: int) -> U32:
        """Slice ids of the places ``first`` up to and with ``last``."""
        return self.ids[first : last + 1]

    def same_stretch(self, first: int, last: int) -> bool:
        """Whether both places are on one thread and in one step."""
        return self.stretches[first] == self.stretches[last]


@once_per_context
def forward_ops(context: StepContext) -> OpSequence:
    """The ops of the model and the loss that work: not of backward, the optimizer or the loader."""
    return without(all_forward_ops(context), _NO_WORK)


@once_per_context
def all_forward_ops(context: StepContext) -> OpSequence:
    """The same, with the ops that move no data."""
    ids = context.outermost(context.ops(ATEN))
    outside = np.concatenate(
        (context.ops(_NOT_FORWARD), context.ranges(OPTIMIZER), context.loading)
    ).astype(np.uint32)
    ids = ids[~context.lies_in(ids, outside)]
    track, start = context.trace.slices.track[ids], context.trace.slices.start_ns[ids]
    ends = np.array([step.end_ns for step in context.window.steps], np.int64)
    step = np.searchsorted(ends, start, side="right")
    stretches = list(zip(track.tolist(), step.tolist(), strict=True))
    return OpSequence(ids, context.names(ids), stretches)


def without(ops: OpSequence, names: frozenset[str]) -> OpSequence:
    """Those of other names."""
    kept = [at for at, name in enumerate(ops.names) if name not in names]
    names_kept, stretches = [ops.names[at] for at in kept], [ops.stretches[at] for at in kept]
    return OpSequence(ops.ids[np.array(kept, np.int64)], names_kept, stretches)
