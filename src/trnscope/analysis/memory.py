"""Memory over time: what each allocator held, when it held most, and for which ops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.grouping import I64, group_sum
from trnscope.model.kinds import DeviceKind
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool, MemoryEvents

_DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 15: "hpu", 19: "mtia"}
_PRIVATEUSE1 = 20
_OUT_OF_TREE = (DeviceKind.NEURON, DeviceKind.NPU, DeviceKind.PRIVATEUSE1)
_POINTS_SHOWN = 512
_BLOCKS_SHOWN = 100


@dataclass(frozen=True)
class OpMemory:
    """What one op (by name) allocated and freed itself, in bytes."""

    name: str | None
    """Absent: outside of every op."""
    num_allocations: int
    num_frees: int
    allocated_bytes: int
    freed_bytes: int
    held_at_peak_bytes: int
    """Of what it allocated in the window, still held at the device's peak."""

    @property
    def net_bytes(self) -> int:
        """Allocated less freed."""
        return self.allocated_bytes - self.freed_bytes

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "name": self.name,
            "num_allocations": self.num_allocations,
            "num_frees": self.num_frees,
            "allocated_bytes": self.allocated_bytes,
            "freed_bytes": self.freed_bytes,
            "net_bytes": self.net_bytes,
            "held_at_peak_bytes": self.held_at_peak_bytes,
        }


@dataclass(frozen=True)
class Block:
    """One block of memory whose other end lies outside the window."""

    address: int
    size_bytes: int
    ts_ns: int
    op: str | None

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "address": self.address,
            "size_bytes": self.size_bytes,
            "ts_ns": self.ts_ns,
            "op": self.op,
        }


@dataclass(frozen=True)
class Blocks:
    """Blocks of one sort: all of them counted, the largest listed."""

    count: int
    size_bytes: int
    largest: tuple[Block, ...]

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "count": self.count,
            "size_bytes": self.size_bytes,
            "largest": [block.to_json() for block in self.largest],
        }


@dataclass(frozen=True)
class Reserved:
    """What the caching allocator had taken from the device, where that is recorded."""

    peak_bytes: int
    end_bytes: int
    at_peak_bytes: int
    """Reserved when most was allocated."""
    most_unused_bytes: int | None
    """Greatest reserved less allocated; absent where less was always reserved than allocated."""
    most_unused_ts_ns: int | None
    unused_at_peak_ratio: float | None
    """(Reserved - allocated) / reserved, when most was allocated; absent where that is below 0."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "peak_bytes": self.peak_bytes,
            "end_bytes": self.end_bytes,
            "at_peak_bytes": self.at_peak_bytes,
            "most_unused_bytes": self.most_unused_bytes,
            "most_unused_ts_ns": self.most_unused_ts_ns,
            "unused_at_peak_ratio": self.unused_at_peak_ratio,
        }


@dataclass(frozen=True)
class DeviceMemory:
    """Allocated memory of one device over the recorded window. See docs/metrics/memory-level.md."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    device: str
    """As torch writes it: ``cuda:0``; ``cpu`` has no index."""
    num_allocations: int
    num_frees: int
    start_bytes: int
    is_start_exact: bool
    """Whether the allocator's own total gives the start; else it is the least that explains
    the frees of blocks allocated earlier, and every level is a lower bound."""
    peak_bytes: int
    peak_ts_ns: int
    peak_op: str | None
    """The op that made the allocation which reached the peak."""
    end_bytes: int
    net_bytes: int
    freed_from_before: Blocks
    """Freed in the window, allocated before it."""
    never_freed: Blocks
    """Allocated in the window, not freed in it: kept on purpose, or leaked."""
    ops: tuple[OpMemory, ...]
    """Most held at the peak first."""
    reserved: Reserved | None
    ts_ns: I64
    """When the level changed."""
    level_bytes: I64
    """The level from then on."""

    def to_json(self) -> dict[str, object]:
        """Its fields; the level over time thinned to a few hundred points that keep the peak."""
        points = _thin(self.level_bytes)
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device,
            "num_allocations": self.num_allocations,
            "num_frees": self.num_frees,
            "start_bytes": self.start_bytes,
            "is_start_exact": self.is_start_exact,
            "peak_bytes": self.peak_bytes,
            "peak_ts_ns": self.peak_ts_ns,
            "peak_op": self.peak_op,
            "end_bytes": self.end_bytes,
            "net_bytes": self.net_bytes,
            "freed_from_before": self.freed_from_before.to_json(),
            "never_freed": self.never_freed.to_json(),
            "ops": [op.to_json() for op in self.ops],
            "reserved": None if self.reserved is None else self.reserved.to_json(),
            "num_points": int(self.ts_ns.size),
            "level": [[int(self.ts_ns[at]), int(self.level_bytes[at])] for at in points],
        }


@dataclass(frozen=True)
class MemoryCounter:
    """A memory counter that the trace holds besides allocator events, in the writer's unit."""

    source: int
    name: str
    num_samples: int
    min_value: float
    max_value: float
    max_ts_ns: int
    last_value: float

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "name": self.name,
            "num_samples": self.num_samples,
            "min_value": self.min_value,
            "max_value": self.max_value,
            "max_ts_ns": self.max_ts_ns,
            "last_value": self.last_value,
        }


