"""What happened in a window of time: device use, and time by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.analysis.grouping import I64, U32, group_sum, pair_up
from trnscope.analysis.time_axis import time_axis
from trnscope.model.kinds import SliceKind
from trnscope.model.track import Device
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import U8

_BLOCK = 1 << 20
"""Slices that are counted at a time, so that a long range takes little memory."""

KIND_WORDS = {
    SliceKind.CPU_OP: "op",
    SliceKind.ANNOTATION: "annotation",
    SliceKind.PYTHON: "python",
    SliceKind.RUNTIME: "runtime",
    SliceKind.KERNEL: "kernel",
    SliceKind.COLLECTIVE: "communication",
    SliceKind.MEMCPY: "memcpy",
    SliceKind.MEMSET: "memset",
    SliceKind.DEVICE_ANNOTATION: "device annotation",
    SliceKind.SYNC: "sync",
    SliceKind.OVERHEAD: "overhead",
    SliceKind.PROFILER: "profiler",
    SliceKind.OTHER: "other",
    SliceKind.INSTRUCTION: "instruction",
}
"""A kind of slice in words; device work as in ``trnscope kernels``."""


@dataclass(frozen=True)
class WindowDevice:
    """One device within the window; ns."""

    source: int
    rank: int | None
    device: Device
    busy_ns: int
    """Union of the device work inside the window."""
    idle_ns: int
    """The window minus busy."""
    compute_ns: int
    communication_ns: int
    memcpy_ns: int

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device.label,
            "busy_ns": self.busy_ns,
            "idle_ns": self.idle_ns,
            "compute_ns": self.compute_ns,
            "communication_ns": self.communication_ns,
            "memcpy_ns": self.memcpy_ns,
        }


@dataclass(frozen=True)
class WindowRow:
    """All slices of one kind and name that touch the window."""

    name: str
    kind: str
    count: int
    sum_ns: int
    """Their durations inside the window, added: nested and simultaneous ones count each."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {"name": self.name, "kind": self.kind, "count": self.count, "sum_ns": self.sum_ns}


@dataclass(frozen=True)
class Window:
    """The answer for one window. Its ends are ns on the profile's time axis."""

    start_ns: int
    end_ns: int
    num_slices: int
    devices: tuple[WindowDevice, ...]
    rows: tuple[WindowRow, ...]
    """The longest first."""

    def to_json(self, limit: int | None = None) -> dict[str, object]:
        """The document; with ``limit`` only so many rows, and how many there are."""
        return {
            "schema": 1,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "duration_ns": self.end_ns - self.start_ns,
            "num_slices": self.num_slices,
            "devices": [device.to_json() for device in self.devices],
            "num_rows": len(self.rows),
            "rows": [row.to_json() for row in self.rows[:limit]],
        }


def window(profile: Profile, start_ns: int, end_ns: int) -> Window:
    """Statistics of ``[start_ns, end_ns)`` on the profile's time axis."""
    zeros_ns = time_axis(profile).zeros_ns
    devices: list[WindowDevice] = []
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    num_slices = 0
    for source, (trace, zero_ns) in enumerate(zip(profile.traces, zeros_ns, strict=True)):
        low, high = zero_ns + start_ns, zero_ns + end_ns
        rank = trace.source.rank
        devices += [_device(work, source, rank, low, high) for work in device_work(trace)]
        for ids in slices_within(trace, low, high):
            num_slices += int(ids.size)
            for key, count, sum_ns in _by_name(trace, ids, low, high):
                known = sums.get(key, (0, 0))
                sums[key] = known[0] + count, known[1] + sum_ns
    rows = [WindowRow(name, kind, *times) for (kind, name), times in sums.items()]
    rows.sort(key=lambda row: (-row.sum_ns, -row.count, row.name, row.kind))
    return Window(start_ns, end_ns, num_slices, tuple(devices), tuple(rows))


def slices_within(trace: Trace, low: int, high: int) -> Iterator[U32]:
    """Ids of the slices that touch ``[low, high)``, in blocks; times as the trace holds them.

    A slice of no length counts where it starts; the profiler's own rows do not count.
    """
    kind = trace.slices.kind
    block: list[U32] = []
    size = 0
    for begin, end in _ranges_within(trace, low, high):
        for first in range(begin, end, _BLOCK):
            block.append(np.arange(first, min(end, first + _BLOCK), dtype=np.uint32))
            size += block[-1].size
            if size >= _BLOCK:
                yield _without_profiler(np.concatenate(block), kind)
                block, size = [], 0
    if block:
        yield _without_profiler(np.concatenate(block), kind)


def _without_profiler(ids: U32, kind: U8) -> U32:
    kept: U32 = ids[kind[ids] != SliceKind.PROFILER]
    return kept


def _ranges_within(trace: Trace, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Of each lane the range of slice ids that touch the window, where there are any."""
    lanes, slices = trace.lanes, trace.slices
    for first, count in zip(lanes.first.tolist(), lanes.count.tolist(), strict=True):
        start_ns = slices.start_ns[first : first + count]
        begin = first + int(np.searchsorted(start_ns, low))
        end = first + int(np.searchsorted(start_ns, high))
        # In a lane nothing overlaps: only the slice before can still run into the window.
        before = begin - 1
        if begin > first and int(slices.start_ns[before]) + int(slices.dur_ns[before]) > low:
            begin = before
        if end > begin:
            yield begin, end


def _device(work: DeviceWork, source: int, rank: int | None, low: int, high: int) -> WindowDevice:
    busy_ns = work.busy.clip(low, high).total
    return WindowDevice(
        source=source,
        rank=rank,
        device=work.device,
        busy_ns=busy_ns,
        idle_ns=high - low - busy_ns,
        compute_ns=work.compute.clip(low, high).total,
        communication_ns=work.communication.clip(low, high).total,
        memcpy_ns=work.memcpy.clip(low, high).total,
    )


def _by_name(
    trace: Trace, ids: U32, low: int, high: int
) -> Iterator[tuple[tuple[str, str], int, int]]:
    slices = trace.slices
    start_ns = slices.start_ns[ids]
    inside_ns: I64 = np.minimum(start_ns + slices.dur_ns[ids], high) - np.maximum(start_ns, low)
    pairs = pair_up(slices.kind[ids], slices.name[ids])
    count, sum_ns = group_sum(pairs.key, inside_ns, pairs.num_groups)
    names = trace.strings.take(pairs.second)
    kinds = [KIND_WORDS[SliceKind(kind)] for kind in pairs.first.tolist()]
    for kind, name, number, total in zip(
        kinds, names, count.tolist(), sum_ns.tolist(), strict=True
    ):
        yield (kind, name), number, total
