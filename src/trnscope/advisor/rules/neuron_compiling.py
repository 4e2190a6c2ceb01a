"""Finding what the Neuron compiler did inside the recorded steps."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.analysis.names import slices_named
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_COMPILER = re.compile(r"^neuronx?-cc\b|^neuronx_cc")


@dataclass(frozen=True, eq=False, repr=False)
class NeuronCompilation:
    """Programs compiled inside the recorded steps, those that stand out too."""

    slices: U32
    total_ns: int
    num_steps: int
    """Of the trace."""
    num_compiling: int
    """Those in which anything was compiled."""
    is_again: bool
    """Whether an op or a graph was compiled in one step and again in a later one."""


@once_per_context
def neuron_compilation(context: StepContext) -> NeuronCompilation | None:
    """Absent where the compiler did not run in the steps."""
    trace, steps = context.trace, context.all_steps
    ids = slices_named(trace, trace.slices.of_kind(SliceKind.RUNTIME), _COMPILER.search)
    start = trace.slices.start_ns[ids]
    ids = ids[(start >= steps[0].start_ns) & (start < steps[-1].end_ns)]
    if ids.size == 0:
        return None
    ends = np.array([step.end_ns for step in steps], np.int64)
    step_of = np.searchsorted(ends, trace.slices.start_ns[ids], side="right")
    return NeuronCompilation(
        slices=ids,
        total_ns=int(trace.slices.dur_ns[ids].sum()),
        num_steps=len(steps),
        num_compiling=np.unique(step_of).size,
        is_again=_is_again(context, ids, step_of.tolist()),
    )


def _is_again(context: StepContext, ids: U32, step_of: list[int]) -> bool:
    """Whether one op, by the name of what called the compiler, compiles in several steps."""
    parents = context.trace.slices.parent[ids]
    seen: defaultdict[str, set[int]] = defaultdict(set)
    for name, step in zip(context.names(np.asarray(parents, np.uint32)), step_of, strict=True):
        seen[name].add(step)
    return any(len(steps) > 1 for steps in seen.values())
