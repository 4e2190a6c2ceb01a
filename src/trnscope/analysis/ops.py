"""Time by op, as torch's own table counts it: calls, self and total time, host and device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

import numpy as np

from trnscope import _native
from trnscope.analysis.grouping import I64, U32, distinct, group_sum, running_max
from trnscope.analysis.host_calls import HostCalls, host_calls
from trnscope.analysis.op_device import DeviceTime, device_time
from trnscope.analysis.op_groups import CallGroups, GroupBy, RowKey, group_calls
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_MEMORY = "[memory]"
_OUT_OF_MEMORY = "[OutOfMemory]"


@dataclass(frozen=True)
class OpRow:
    """All calls of one op (or annotation, runtime call, Python function ...). Times in ns."""

    key: RowKey
    calls: int
    self_cpu_ns: int
    cpu_total_ns: int
    self_device_ns: int | None
    """Absent where no trace that holds such calls holds any device work."""
    device_total_ns: int | None

    @property
    def name(self) -> str:
        """The name that the calls share."""
        return self.key.name

    @property
    def input_shapes(self) -> str | None:
        """Their input shapes, when grouped by them and recorded."""
        return self.key.input_shapes

    def to_json(self) -> dict[str, object]:
        """One member of the contract's ``ops``."""
        row: dict[str, object] = {
            "name": self.name,
            "calls": self.calls,
            "self_cpu_ns": self.self_cpu_ns,
            "cpu_total_ns": self.cpu_total_ns,
            "self_device_ns": self.self_device_ns,
            "device_total_ns": self.device_total_ns,
        }
        if self.key.input_shapes is not None:
            row["input_shapes"] = _shapes_json(self.key.input_shapes)
        if self.key.stack is not None:
            row["stack"] = list(self.key.stack)
        if self.key.module is not None:
            row["module"] = self.key.module
        return row


@dataclass(frozen=True)
class OpsTable:
    """Time by op over all traces of a profile; rows by self time, longest first.

    ``self_cpu_ns`` is exclusive and adds up, ``cpu_total_ns`` is inclusive and does not.
    ``self_device_ns`` of all rows and ``unattributed_device_ns`` add up to
    ``device_sum_ns``, the durations of all device work.
    """

    group_by: GroupBy
    rows: tuple[OpRow, ...]
    has_device: bool
    """Whether device work was recorded; without it there are no device columns to show."""
    unattributed_device_ns: int | None
    device_sum_ns: int | None

    @property
    def self_cpu_ns(self) -> int:
        """Self time of all rows: the denominator of a row's share of CPU time."""
        return sum(row.self_cpu_ns for row in self.rows)

    def to_json(self) -> dict[str, object]:
        """The document that design.md fixes for ``ops``."""
        return {
            "schema": 1,
            "ops": [row.to_json() for row in self.rows],
            "unattributed_device_ns": self.unattributed_device_ns,
        }


class _Times(NamedTuple):
    """Sums of one row while traces are added up."""

    calls: int = 0
    self_cpu_ns: int = 0
    cpu_total_ns: int = 0
    self_device_ns: int = 0
    device_total_ns: int = 0
    traces_with_device: int = 0
    """Of the traces that hold its calls, how many hold device work."""

    def plus(self, other: _Times) -> _Times:
        return _Times(*map(add, self, other))


def ops(
    profile: Profile,
    group_by: GroupBy | str = GroupBy.NAME,
    *,
    python: bool = True,
    stack_depth: int | None = None,
) -> OpsTable:
    """Calls, self and total time by op.

    ``python`` lists Python frames as rows of their own where the trace holds any, as torch
    does, so that what an op spends in them is theirs; without it their time belongs to the
    op or annotation around them. Rows by stack or module never list frames. A trace of
    frames alone always lists them. ``stack_depth`` keeps that many frames, innermost first.

    Raises :class:`UsageError` where stacks or modules are asked for and were not recorded.
    """
    group_by = GroupBy(group_by)
    python = python and group_by in (GroupBy.NAME, GroupBy.SHAPE)
    rows: dict[RowKey, _Times] = {}
    unattributed_ns = device_sum_ns = 0
    has_device = False
    for trace in profile.traces:
        calls = host_calls(trace, python=python)
        groups = group_calls(trace, calls, group_by, stack_depth)
        work = trace.launches.device_slice
        device = device_time(trace, calls, groups) if work.size else None
        for key, times in _trace_rows(trace, calls, groups, device):
            known = rows.get(key)
            rows[key] = times if known is None else known.plus(times)
        if device is not None:
            has_device = True
            unattributed_ns += device.unattributed_ns
            device_sum_ns += int(trace.slices.dur_ns[work].sum())
    return OpsTable(
        group_by=group_by,
        rows=_ordered(rows),
        has_device=has_device,
        unattributed_device_ns=unattributed_ns if has_device else None,
        device_sum_ns=device_sum_ns if has_device else None,
    )


def _ordered(rows: dict[RowKey, _Times]) -> tuple[OpRow, ...]:
    listed = [
        OpRow(
            key,
            times.calls,
            times.self_cpu_ns,
            times.cpu_total_ns,
            times.self_device_ns if times.traces_with_device else None,
            times.device_total_ns if times.traces_with_device else None,
        )
        for key, times in rows.items()
    ]
    listed.sort(key=lambda row: (-(row.self_device_ns or 0), -row.self_cpu_ns, row.name))
    return tuple(listed)


