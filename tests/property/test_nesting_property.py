"""Nesting against a plain Python reading of the rule, and the laws it must keep."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope import _native
from trnscope.model.health import Health
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.model.source import TraceSource
from trnscope.model.track import Track
from trnscope.store.batches import MemoryBatch, SliceBatch
from trnscope.store.reader import Trace
from trnscope.store.writer import TraceWriter

slices = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 25), st.booleans()), min_size=0, max_size=40
)
checked = settings(max_examples=120, deadline=None)


class Nested:
    """Rows (start, duration, is Python) of one track as the store nests them.

    Row numbers are kept as names, so that each slice can be told apart.
    """

    def __init__(self, rows, directory, times=()):
        num = len(rows)
        writer = TraceWriter(directory)
        track = writer.add_track(Track(TrackKind.CPU_THREAD, "1", "1"))
        writer.category("any")
        kinds = [SliceKind.PYTHON if python else SliceKind.CPU_OP for _, _, python in rows]
        writer.add_slices(
            SliceBatch(
                track=np.full(num, track, np.uint32),
                kind=np.array(kinds, np.uint8),
                category=np.zeros(num, np.uint16),
                name=np.arange(num, dtype=np.uint32),
                start_ns=np.array([start for start, _, _ in rows], np.int64),
                dur_ns=np.array([dur for _, dur, _ in rows], np.int64),
                args_offset=np.zeros(num, np.uint64),
                args_length=np.zeros(num, np.uint32),
            )
        )
        asked = np.array(times, np.int64)
        zeros = np.zeros(asked.size, np.int64)
        writer.add_memory(
            MemoryBatch(
                ts_ns=asked,
                track=np.zeros(asked.size, np.uint32),
                address=np.arange(asked.size, dtype=np.uint64),
                size_bytes=zeros,
                device_type=zeros,
                device_index=zeros,
                has_total=zeros.astype(np.uint8),
                total_allocated_bytes=zeros,
                total_reserved_bytes=zeros,
            )
        )
        writer.finish(
            TraceSource("x", "test", num), Health(True, num, 0, 0), [str(i) for i in range(num)]
        )
        trace = Trace(directory)
        columns = trace.slices
        self.memory = trace.memory
        self.order = columns.name.tolist()
        self.parent = columns.parent.tolist()
        self.depth = columns.depth.tolist()
        self.self_ns = columns.self_ns.tolist()
        self.op_self_ns = columns.op_self_ns.tolist()


def nest(rows, times=()):
    with tempfile.TemporaryDirectory() as folder:
        return Nested(rows, Path(folder) / "t", times)


def parents_by_the_rule(rows):
    """Row to parent row (itself for a root), straight from the documented sentence."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i][0], -rows[i][1], i))
    open_rows, parent = [], {}
    for i in order:
        start, end = rows[i][0], rows[i][0] + rows[i][1]
        while open_rows:
            top = rows[open_rows[-1]]
            if start >= top[0] + top[1] or end > top[0] + top[1]:
                open_rows.pop()
            else:
                break
        parent[i] = open_rows[-1] if open_rows else i
        open_rows.append(i)
    return parent


def covered(intervals):
    return len({t for start, end in intervals for t in range(start, end)})


@given(slices)
@checked
def test_parents_follow_the_rule(rows):
    n = nest(rows)
    got = {n.order[at]: n.order[n.parent[at]] for at in range(len(rows))}
    assert got == parents_by_the_rule(rows)


@given(slices)
@checked
def test_lanes_do_not_overlap_and_children_lie_below(rows):
    n = nest(rows)
    assert sorted(n.order) == list(range(len(rows)))
    for at in range(1, len(rows)):
        assert n.depth[at] >= n.depth[at - 1]
        if n.depth[at] == n.depth[at - 1]:
            start, dur, _ = rows[n.order[at - 1]]
            assert start + dur <= rows[n.order[at]][0]
    for at in range(len(rows)):
        if n.parent[at] != at:
            assert n.depth[at] > n.depth[n.parent[at]]


@given(slices)
@checked
def test_self_times_are_not_negative_and_add_up_to_the_union(rows):
    n = nest(rows)
    assert all(value >= 0 for value in n.self_ns)
    assert sum(n.self_ns) == covered((s, s + d) for s, d, _ in rows)


