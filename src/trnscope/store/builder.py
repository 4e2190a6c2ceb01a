"""Makes small stores by hand, slice by slice: for tests, examples and importers of rare formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from trnscope.model.categories import TORCH_CATEGORY
from trnscope.model.health import Health
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.model.source import TraceSource
from trnscope.model.track import Device, Track
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.batches import (
    FLOW_END,
    FLOW_START,
    CounterBatch,
    FlowEnds,
    InstantBatch,
    MemoryBatch,
    SliceBatch,
    UnfinishedBatch,
)
from trnscope.store.reader import Trace
from trnscope.store.writer import TraceWriter

_DEFAULT_CATEGORY = {
    **TORCH_CATEGORY,
    SliceKind.RUNTIME: "cuda_runtime",
    SliceKind.PROFILER: "Trace",
}


def _u32(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return np.array([value], np.uint32)


def _u16(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    return np.array([value], np.uint16)


def _i64(value: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([value], np.int64)


def _u64(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([value], np.uint64)


def _u8(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.array([value], np.uint8)


class TraceBuilder:
    """Collects slices and the rest one by one; :meth:`build` writes and opens the store."""

    def __init__(self, directory: Path, *, format: str = "kineto", rank: int | None = None) -> None:
        self._directory = directory
        self._writer = TraceWriter(directory)
        self._format = format
        self._rank = rank
        self._strings: dict[str, int] = {}
        self._num_events = 0

    def thread(self, pid: int = 100, tid: int = 100, *, name: str | None = None) -> int:
        """A host thread; returns the track index."""
        return self._writer.add_track(
            Track(TrackKind.CPU_THREAD, str(pid), str(tid), thread_name=name)
        )

    def stream(
        self,
        device: int = 0,
        stream: int = 7,
        kind: DeviceKind = DeviceKind.CUDA,
        *,
        name: str | None = None,
        simulated: bool = False,
    ) -> int:
        """A device stream; returns the track index."""
        owner = Device(kind, device, name, simulated)
        return self._writer.add_track(
            Track(TrackKind.DEVICE_STREAM, str(device), str(stream), device=owner, stream=stream)
        )

    def track(self, track: Track) -> int:
        """Any other track; returns its index."""
        return self._writer.add_track(track)

    def slice(
        self,
        track: int,
        name: str,
        start_ns: int,
        dur_ns: int,
        kind: SliceKind = SliceKind.CPU_OP,
        *,
        category: str | None = None,
        **attributes: int | str,
    ) -> int:
        """A slice, with attributes by key; returns its event index."""
        text = _DEFAULT_CATEGORY.get(kind, "") if category is None else category
        batch = SliceBatch(
            track=_u32(track),
            kind=_u8(kind),
            category=_u16(self._writer.category(text)),
            name=_u32(self._intern(name)),
            start_ns=_i64(start_ns),
            dur_ns=_i64(dur_ns),
            args_offset=_u64(0),
            args_length=_u32(0),
        )
        event = self._writer.add_slices(batch)
        self._num_events += 1
        for key, value in attributes.items():
            self._add_attribute(event, key, value)
        return event

    def _add_attribute(self, event: int, key: str, value: int | str) -> None:
        kind = ATTRIBUTES[key]
        if isinstance(value, str) != (kind is AttributeType.TEXT):
            raise TypeError(f"attribute {key} takes {kind.value} values")
        stored = self._intern(value) if isinstance(value, str) else value
        self._writer.add_attribute(key, _u32(event), np.array([stored], kind.dtype))

    def unfinished(self, track: int, name: str, start_ns: int, *, category: str = "cpu_op") -> None:
        """A slice of unknown duration."""
        self._num_events += 1
        self._writer.add_unfinished(
            UnfinishedBatch(
                _i64(start_ns),
                _u32(track),
                _u32(self._intern(name)),
                _u16(self._writer.category(category)),
            )
        )

    def instant(self, track: int, name: str, ts_ns: int, *, category: str = "") -> None:
        """A point in time."""
        self._num_events += 1
        self._writer.add_instants(
            InstantBatch(
                ts_ns=_i64(ts_ns),
                track=_u32(track),
                name=_u32(self._intern(name)),
                category=_u16(self._writer.category(category)),
                args_offset=_u64(0),
                args_length=_u32(0),
            )
        )

    def counter(self, track: int, name: str, key: str, ts_ns: int, value: float) -> None:
        """A counter sample."""
        self._num_events += 1
        series = self._writer.counter_series(track, name, key)
        self._writer.add_counter_samples(
            CounterBatch(_u32(series), _i64(ts_ns), np.array([value], np.float64))
        )

    def flow(self, flow_id: int, kind: str, *, out: tuple[int, int], into: tuple[int, int]) -> None:
        """A flow between two (track, time) points."""
        self._num_events += 2
        for phase, (track, ts_ns) in ((FLOW_START, out), (FLOW_END, into)):
            self._writer.add_flow_ends(
                FlowEnds(
                    flow_id=_u64(flow_id),
                    kind=_u32(self._intern(kind)),
                    phase=_u8(phase),
                    track=_u32(track),
                    ts_ns=_i64(ts_ns),
                )
            )

    def memory(
        self,
        track: int,
        ts_ns: int,
        address: int,
        size_bytes: int,
        *,
        device_type: int = 0,
        device_index: int = -1,
        total_allocated: int | None = None,
        total_reserved: int | None = None,
    ) -> None:
        """An allocation (positive size) or a free (negative)."""
        self._num_events += 1
        self._writer.add_memory(
            MemoryBatch(
                ts_ns=_i64(ts_ns),
                track=_u32(track),
                address=_u64(address),
                size_bytes=_i64(size_bytes),
                device_type=_i64(device_type),
                device_index=_i64(device_index),
                has_total=_u8(total_allocated is not None),
                total_allocated_bytes=_i64(total_allocated or 0),
                total_reserved_bytes=_i64(total_reserved or 0),
            )
        )

    def build(
        self, health: Health | None = None, metadata: Mapping[str, str] | None = None
    ) -> Trace:
        """Write the store and open it; ``metadata`` as a file's header gives it."""
        source = TraceSource(
            path=str(self._directory / "built-by-hand"),
            format=self._format,
            num_events=self._num_events,
            rank=self._rank,
            metadata={} if metadata is None else metadata,
        )
        whole = Health(True, self._num_events, 0, 0)
        self._writer.finish(source, health or whole, list(self._strings))
        return Trace(self._directory)

    def _intern(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))