def _trace_rows(
    trace: Trace, calls: HostCalls, groups: CallGroups, device: DeviceTime | None
) -> Iterator[tuple[RowKey, _Times]]:
    count, self_ns, total_ns = _host_time(trace, calls, groups)
    used = np.flatnonzero(count)
    traces_with_device = int(device is not None)
    no_time = np.zeros(groups.num_groups, np.int64)
    columns = (
        count,
        self_ns,
        total_ns,
        no_time if device is None else device.self_ns,
        no_time if device is None else device.total_ns,
        no_time + traces_with_device,
    )
    times = zip(*(column[used].tolist() for column in columns), strict=True)
    for group, row in zip(used.tolist(), times, strict=True):
        yield groups.row_key(group), _Times(*row)
    for name, number in _point_rows(trace, calls):
        if number:
            shapes = None if trace.attribute("input_dims") is None else "[]"
            by_shape = groups.row_key(0).input_shapes is not None if groups.num_groups else False
            yield (
                RowKey(name, input_shapes=shapes if by_shape else None),
                _Times(calls=number, traces_with_device=traces_with_device),
            )


def _host_time(trace: Trace, calls: HostCalls, groups: CallGroups) -> tuple[I64, I64, I64]:
    """Calls, self and total time of each group."""
    num = groups.num_keys
    if groups.key is calls.key:
        count, total_ns, self_ns = calls.sums
    else:
        count, total_ns = group_sum(groups.key, calls.dur_ns, num)
        self_ns = group_sum(groups.key, calls.self_ns, num)[1]
    merged, owners = calls.duplicates, calls.owners
    if merged.size:
        less, less_ns = group_sum(groups.key[merged], calls.dur_ns[merged], num)
        count, total_ns = count - less, total_ns - less_ns
        own_ns = calls.self_ns_of(merged)
        self_ns = self_ns - group_sum(groups.key[merged], own_ns, num)[1]
        self_ns = self_ns + group_sum(groups.key[owners], own_ns, num)[1]
    if not calls.is_framework:
        inner = _inside_same_name(trace, calls)
        total_ns = total_ns - group_sum(groups.key[inner], calls.dur_ns[inner], num)[1]
    return count[: groups.num_groups], self_ns[: groups.num_groups], total_ns[: groups.num_groups]


def _inside_same_name(trace: Trace, calls: HostCalls) -> U32:
    """Calls that run inside a call of the same name on their thread: inner ones of a recursion."""
    slices = trace.slices
    listed = np.flatnonzero(calls.is_call)
    listed = listed[~calls.is_duplicate[listed]]
    order = np.lexsort(
        (
            slices.depth[listed],
            -slices.dur_ns[listed],
            slices.start_ns[listed],
            slices.track[listed],
            slices.name[listed],
        )
    )
    ranked = listed[order]
    name, track = slices.name[ranked], slices.track[ranked]
    change = (name[1:] != name[:-1]) | (track[1:] != track[:-1])
    segment = np.cumsum(np.append(0, change))[: ranked.size]
    end = slices.start_ns[ranked] + slices.dur_ns[ranked]
    reach = running_max(segment, end)
    inner = np.zeros(ranked.size, np.bool_)
    inner[1:] = (segment[1:] == segment[:-1]) & (end[1:] <= reach[:-1])
    # One that begins where another ended lies in none.
    inner[1:] &= slices.start_ns[ranked][1:] < reach[:-1]
    return ranked[inner].astype(np.uint32)


def _point_rows(trace: Trace, calls: HostCalls) -> Iterator[tuple[str, int]]:
    """torch's rows for points in time: allocator events outside every call, and failures."""
    memory = trace.memory
    if memory.ts_ns.size:
        yield _MEMORY, _num_outside_calls(trace, calls, memory.ts_ns)
    used, number = distinct(trace.instants.name)
    count = np.bincount(number, minlength=used.size)
    for name, repeats in zip(used.tolist(), count.tolist(), strict=True):
        if trace.strings[name] == _OUT_OF_MEMORY:
            yield _OUT_OF_MEMORY, repeats


def _num_outside_calls(trace: Trace, calls: HostCalls, ts_ns: I64) -> int:
    """At how many of these rising times no call runs, on any thread; a call's ends count too."""
    # What lies in another call adds nothing to the time that calls cover.
    outer = _native.outer_calls(calls.key, calls.above, calls.num_keys)
    start = trace.slices.start_ns[outer]
    order = np.argsort(start, kind="stable")
    start, reach = start[order], (start + calls.dur_ns[outer])[order]
    reach = np.maximum.accumulate(reach)
    is_first = np.ones(start.size, np.bool_)
    is_first[1:] = start[1:] > reach[:-1]
    is_last = np.append(is_first[1:], True)[: start.size]
    begin = np.searchsorted(ts_ns, start[is_first], side="left")
    end = np.searchsorted(ts_ns, reach[is_last], side="right")
    return int(ts_ns.size - (end - begin).sum())


def _shapes_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


__all__ = ["GroupBy", "OpRow", "OpsTable", "RowKey", "ops"]
