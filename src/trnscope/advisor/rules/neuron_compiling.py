"""Finding what the Neuron compiler did inside the recorded steps."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64
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
    """Whether compiling goes on after the first half of the steps; see :func:`_is_again`."""


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
    compiling = np.unique(np.searchsorted(ends, trace.slices.start_ns[ids], side="right"))
    return NeuronCompilation(
        slices=ids,
        total_ns=int(trace.slices.dur_ns[ids].sum()),
        num_steps=len(steps),
        num_compiling=compiling.size,
        is_again=_is_again(compiling, len(steps)),
    )


def _is_again(compiling: I64, num_steps: int) -> bool:
    """Whether two steps of the later half compile, or one of it and half of all steps.

    The name of what called the compiler says nothing: two layers call the same op, and each of them
    is compiled once.
    """
    late = int(np.count_nonzero(2 * compiling >= num_steps))
    return late >= 2 or (late == 1 and compiling.size >= max(2, num_steps / 2))