@dataclass(frozen=True)
class MemoryReport:
    """Memory of every device of every trace."""

    devices: tuple[DeviceMemory, ...]
    """Empty where no allocator events were recorded."""
    counters: tuple[MemoryCounter, ...]

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "devices": [...], "counters": [...]}``."""
        return {
            "schema": 1,
            "devices": [device.to_json() for device in self.devices],
            "counters": [counter.to_json() for counter in self.counters],
        }


def memory(profile: Profile) -> MemoryReport:
    """Level over time, peak and what was held then, by device."""
    numbered = list(enumerate(profile.traces))
    return MemoryReport(
        devices=tuple(row for i, trace in numbered for row in _devices(trace, i)),
        counters=tuple(row for i, trace in numbered for row in _counters(trace, i)),
    )


@dataclass(frozen=True)
class _Events:
    """The allocator events of one device, by time."""

    ts_ns: I64
    address: I64
    size_bytes: I64
    has_total: Bool
    total_allocated: I64
    total_reserved: I64
    op: I64
    """String id of the op's name, -1 outside of all."""

    @property
    def is_allocation(self) -> Bool:
        """Which events take memory."""
        return np.asarray(self.size_bytes > 0, np.bool_)

    @property
    def is_free(self) -> Bool:
        """Which events give memory back. An event of no bytes does neither."""
        return np.asarray(self.size_bytes < 0, np.bool_)


def _devices(trace: Trace, source: int) -> Iterator[DeviceMemory]:
    events = trace.memory
    if events.ts_ns.size == 0:
        return
    owner = np.stack((events.device_type, events.device_index))
    devices, of_event = np.unique(owner, axis=1, return_inverse=True)
    for number, (kind, index) in enumerate(devices.T.tolist()):
        mine = np.flatnonzero(of_event.reshape(-1) == number)
        yield _device(trace, source, _label(trace, kind, index), _take(trace, events, mine))


def _label(trace: Trace, kind: int, index: int) -> str:
    name = _DEVICE_TYPES.get(kind, f"type{kind}")
    if kind == _PRIVATEUSE1:
        kinds = {track.device.kind for track in trace.tracks if track.device is not None}
        known = [each for each in _OUT_OF_TREE if each in kinds]
        name = (known[0] if known else DeviceKind.PRIVATEUSE1).name.lower()
    return name if index < 0 else f"{name}:{index}"


def _take(trace: Trace, events: MemoryEvents, rows: I64) -> _Events:
    rows = rows[np.argsort(events.ts_ns[rows], kind="stable")]
    has_op = events.has_op[rows]
    op = np.full(rows.size, -1, np.int64)
    op[has_op] = trace.slices.name[events.op_slice[rows[has_op]]]
    return _Events(
        ts_ns=events.ts_ns[rows],
        address=events.address[rows].view(np.int64),
        size_bytes=events.size_bytes[rows],
        has_total=events.has_total[rows],
        total_allocated=events.total_allocated_bytes[rows],
        total_reserved=events.total_reserved_bytes[rows],
        op=op,
    )


def _device(trace: Trace, source: int, label: str, events: _Events) -> DeviceMemory:
    partner = _partners(events)
    start_bytes, is_exact = _start(events, partner)
    level = _levels(events, start_bytes)
    peak = int(np.argmax(level))
    peak_is_start = start_bytes >= int(level[peak])
    is_allocation = events.is_allocation
    held = is_allocation & (np.arange(level.size) <= peak) & ((partner < 0) | (partner > peak))
    orphans = np.flatnonzero(events.is_free & (partner < 0))
    leaks = np.flatnonzero(is_allocation & (partner < 0))
    return DeviceMemory(
        source=source,
        rank=trace.source.rank,
        device=label,
        num_allocations=int(np.count_nonzero(is_allocation)),
        num_frees=int(np.count_nonzero(events.is_free)),
        start_bytes=start_bytes,
        is_start_exact=is_exact,
        peak_bytes=max(start_bytes, int(level[peak])),
        peak_ts_ns=int(events.ts_ns[0 if peak_is_start else peak]),
        peak_op=None if peak_is_start else _op_name(trace, int(events.op[peak])),
        end_bytes=int(level[-1]),
        net_bytes=int(events.size_bytes.sum()),
        freed_from_before=_blocks(trace, events, orphans),
        never_freed=_blocks(trace, events, leaks),
        ops=tuple(_by_op(trace, events, held & (not peak_is_start))),
        reserved=_reserved(events, level, peak),
        ts_ns=events.ts_ns,
        level_bytes=level,
    )


def _partners(events: _Events) -> I64:
    """For each event the one at the other end of its block's life in the window, else -1."""
    order = np.argsort(events.address, kind="stable")
    address, takes, frees = (
        column[order] for column in (events.address, events.is_allocation, events.is_free)
    )
    pairs = (address[1:] == address[:-1]) & takes[:-1] & frees[1:]
    first = np.flatnonzero(pairs)
    partner = np.full(order.size, -1, np.int64)
    partner[order[first]] = order[first + 1]
    partner[order[first + 1]] = order[first]
    return partner


