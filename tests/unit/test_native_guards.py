"""Native code refuses what would make it hang or touch memory of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trnscope import _native
from trnscope.errors import TraceFormatError
from trnscope.model.health import Health
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.model.source import TraceSource
from trnscope.model.track import Track
from trnscope.store import writer
from trnscope.store.batches import SliceBatch
from trnscope.store.builder import TraceBuilder
from trnscope.store.column_file import ColumnFileWriter
from trnscope.store.reader import Trace
from trnscope.store.schema import SLICE_COLUMNS
from trnscope.store.writer import TraceWriter

_NUM_ROWS = 200_000
_CYCLE = np.array([1, 2, 0], np.uint32)
_NONE = np.zeros(3, np.uint8)


class Indexing:
    """A track of slices one after another, and the indexer over ordinary arrays."""

    def __init__(self, path: Path, num_rows: int = 4) -> None:
        self.start_ns = np.arange(num_rows, dtype=np.int64) * 10 + 1
        self.dur_ns = np.full(num_rows, 7, np.int64)
        self.events = np.arange(num_rows, dtype=np.uint32)
        self.slice_of_event = np.empty(num_rows, np.uint32)
        self.file = ColumnFileWriter(path, SLICE_COLUMNS, num_rows)
        self.indexer = self.over(self.slice_of_event)

    def over(self, slice_of_event: Any) -> _native.TrackIndexer:
        size = self.events.size
        return _native.TrackIndexer(
            self.start_ns,
            self.dur_ns,
            np.zeros(size, np.uint8),
            np.zeros(size, np.uint16),
            np.zeros(size, np.uint32),
            np.zeros(size, np.uint64),
            np.zeros(size, np.uint32),
            self.file.fileno(),
            [column.offset for column in self.file.layout],
            slice_of_event,
            SliceKind.PYTHON,
            SliceKind.CPU_OP,
        )


def test_ordinary_arrays_keep_their_values_when_indexed(tmp_path: Path) -> None:
    data = Indexing(tmp_path / "t", _NUM_ROWS)
    with data.file:
        assert data.indexer.index(0, data.events, 0, []).tolist() == [_NUM_ROWS]
    assert np.array_equal(data.start_ns, np.arange(_NUM_ROWS) * 10 + 1)
    assert np.all(data.dur_ns == 7)
    assert np.array_equal(data.slice_of_event, np.arange(_NUM_ROWS))
    assert data.indexer.num_too_deep == 0


def test_ordinary_arrays_keep_their_values_when_summarised() -> None:
    start, dur = np.arange(_NUM_ROWS, dtype=np.int64) + 5, np.ones(_NUM_ROWS, np.int64)
    _native.build_pyramid(np.zeros(1, np.int64), np.array([_NUM_ROWS]), start, dur)
    assert np.array_equal(start, np.arange(_NUM_ROWS) + 5)
    assert np.all(dur == 1)


@pytest.mark.parametrize(("first", "count"), [(1 << 62, 1 << 62), (3, 2), (-1, 1), (0, -1)])
def test_lanes_outside_the_slices_are_refused(first: int, count: int) -> None:
    rows = np.zeros(4, np.int64)
    with pytest.raises(ValueError, match="lane out of range"):
        _native.build_pyramid(np.array([first]), np.array([count]), rows, rows)


def test_queries_are_checked(tmp_path: Path) -> None:
    data = Indexing(tmp_path / "t")
    ts = np.array([1, 12], np.int64)
    found, slices = np.zeros(2, np.uint8), np.zeros(2, np.uint32)
    with data.file:
        with pytest.raises(ValueError, match="row of a query out of range"):
            far = np.array([0, 2], np.uint32)
            data.indexer.index(0, data.events, 0, [(ts, far, False, found, slices)])
        rows = np.array([0, 1], np.uint32)
        with pytest.raises(ValueError, match="lengths differ"):
            data.indexer.index(0, data.events, 0, [(ts, rows, False, found[:1], slices)])
        data.indexer.index(0, data.events, 0, [(ts, rows, False, found, slices)])
    assert (found.tolist(), slices.tolist()) == ([1, 1], [0, 1])


def test_outputs_are_never_filled_in_a_copy(tmp_path: Path) -> None:
    data = Indexing(tmp_path / "t")
    ts, rows = np.array([1, 12], np.int64), np.array([0, 1], np.uint32)
    wrong: Any = np.zeros(2, np.int64)
    with data.file:
        with pytest.raises(TypeError):
            data.over(np.zeros(4, np.int64))
        events: Any = data.events.astype(np.int64)
        with pytest.raises(TypeError):
            data.indexer.index(0, events, 0, [])
        for found, slices in ((wrong, np.zeros(2, np.uint32)), (np.zeros(2, np.uint8), wrong)):
            with pytest.raises((TypeError, RuntimeError)):
                data.indexer.index(0, data.events, 0, [(ts, rows, False, found, slices)])
    assert wrong.tolist() == [0, 0]


def test_a_circle_of_parents_ends_a_climb() -> None:
    with pytest.raises(ValueError, match="above each other"):
        _native.climb(_CYCLE, _NONE, np.array([0], np.uint32))


def test_a_circle_of_parents_ends_charging() -> None:
    one = np.array([0], np.uint32)
    with pytest.raises(ValueError, match="above each other"):
        _native.charge_upwards(_CYCLE, np.zeros(3, np.uint32), _NONE, one, np.array([5]), 1)


def test_a_circle_of_parents_ends_the_search_for_an_op() -> None:
    kind = np.array([SliceKind.RUNTIME, SliceKind.OTHER, SliceKind.OTHER, SliceKind.KERNEL])
    ids = (np.array([0, 3], np.uint32), np.array([9, 9], np.uint64))
    no_ids = (np.empty(0, np.uint32), np.empty(0, np.uint64))
    no_flows = (np.empty(0, np.uint32), np.empty(0, np.uint32))
    parent = np.array([1, 2, 0, 3], np.uint32)
    with pytest.raises(ValueError, match="above each other"):
        _native.find_launches(
            kind.astype(np.uint8),
            parent,
            ids,
            no_ids,
            no_flows,
            [SliceKind.KERNEL],
            SliceKind.RUNTIME,
            SliceKind.CPU_OP,
        )


def test_attribute_rows_of_slices_out_of_range_are_refused() -> None:
    events, values = np.array([0], np.uint32), np.array([5], np.int64)
    with pytest.raises(ValueError, match="out of range"):
        _native.rows_by_slice(events, values, np.array([1 << 20], np.uint32))


def _nested(count: int, track: int, category: int) -> SliceBatch:
    """Slices one within the other, the outermost first."""
    start = np.arange(count, dtype=np.int64)
    return SliceBatch(
        np.full(count, track, np.uint32),
        np.full(count, SliceKind.CPU_OP, np.uint8),
        np.full(count, category, np.uint16),
        np.zeros(count, np.uint32),
        start,
        2 * (count - start),
        np.zeros(count, np.uint64),
        np.zeros(count, np.uint32),
    )


@pytest.mark.parametrize(("count", "too_deep"), [(65_536, 0), (65_540, 4)])
def test_slices_below_the_deepest_lane_are_counted(
    tmp_path: Path, count: int, too_deep: int
) -> None:
    store = TraceWriter(tmp_path / "t")
    track = store.add_track(Track(TrackKind.CPU_THREAD, "1", "1"))
    store.add_slices(_nested(count, track, store.category("cpu_op")))
    store.finish(TraceSource("t", "chrome", count), Health(True, count, 0, 0), ["f"])
    trace = Trace(tmp_path / "t")
    assert trace.lanes.depth.size == 65_536
    found = {warning.code: warning.count for warning in trace.health.warnings}
    assert found == ({"too-deep": too_deep} if too_deep else {})


def test_more_slices_than_ids_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_MAX_SLICES", 2)
    builder = TraceBuilder(tmp_path / "t")
    track = builder.thread()
    builder.slice(track, "a", 0, 1)
    builder.slice(track, "b", 1, 1)
    with pytest.raises(TraceFormatError, match="holds more than 2 slices"):
        builder.slice(track, "c", 2, 1)
