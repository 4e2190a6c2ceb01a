"""Points in time: instants, counter samples, allocator events and ends of flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.ingest.kineto import MEMORY_NAME
from trnscope.ingest.rows import HAS_ID, Segment, dense
from trnscope.ingest.tracks import TrackTable
from trnscope.ingest.vocabulary import CategoryTable, NameTable, Text
from trnscope.store.batches import (
    FLOW_END,
    FLOW_START,
    FLOW_STEP,
    CounterBatch,
    FlowEnds,
    InstantBatch,
    MemoryBatch,
)
from trnscope.store.tables import I64, U8, U32, U64
from trnscope.store.writer import TraceWriter

Index = npt.NDArray[Any]

_PHASES = {ord("s"): FLOW_START, ord("t"): FLOW_STEP, ord("f"): FLOW_END}


@dataclass(frozen=True)
class _HeldFlows:
    """Ends of flows, on the scanner's tracks."""

    flow_id: U64
    kind: U32
    phase: U8
    track: U32
    ts_ns: I64


class PointReader:
    """Hands points to the writer. Flow ends wait until all tracks are known."""

    def __init__(
        self, text: Text, writer: TraceWriter, categories: CategoryTable, tracks: TrackTable
    ) -> None:
        self._text = text
        self._writer = writer
        self._categories = categories
        self._tracks = tracks
        self._is_memory = NameTable(text, lambda name: name == MEMORY_NAME)
        self._reaches_device = NameTable(text, lambda kind: kind != "fwdbwd")
        self._series: dict[tuple[int, int, int], int] = {}
        self._flows: list[_HeldFlows] = []

    def add_instants(self, segment: Segment, at: Index) -> None:
        """Instants and, by their name, allocator events."""
        memory = self._is_memory.of(segment.name[at]) != 0
        if memory.any():
            size, has_size = dense(segment, "Bytes", at)
            memory &= has_size
            self._add_memory(segment, at[memory], size[memory])
            at = at[~memory]
        if at.size:
            self._writer.add_instants(
                InstantBatch(
                    segment.ts_ns[at],
                    self._tracks.host(segment.track[at]),
                    segment.name[at],
                    self._categories.of(segment.category[at]),
                    segment.args_offset[at],
                    segment.args_length[at],
                )
            )

    def _add_memory(self, segment: Segment, at: Index, size_bytes: I64) -> None:
        if at.size == 0:
            return
        allocated, has_allocated = dense(segment, "Total Allocated", at)
        reserved, has_reserved = dense(segment, "Total Reserved", at)
        device_index, has_index = dense(segment, "Device Id", at)
        self._writer.add_memory(
            MemoryBatch(
                segment.ts_ns[at],
                self._tracks.host(segment.track[at]),
                dense(segment, "Addr", at)[0].view(np.uint64),
                size_bytes,
                dense(segment, "Device Type", at)[0],
                np.where(has_index, device_index, -1),
                (has_allocated & has_reserved).astype(np.uint8),
                allocated,
                reserved,
            )
        )

    def add_counters(self, segment: Segment, is_timed: npt.NDArray[np.bool_]) -> None:
        """Samples of counter events with a valid time."""
        rows, keys, values = segment.counters()
        kept = is_timed[rows]
        rows, keys, values = rows[kept], keys[kept], values[kept]
        if rows.size == 0:
            return
        identity = np.stack((segment.track[rows], segment.name[rows], keys), axis=1)
        unique, inverse = np.unique(identity, axis=0, return_inverse=True)
        series = np.array([self._series_of(*one) for one in unique.tolist()], np.uint32)
        self._writer.add_counter_samples(
            CounterBatch(series[inverse.reshape(-1)], segment.ts_ns[rows], values)
        )

    def _series_of(self, scanned: int, name: int, key: int) -> int:
        found = self._series.get((scanned, name, key))
        if found is None:
            track = self._tracks.counter(scanned)
            found = self._writer.counter_series(track, self._text(name), self._text(key))
            self._series[scanned, name, key] = found
        return found

    def add_flows(self, segment: Segment, at: Index) -> None:
        """Ends of flows; those without an id link nothing."""
        at = at[(segment.flags[at] & HAS_ID) != 0]
        if at.size == 0:
            return
        phase = np.zeros(256, np.uint8)
        for letter, number in _PHASES.items():
            phase[letter] = number
        category = segment.category[at]
        self._flows.append(
            _HeldFlows(
                segment.id[at],
                np.where(category == 0, segment.name[at], category),
                phase[segment.ph[at]],
                segment.track[at],
                segment.ts_ns[at],
            )
        )

    def release_flows(self) -> None:
        """Hand over the flow ends.

        Where a pid and tid are a thread as well as a stream, a launch starts on the thread
        and ends on the stream.
        """
        flows, self._flows = self._flows, []
        for held in flows:
            into_device = (held.phase == FLOW_END) & (self._reaches_device.of(held.kind) != 0)
            track = self._tracks.flow_ends(held.track, into_device)
            self._writer.add_flow_ends(
                FlowEnds(held.flow_id, held.kind, held.phase, track, held.ts_ns)
            )
