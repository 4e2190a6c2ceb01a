"""Which call caused which device work: each piece of work is charged to one call.

A piece goes to the innermost op around its launch; without one, to the innermost annotation
around it, on the launching thread or else on the thread that called backward; without either
it is unattributed. The launch itself is never charged. What a call was charged counts as well
towards everything around it on its thread, and towards the annotations that were open, at the
time of the launch, on the thread that the launching thread worked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trnscope import _native
from trnscope.analysis.backward import calling_threads
from trnscope.analysis.grouping import I64, U32, group_sum
from trnscope.analysis.host_calls import HostCalls
from trnscope.analysis.op_groups import CallGroups
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool


@dataclass(frozen=True, eq=False, repr=False)
class DeviceTime:
    """Device time of each group, ns."""

    self_ns: I64
    total_ns: I64
    unattributed_ns: int


@dataclass(frozen=True, eq=False, repr=False)
class _Charges:
    """Device work and the call that each piece is charged to, a row a piece."""

    work_ns: I64
    has_call: Bool
    call: U32
    at_ns: I64
    """When the work was launched."""
    caller: I64
    """Track that the launching thread worked for."""


def device_time(trace: Trace, calls: HostCalls, groups: CallGroups) -> DeviceTime:
    """Self and total device time of each group of calls."""
    charges = _charge(trace, calls)
    call, work_ns = charges.call[charges.has_call], charges.work_ns[charges.has_call]
    skipped = calls.is_duplicate.view(np.uint8)
    total_ns = _native.charge_upwards(
        calls.above, groups.key, skipped, call, work_ns, groups.num_groups
    )
    return DeviceTime(
        self_ns=_sum(groups, call, work_ns),
        total_ns=total_ns + _from_other_threads(trace, groups, charges),
        unattributed_ns=int(charges.work_ns[~charges.has_call].sum()),
    )


def _sum(groups: CallGroups, slices: U32, work_ns: I64) -> I64:
    key = groups.key[slices]
    is_call = key < groups.num_groups
    return group_sum(key[is_call], work_ns[is_call], groups.num_groups)[1]


def _charge(trace: Trace, calls: HostCalls) -> _Charges:
    slices, launches = trace.slices, trace.launches
    has, call = launches.has_op.copy(), launches.op_slice.copy()
    source = np.where(launches.has_launch, launches.launch_slice, call)
    caller = calling_threads(trace)[slices.track[source]]
    left = np.flatnonzero(launches.has_launch & ~has)
    if left.size:
        is_annotation = slices.kind == SliceKind.ANNOTATION
        has[left], call[left] = _around(slices.parent, is_annotation, source[left])
    left = np.flatnonzero(launches.has_launch & ~has)
    # The deepest lane comes last, so that the innermost annotation stays.
    for annotation, index in _open_annotations(trace, caller[left], slices.start_ns[source[left]]):
        has[left[index]], call[left[index]] = True, annotation
    # An op that is never listed passes its work on to the call around it.
    found, call = _around(calls.parent, calls.is_call, call)
    return _Charges(
        work_ns=slices.dur_ns[launches.device_slice],
        has_call=has & found,
        call=_heads(calls, call),
        at_ns=slices.start_ns[source],
        caller=caller,
    )


def _around(parent: U32, wanted: Bool, ids: U32) -> tuple[Bool, U32]:
    """For each slice the nearest wanted one at or above it: (found, slices)."""
    found, slices = _native.climb(
        np.ascontiguousarray(parent), wanted.view(np.uint8), np.ascontiguousarray(ids, np.uint32)
    )
    return found != 0, slices


def _heads(calls: HostCalls, call: U32) -> U32:
    """The calls themselves, or the ones that they are merged into."""
    merged = np.flatnonzero(calls.is_duplicate[call])
    heads = call.copy()
    heads[merged] = calls.owners[np.searchsorted(calls.duplicates, call[merged])]
    return heads


def _from_other_threads(trace: Trace, groups: CallGroups, charges: _Charges) -> I64:
    """Work launched by other threads, by the annotations open on the thread they worked for."""
    total_ns = np.zeros(groups.num_groups, np.int64)
    elsewhere = charges.has_call & (trace.slices.track[charges.call] != charges.caller)
    work_ns = charges.work_ns[elsewhere]
    caller, at_ns = charges.caller[elsewhere], charges.at_ns[elsewhere]
    for annotation, index in _open_annotations(trace, caller, at_ns):
        total_ns += _sum(groups, annotation, work_ns[index])
    return total_ns


def _open_annotations(trace: Trace, tracks: I64, at_ns: I64) -> Iterator[tuple[U32, I64]]:
    """Annotations open on given tracks at given times: (slices, indices), outermost lanes first.

    Each pair holds one lane's annotations, and for each the row of ``tracks`` and ``at_ns``
    that it answers.
    """
    lanes, slices = trace.lanes, trace.slices
    is_asked = np.bincount(tracks, minlength=len(trace.tracks)) > 0
    for lane in np.flatnonzero(is_asked[lanes.track]).tolist():
        first, last = int(lanes.first[lane]), int(lanes.first[lane] + lanes.count[lane])
        if not (slices.kind[first:last] == SliceKind.ANNOTATION).any():
            continue
        asked = np.flatnonzero(tracks == lanes.track[lane])
        row = np.searchsorted(slices.start_ns[first:last], at_ns[asked], side="right") + first - 1
        at = np.maximum(row, first)
        is_open = (row >= first) & (slices.start_ns[at] + slices.dur_ns[at] > at_ns[asked])
        is_open &= slices.kind[at] == SliceKind.ANNOTATION
        yield at[is_open].astype(np.uint32), asked[is_open]
