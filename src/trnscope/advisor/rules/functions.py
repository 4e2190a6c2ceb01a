"""Which function of Python code some time of the main thread went to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.source import is_named_code, short_frame
from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64, Intervals
from trnscope.store.tables import U32

MOST = 0.5
"""Share of the time that one function must take to be named: a majority."""


@dataclass(frozen=True, eq=False, repr=False)
class Function:
    """A function, and its calls in that time."""

    name: str
    calls: U32


def main_function(context: StepContext, time: Intervals) -> Function | None:
    """The innermost function that takes more than half of some time of the main thread."""
    frames = slices_named(context.trace, context.on_main(context.frames()), is_named_code)
    slices = context.trace.slices
    start = slices.start_ns[frames]
    index = np.searchsorted(time.start, start, side="right") - 1
    inside = (index >= 0) & (start + slices.dur_ns[frames] <= _at(time.end, index))
    frames = frames[inside]
    best: tuple[float, int, U32] | None = None
    for name in np.unique(slices.name[frames]).tolist():
        calls = context.outermost(frames[slices.name[frames] == name])
        taken_ns = int(slices.dur_ns[calls].sum())
        depth = float(slices.depth[calls].mean())
        if taken_ns > MOST * time.total and (best is None or depth > best[0]):
            best = (depth, name, calls)
    return None if best is None else Function(short_frame(context.trace.strings[best[1]]), best[2])


def _at(ends: I64, index: I64) -> I64:
    return ends[np.maximum(index, 0)] if ends.size else index