@given(slices)
@checked
def test_op_self_time_leaves_out_the_nearest_ops_only(rows):
    n = nest(rows)
    ops = [i for i in range(len(rows)) if not rows[i][2]]
    parent = parents_by_the_rule([rows[i] for i in ops])
    expected = {}
    for k, i in enumerate(ops):
        children = [rows[ops[c]] for c in range(len(ops)) if parent[c] == k and c != k]
        expected[i] = rows[i][1] - covered((s, s + d) for s, d, _ in children)
    got = {row: n.op_self_ns[at] for at, row in enumerate(n.order)}
    assert {row: got[row] for row in ops} == expected
    frames = [i for i in range(len(rows)) if rows[i][2]]
    own = {row: n.self_ns[at] for at, row in enumerate(n.order)}
    assert {row: got[row] for row in frames} == {row: own[row] for row in frames}


@given(slices, st.randoms())
@checked
def test_the_order_of_distinct_slices_in_the_file_does_not_matter(rows, random):
    distinct = list({(s, d): (s, d, p) for s, d, p in rows}.values())
    shuffled = distinct[:]
    random.shuffle(shuffled)

    def result(some):
        n = nest(some)
        columns = zip(n.order, n.depth, n.self_ns, n.op_self_ns, strict=True)
        return [(some[row], *values) for row, *values in columns]

    assert result(distinct) == result(shuffled)


@given(slices, st.lists(st.integers(-1, 70), max_size=10))
@checked
def test_a_point_belongs_to_the_innermost_op_that_holds_it(rows, times):
    n = nest(rows, times)
    parent = parents_by_the_rule(rows)
    by_start = sorted(range(len(rows)), key=lambda i: (rows[i][0], -rows[i][1], i))
    for k, ts in enumerate(n.memory.ts_ns.tolist()):
        begun = [i for i in by_start if rows[i][0] <= ts]
        expected, at = None, begun[-1] if begun else None
        while at is not None and expected is None:
            start, dur, python = rows[at]
            if (start == ts or start + dur > ts) and not python:
                expected = at
            at = parent[at] if parent[at] != at else None
        assert bool(n.memory.has_op[k]) == (expected is not None)
        if expected is not None:
            assert n.order[n.memory.op_slice[k]] == expected


def test_a_long_track_gives_the_same_as_short_ones(tmp_path):
    """Above 100,000 slices the columns are made by two threads and pages are given back."""
    block = [(0, 25, False), (1, 20, True), (2, 5, False), (8, 4, True), (15, 10, False)]
    num = 25_000
    long = [(start + 100 * k, dur, python) for k in range(num) for start, dur, python in block]
    n = Nested(long, tmp_path / "long")
    short = nest(block)
    for column in ("depth", "self_ns", "op_self_ns"):
        by_row = dict(zip(n.order, getattr(n, column), strict=True))
        expected = dict(zip(short.order, getattr(short, column), strict=True))
        assert [by_row[i] for i in range(len(long))] == [expected[i % 5] for i in range(len(long))]
    parents = {n.order[at]: n.order[n.parent[at]] for at in range(len(long))}
    of_block = parents_by_the_rule(block)
    assert parents == {i: i - i % 5 + of_block[i % 5] for i in range(len(long))}


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-20, 20)), max_size=60))
def test_points_are_ordered_by_track_and_time_and_stably(points):
    track = np.array([t for t, _ in points], np.uint32)
    ts = np.array([at for _, at in points], np.int64)
    order, first = _native.point_order(track, ts, 5)
    assert order.tolist() == sorted(range(len(points)), key=lambda i: points[i])
    assert first.tolist() == [sum(t < k for t, _ in points) for k in range(6)]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-(2**55), 2**55)), max_size=60))
def test_group_sums_are_exact(pairs):
    keys = np.array([k for k, _ in pairs], np.uint32)
    values = np.array([v for _, v in pairs], np.int64)
    count, total = _native.group_sum(keys, values, 7)
    assert count.tolist() == [sum(k == g for k, _ in pairs) for g in range(7)]
    assert total.tolist() == [sum(v for k, v in pairs if k == g) for g in range(7)]
