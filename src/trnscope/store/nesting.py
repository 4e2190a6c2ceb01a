"""Turns slices in file order into the lane-ordered slices table, one track after another.

The rule of nesting is in ``native/track_index.h``: by start, longer first, then file order; the
parent is the innermost open slice that contains the whole slice; a slice that outlives an open
one closes it and becomes its sibling.
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

_RELEASE_ROWS = (64 << 20) // 40
"""Rows after which their pages are given back: 64 MiB. Doing so once a track is slow."""


class EnclosingQueries:
    """Asks, for points on tracks, which slice is innermost there; answered while nesting."""

    def __init__(self, track: U32, ts_ns: I64, num_tracks: int, *, ops_only: bool = False) -> None:
        self._ts_ns = ts_ns
        self._order, self._first = _native.point_order(track, ts_ns, num_tracks)
        self._ops_only = ops_only
        self.found: U8 = np.zeros(track.size, np.uint8)
        """Once nested: whether each point lies in a slice (0/1)."""
        self.slice: U32 = np.zeros(track.size, np.uint32)
        """The slice where ``found``, else 0."""

    def of_track(self, track: int) -> tuple[I64, U32, bool, U8, U32]:
        """The questions on one track, and where their answers go, as the indexer takes them."""
        rows = self._order[self._first[track] : self._first[track + 1]]
        return self._ts_ns, rows, self._ops_only, self.found, self.slice


@dataclass(frozen=True)
class WrittenSlices:
    """The slices table, and how event indices map to slice ids."""

    layout: tuple[ColumnLayout, ...]
    lanes: dict[str, npt.NDArray[Any]]
    slice_of_event: U32
    num_too_deep: int
    """Slices that share the deepest lane, 65,535, with others that are open there."""

    def by_slice(self, attribute: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Turn (event, value) rows into (slice, value), by rising slice, the last value kept."""
        slices, values = _native.rows_by_slice(
            attribute["event"], attribute["value"], self.slice_of_event
        )
        return {"slice": slices, "value": values}


def write_slices(
    path: Path, raw: SpilledTable, num_tracks: int, queries: Sequence[EnclosingQueries]
) -> WrittenSlices:
    """Nest, order and write all slices; answers the queries on the way.

    Tracks are taken one after another, so that memory is bounded by the largest.
    """
    columns = raw.map()
    order, first = _native.group_order(columns["track"], num_tracks)
    slice_of_event = np.empty(raw.num_rows, np.uint32)
    lanes: list[tuple[int, I64]] = []
    with ColumnFileWriter(path, SLICE_COLUMNS, raw.num_rows) as file:
        indexer = _native.TrackIndexer(
            columns["start_ns"],
            columns["dur_ns"],
            columns["kind"],
            columns["category"],
            columns["name"],
            columns["args_offset"],
            columns["args_length"],
            file.fileno(),
            [column.offset for column in file.layout],
            slice_of_event,
            SliceKind.PYTHON,
            SliceKind.CPU_OP,
            release_mapped=True,
        )
        unreleased = 0
        for track in range(num_tracks):
            low, high = int(first[track]), int(first[track + 1])
            if low == high:
                continue
            asked = [query.of_track(track) for query in queries]
            lanes.append((track, indexer.index(track, order[low:high], low, asked)))
            unreleased += high - low
            if unreleased >= _RELEASE_ROWS:
                raw.release_pages()
                unreleased = 0
        raw.release_pages()
    return WrittenSlices(file.layout, _lane_table(lanes), slice_of_event, indexer.num_too_deep)


def _lane_table(lanes: Sequence[tuple[int, npt.NDArray[np.int64]]]) -> dict[str, npt.NDArray[Any]]:
    counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in lanes)])
    tracks = np.repeat([track for track, _ in lanes], [counts.size for _, counts in lanes])
    depths = [np.arange(counts.size) for _, counts in lanes]
    return {
        "track": tracks.astype(np.uint32),
        "depth": np.concatenate([np.empty(0, np.int64), *depths]).astype(np.uint16),
        "first": (np.cumsum(counts) - counts).astype(np.int64),
        "count": counts.astype(np.int64),
    }
