"""Which communication of a step reduces gradients, and where in the step it is launched."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_REDUCTION = re.compile(r"all_?reduce|reduce_?scatter", re.IGNORECASE)
_CALLS = re.compile(r"^c10d::|^record_param_comms$|^_c10d_functional::")
_KERNEL_16_BIT = re.compile(r"bf16|f16f16|s16816gemm_f16|fp16|h884|BFloat16|::Half", re.IGNORECASE)
LEAST_ELEMENTS = 4096
"""Of a message that may hold gradients. What else a step averages over the ranks (its loss, counts,
a norm, the statistics of a layer) is smaller, and 16 KB are start-up alone. Ours."""


@dataclass(frozen=True, eq=False, repr=False)
class Reductions:
    """All-reduces and reduce-scatters of the window whose launch is known, by launch."""

    slices: U32
    launched_ns: I64


@once_per_context
def reductions(context: StepContext) -> Reductions:
    """Those that may hold gradients, by their size if it was recorded; empty where there are none.

    How long one takes says nothing of its size: it waits for the slowest rank.
    """
    ids = context.device(SliceKind.COLLECTIVE, pattern=_REDUCTION)
    size = _num_elements(context, ids)
    return _launched(context, ids[(size == 0) | (size >= LEAST_ELEMENTS)])


@once_per_context
def large_reductions(context: StepContext) -> Reductions:
    """Those whose size was recorded and is no metric's."""
    ids = context.device(SliceKind.COLLECTIVE, pattern=_REDUCTION)
    return _launched(context, ids[_num_elements(context, ids) >= LEAST_ELEMENTS])


def _num_elements(context: StepContext, ids: U32) -> I64:
    """What each message holds; 0 where it is not known."""
    known = context.trace.attribute("in_nelems")
    if known is None:
        return np.zeros(ids.size, np.int64)
    has, value = known.of(ids)
    return np.where(has, value.astype(np.int64), 0)


def _launched(context: StepContext, ids: U32) -> Reductions:
    launches = context.trace.launches
    rows = np.flatnonzero(np.isin(launches.device_slice, ids) & launches.has_launch)
    launched = context.trace.slices.start_ns[launches.launch_slice[rows]]
    order = np.argsort(launched, kind="stable")
    return Reductions(np.asarray(launches.device_slice[rows][order], np.uint32), launched[order])


def removal_of(context: StepContext, collectives: U32) -> Removal:
    """Some collectives gone, with the calls that launched them."""
    calls = context.outermost(context.ops(_CALLS))
    mine = context.launches_of(collectives)
    host = context.host_removal(calls[context.holds(calls, mine)])
    return replace(host, device=(DeviceCut(np.sort(collectives)),))


def step_of(context: StepContext, times: I64) -> I64:
    """The number of the step in the window that each time lies in."""
    ends = np.array([step.end_ns for step in context.window.steps], np.int64)
    return np.searchsorted(ends, times, side="right")


def is_compute_16_bit(context: StepContext) -> bool:
    """Whether ops or kernels of the window compute in bfloat16 or float16."""
    types = context.trace.attribute("input_types")
    if types is not None:
        has, text = types.of(context.ops())
        found = {context.trace.strings[one] for one in np.unique(text[has]).tolist()}
        if any("BFloat16" in one or "Half" in one for one in found):
            return True
    return context.device(SliceKind.KERNEL, pattern=_KERNEL_16_BIT).size > 0
