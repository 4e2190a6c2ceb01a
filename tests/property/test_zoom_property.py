"""Viewport queries against the slices themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope.model.health import Health
from trnscope.model.kinds import TrackKind
from trnscope.model.source import TraceSource
from trnscope.model.track import Track
from trnscope.store.batches import SliceBatch
from trnscope.store.reader import Trace
from trnscope.store.writer import TraceWriter
from trnscope.store.zoom import ZoomIndex

NUM = 20_000


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """One lane of 20,000 slices: long enough for the pyramid, with gaps of every size."""
    random = np.random.default_rng(7)
    gap = random.integers(0, 3000, NUM)
    gap[random.random(NUM) < 0.001] = 5_000_000
    dur = random.integers(0, 4000, NUM)
    start = np.cumsum(gap + np.append(0, dur[:-1]))
    directory = tmp_path_factory.mktemp("zoom") / "t"
    writer = TraceWriter(directory)
    track = writer.add_track(Track(TrackKind.CPU_THREAD, "1", "1"))
    zeros = {name: np.zeros(NUM, kind) for name, kind in (("u8", "u1"), ("u2", "u2"), ("u4", "u4"))}
    writer.add_slices(
        SliceBatch(
            track=np.full(NUM, track, np.uint32),
            kind=zeros["u8"],
            category=zeros["u2"],
            name=zeros["u4"],
            start_ns=start,
            dur_ns=dur,
            args_offset=np.zeros(NUM, np.uint64),
            args_length=zeros["u4"],
        )
    )
    writer.category("cpu_op")
    writer.finish(TraceSource("x", "test", NUM), Health(True, NUM, 0, 0), ["x"])
    return Trace(directory)


@given(start=st.integers(-1000, 110_000_000), exponent=st.integers(0, 28), px=st.integers(1, 2000))
@settings(max_examples=200, deadline=None)
def test_rows_cover_what_touches_the_window_and_are_few(trace, start, exponent, px):
    window = 1 << exponent
    rows = ZoomIndex(trace).query([0], start, start + window, px)
    s = trace.slices
    end_ns = s.start_ns + s.dur_ns
    inside = (s.start_ns >= start) & (s.start_ns < start + window)
    running = (s.start_ns < start) & (end_ns > start)
    assert len(rows) <= 2 * px + 2
    assert (np.diff(rows.start_ns) >= 0).all()
    # A coarse row may reach over the window's edge by one bucket, never miss a slice in it.
    assert rows.count.sum() >= inside.sum() + running.sum()
    for wanted in np.flatnonzero(inside | running)[:50]:
        holds = (rows.start_ns <= s.start_ns[wanted]) & (rows.end_ns >= end_ns[wanted])
        assert holds.any()


def test_a_whole_view_counts_every_slice_once_at_any_level(trace):
    s = trace.slices
    span = int(s.start_ns[-1] + s.dur_ns[-1]) + 1
    for px in (10, 100, 1000, 10_000, 1_000_000):
        rows = ZoomIndex(trace).query([0], 0, span, px)
        assert rows.count.sum() == NUM
        assert rows.busy_ns.sum() == s.dur_ns.sum()


def test_deep_zoom_gives_the_slices_themselves(trace):
    s = trace.slices
    low, high = 7000, 7010
    rows = ZoomIndex(trace).query([0], int(s.start_ns[low]) + 1, int(s.start_ns[high]), 10**9)
    expected = np.arange(low if s.dur_ns[low] > 1 else low + 1, high)
    assert rows.longest.tolist() == expected.tolist()
    assert rows.start_ns.tolist() == s.start_ns[expected].tolist()


@given(start=st.integers(0, 100_000_000), exponent=st.integers(5, 19))
@settings(max_examples=60, deadline=None)
def test_a_row_names_the_longest_of_its_slices(trace, start, exponent):
    s = trace.slices
    # Below 1 µs a pixel rows are made of the slices themselves.
    rows = ZoomIndex(trace).query([0], start, start + (1 << exponent), 700)
    columns = (rows.start_ns, rows.count, rows.busy_ns, rows.longest)
    for row in zip(*columns, strict=True):
        row_start, count, busy, longest = (int(value) for value in row)
        first = int(np.searchsorted(s.start_ns, row_start))
        members = np.arange(first, first + count)
        assert s.dur_ns[members].sum() == busy
        assert longest in members
        assert s.dur_ns[longest] == s.dur_ns[members].max()


def test_an_empty_window_is_refused(trace):
    with pytest.raises(ValueError, match="viewport"):
        ZoomIndex(trace).query([0], 5, 5, 100)
