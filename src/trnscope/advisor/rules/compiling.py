"""Finding what torch.compile recorded of itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.analysis.names import slices_named
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_COMPILING = re.compile(r"^(entire_frame_compile|backend_compile|dynamo)$|\(dynamo_timed\)$")
_COMPILE_ID = re.compile(r"compile_id=(\d+)/(\d+)")


@dataclass(frozen=True, eq=False, repr=False)
class Compilation:
    """Compiling inside the recorded steps, those that stand out too."""

    slices: U32
    """Outermost slices of compiling."""
    total_ns: int
    num_steps: int
    is_again: bool
    """Whether any of it compiled code a second time, for other inputs."""

    @property
    def per_step_ns(self) -> int:
        """Mean over all recorded steps."""
        return self.total_ns // self.num_steps


def compilation(context: StepContext) -> Compilation | None:
    """What was compiled inside the steps; absent where nothing was."""
    trace, steps = context.trace, context.all_steps
    ids = slices_named(trace, trace.slices.of_kind(SliceKind.CPU_OP), _COMPILING.search)
    start = trace.slices.start_ns[ids]
    first, last = steps[0].start_ns, steps[-1].end_ns
    ids = context.outermost(ids[(start >= first) & (start < last)])
    if ids.size == 0:
        return None
    total_ns = int(trace.slices.dur_ns[ids].sum())
    return Compilation(ids, total_ns, len(steps), _compiles_again(context, ids))


def _compiles_again(context: StepContext, outer: U32) -> bool:
    """Whether a compile id inside is of a second or later version: ``0/1``."""
    trace = context.trace
    named = slices_named(trace, trace.slices.of_kind(SliceKind.ANNOTATION), _COMPILE_ID.search)
    inside = named[context.lies_in(named, outer)]
    found = (_COMPILE_ID.search(name) for name in context.names(inside))
    return any(int(one[2]) > 0 for one in found if one is not None)


def regions(context: StepContext) -> tuple[U32, list[str]]:
    """Runs of compiled code on the main thread, by time, and their names."""
    ids = context.on_main(context.ops(re.compile(r"^Torch-Compiled Region: ")))
    ids = ids[np.argsort(context.trace.slices.start_ns[ids], kind="stable")]
    return ids, context.names(ids)
