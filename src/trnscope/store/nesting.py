"""Turns slices in file order into the lane-ordered slices table, one track after another.

The rule of nesting is in ``native/nest.h``: by start, longer first, then file order; the
parent is the innermost open slice that contains the whole slice; a slice that outlives an
open one closes it and becomes its sibling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.model.kinds import SliceKind
from trnscope.store.column_file import ColumnFileWriter, ColumnLayout
from trnscope.store.schema import SLICE_COLUMNS
from trnscope.store.spill import SpilledTable
from trnscope.store.tables import I64, U8, U32

_COPIED = ("kind", "category", "name", "args_offset", "args_length")


class EnclosingQueries:
    """Asks, for points on tracks, which slice is innermost there; answered while nesting."""

    def __init__(self, track: U32, ts_ns: I64, *, ops_only: bool = False) -> None:
        self.found: U8 = np.zeros(track.size, np.uint8)
        self.slices: U32 = np.zeros(track.size, np.uint32)
        self._track = track
        self._ts_ns = ts_ns
        self._ops_only = ops_only
        self._order = _native.argsort_u32(np.ascontiguousarray(track))
        self._sorted_track = track[self._order]

    def answer(self, track: int, nesting: _native.TrackNesting, kind: U8, first: int) -> None:
        """Fill in the answers for one track; ``first`` is its first slice id."""
        low, high = np.searchsorted(self._sorted_track, (track, track + 1))
        if low == high:
            return
        asked = self._order[low:high]
        wanted = (kind == SliceKind.CPU_OP).astype(np.uint8) if self._ops_only else None
        found, position = nesting.innermost(self._ts_ns[asked], wanted)
        self.found[asked] = found
        self.slices[asked] = position + np.uint32(first)


@dataclass(frozen=True)
class WrittenSlices:
    """The slices table, and how event indices map to slice ids."""

    layout: tuple[ColumnLayout, ...]
    lanes: dict[str, npt.NDArray[Any]]
    slice_of_event: U32

    def by_slice(self, attribute: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Turn (event, value) rows into (slice, value), by rising slice, the last value kept."""
        slices = self.slice_of_event[attribute["event"]]
        order = _native.argsort_u32(slices)
        slices, values = slices[order], attribute["value"][order]
        if slices.size:
            last = np.append(slices[1:] != slices[:-1], True)
            if not last.all():
                slices, values = slices[last], values[last]
        return {"slice": slices, "value": values}


def write_slices(
    path: Path, raw: SpilledTable, num_tracks: int, queries: Sequence[EnclosingQueries]
) -> WrittenSlices:
    """Nest, order and write all slices; answers the queries on the way."""
    columns = raw.map()
    order, first = _native.group_order(columns["track"], num_tracks)
    slice_of_event = np.empty(raw.num_rows, np.uint32)
    lanes: list[tuple[int, npt.NDArray[Any]]] = []
    with ColumnFileWriter(path, SLICE_COLUMNS, raw.num_rows) as file:
        for track in range(num_tracks):
            low, high = int(first[track]), int(first[track + 1])
            if low == high:
                continue
            events = order[low:high]
            counts = _write_track(file, columns, events, track, low, queries)
            lanes.append((track, counts))
            slice_of_event[events] = np.arange(low, high, dtype=np.uint32)
            raw.release_pages()
    return WrittenSlices(file.layout, _lane_table(lanes), slice_of_event)


def _write_track(
    file: ColumnFileWriter,
    columns: dict[str, npt.NDArray[Any]],
    events: U32,
    track: int,
    first: int,
    queries: Sequence[EnclosingQueries],
) -> npt.NDArray[Any]:
    """Write one track's rows; reorders ``events`` into lane order; returns rows per depth."""
    start, dur = columns["start_ns"][events], columns["dur_ns"][events]
    kind = columns["kind"][events]
    nesting = _native.TrackNesting(start, dur)
    for query in queries:
        query.answer(track, nesting, kind, first)
    file.write("self_ns", first, nesting.self_ns())
    file.write("op_self_ns", first, nesting.op_self_ns((kind == SliceKind.PYTHON).astype(np.uint8)))
    file.write("parent", first, nesting.parent() + np.uint32(first))
    depth = nesting.depth()
    file.write("depth", first, depth)
    rows = nesting.rows()
    file.write("start_ns", first, start[rows])
    file.write("dur_ns", first, dur[rows])
    del nesting, start, dur, kind
    events[:] = events[rows]
    for name in _COPIED:
        file.write(name, first, columns[name][events])
    file.write("track", first, np.full(events.size, track, np.uint32))
    return np.bincount(depth)


def _lane_table(lanes: Sequence[tuple[int, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    counts = np.concatenate([counts for _, counts in lanes] or [np.empty(0, np.int64)])
    tracks = np.repeat([track for track, _ in lanes], [counts.size for _, counts in lanes])
    depths = [np.arange(counts.size) for _, counts in lanes]
    return {
        "track": tracks.astype(np.uint32),
        "depth": np.concatenate(depths or [np.empty(0)]).astype(np.uint16),
        "first": (np.cumsum(counts) - counts).astype(np.int64),
        "count": counts.astype(np.int64),
    }