def _start(events: _Events, partner: I64) -> tuple[int, bool]:
    """The level before the first event, and whether it is known rather than inferred."""
    known = np.flatnonzero(events.has_total)
    if known.size:
        first = int(known[0])
        return int(events.total_allocated[first] - events.size_bytes[: first + 1].sum()), True
    from_before = events.is_free & (partner < 0)
    return int(-events.size_bytes[from_before].sum()), False


def _levels(events: _Events, start_bytes: int) -> I64:
    """The level after each event: the allocator's total, or the sum since the last one."""
    summed = start_bytes + np.cumsum(events.size_bytes)
    known = np.flatnonzero(events.has_total)
    if known.size == 0:
        return summed
    # Where a total is missing, count on from the latest one.
    drift = events.total_allocated[known] - summed[known]
    latest = np.searchsorted(known, np.arange(summed.size), side="right") - 1
    return np.asarray(summed + np.where(latest >= 0, drift[np.maximum(latest, 0)], 0), np.int64)


def _op_name(trace: Trace, name: int) -> str | None:
    return None if name < 0 else trace.strings[name]


def _blocks(trace: Trace, events: _Events, rows: I64) -> Blocks:
    size = np.abs(events.size_bytes[rows])
    largest = rows[np.lexsort((events.ts_ns[rows], -size))][:_BLOCKS_SHOWN]
    return Blocks(
        count=int(rows.size),
        size_bytes=int(size.sum()),
        largest=tuple(
            Block(
                address=int(events.address[row : row + 1].view(np.uint64)[0]),
                size_bytes=abs(int(events.size_bytes[row])),
                ts_ns=int(events.ts_ns[row]),
                op=_op_name(trace, int(events.op[row])),
            )
            for row in largest.tolist()
        ),
    )


def _by_op(trace: Trace, events: _Events, held: Bool) -> list[OpMemory]:
    names, group = np.unique(events.op, return_inverse=True)

    def add_up(mask: Bool) -> tuple[I64, I64]:
        return group_sum(group[mask], np.abs(events.size_bytes[mask]), names.size)

    (num_taken, taken), (num_freed, freed) = (
        add_up(events.is_allocation),
        add_up(events.is_free),
    )
    _, kept = add_up(held)
    rows = [
        OpMemory(
            name=_op_name(trace, name),
            num_allocations=int(num_taken[i]),
            num_frees=int(num_freed[i]),
            allocated_bytes=int(taken[i]),
            freed_bytes=int(freed[i]),
            held_at_peak_bytes=int(kept[i]),
        )
        for i, name in enumerate(names.tolist())
    ]
    rows.sort(key=lambda op: (-op.held_at_peak_bytes, -op.allocated_bytes, op.name or ""))
    return rows


def _reserved(events: _Events, level: I64, peak: int) -> Reserved | None:
    known = np.flatnonzero(events.has_total & (events.total_reserved > 0))
    if known.size == 0:
        return None
    reserved = events.total_reserved[known]
    unused = reserved - level[known]
    most = int(np.argmax(unused))
    near_peak = int(np.searchsorted(known, peak, side="right")) - 1
    at_peak = int(reserved[max(near_peak, 0)])
    unused_at_peak = at_peak - int(level[peak])
    is_plausible = int(unused[most]) >= 0
    return Reserved(
        peak_bytes=int(reserved.max()),
        end_bytes=int(reserved[-1]),
        at_peak_bytes=at_peak,
        most_unused_bytes=int(unused[most]) if is_plausible else None,
        most_unused_ts_ns=int(events.ts_ns[known[most]]) if is_plausible else None,
        unused_at_peak_ratio=unused_at_peak / at_peak if unused_at_peak >= 0 else None,
    )


def _thin(level: I64) -> list[int]:
    """Indices of the first, the last and, in each stretch between, the highest point."""
    if level.size <= _POINTS_SHOWN:
        return list(range(level.size))
    stretches = np.array_split(np.arange(level.size), _POINTS_SHOWN - 2)
    highest = [int(rows[np.argmax(level[rows])]) for rows in stretches]
    return sorted({0, *highest, int(level.size) - 1})


def _counters(trace: Trace, source: int) -> Iterator[MemoryCounter]:
    samples = trace.counters
    for number, series in enumerate(trace.counter_series):
        name = f"{series.name} {series.key}".strip()
        if not any(word in name.lower() for word in ("memory", "bytes", "hbm", "sbuf", "psum")):
            continue
        first, last = np.searchsorted(samples.series, [number, number + 1]).tolist()
        if first == last:
            continue
        value = samples.value[first:last]
        most = int(np.argmax(value))
        yield MemoryCounter(
            source=source,
            name=name,
            num_samples=last - first,
            min_value=float(value.min()),
            max_value=float(value[most]),
            max_ts_ns=int(samples.ts_ns[first + most]),
            last_value=float(value[-1]),
        )
