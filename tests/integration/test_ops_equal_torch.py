"""``ops`` on an exported trace equals torch's own table of the same run, to the nanosecond.

Each workload is profiled here; torch's table comes from ``key_averages()`` and ours from the
Chrome trace that the same profiler exported.

Three differences are known, and are asserted as what they are:

- Where torch gives a call an own time below zero (Python frames whose clock readings overlap),
  ours is the time that no child covers.
- Without Python frames (``python=False``) the table equals what torch's code makes of the same
  events less the frames, not ``key_averages()`` itself.
- An annotation that ends on another thread than it began gets no own time from torch. The trace
  does not name the thread of its end, so ours is nested on the thread where it began.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import trnscope
from tests.integration.torch_workloads import (
    WORKLOADS,
    Recording,
    TorchRow,
    annotation_across_threads,
)
from trnscope.analysis.ops import OpsTable, ops

pytestmark = pytest.mark.slow


def _assert_rows_equal(ours: OpsTable, torchs: list[TorchRow], *, by_shape: bool = False) -> None:
    mine = sorted(
        (row.name, (row.input_shapes or "[]") if by_shape else "", row.calls, row.cpu_total_ns)
        for row in ours.rows
    )
    theirs = sorted((row.name, row.shapes or "", row.calls, row.cpu_total_ns) for row in torchs)
    assert mine == theirs
    own = sorted(
        ((row.name, row.input_shapes or "[]") if by_shape else (row.name, ""), row.self_cpu_ns)
        for row in ours.rows
    )
    their_own = sorted(((row.name, row.shapes or ""), row.self_cpu_ns) for row in torchs)
    negative = {(row.name, row.shapes or "") for row in torchs if row.has_negative}
    assert [row for row in own if row[0] not in negative] == [
        row for row in their_own if row[0] not in negative
    ]
    for (key, mine_ns), (_, theirs_ns) in zip(own, their_own, strict=True):
        if key in negative:
            assert mine_ns > theirs_ns
        assert mine_ns >= 0


@pytest.fixture(scope="module", params=WORKLOADS)
def recordings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[Recording]:
    name: str = request.param
    return WORKLOADS[name](tmp_path_factory.mktemp(name))


def test_every_row_equals_torch(recordings: list[Recording]) -> None:
    for recording in recordings:
        _assert_rows_equal(ops(trnscope.open(recording.trace)), recording.rows)


def test_every_row_by_shape_equals_torch(recordings: list[Recording]) -> None:
    for recording in recordings:
        ours = ops(trnscope.open(recording.trace), "shape")
        _assert_rows_equal(ours, recording.rows_by_shape, by_shape=True)


def test_rows_without_frames_equal_torch_without_frames(recordings: list[Recording]) -> None:
    for recording in recordings:
        ours = ops(trnscope.open(recording.trace), python=False)
        points = {"[memory]", "[OutOfMemory]"}
        kept = OpsTable(
            ours.group_by, tuple(r for r in ours.rows if r.name not in points), False, None, None
        )
        torchs = [row for row in recording.rows_without_python if row.name not in points]
        _assert_rows_equal(kept, torchs)


def test_annotation_across_threads_is_nested_where_it_began(tmp_path: Path) -> None:
    (recording,) = annotation_across_threads(tmp_path)
    name = "across threads"
    ours = {row.name: row for row in ops(trnscope.open(recording.trace)).rows}
    torchs = {row.name: row for row in recording.rows}
    inside = ours["aten::sum"].cpu_total_ns + ours["aten::ones"].cpu_total_ns
    assert ours[name].cpu_total_ns == torchs[name].cpu_total_ns
    assert torchs[name].self_cpu_ns == 0
    assert ours[name].cpu_total_ns - inside < ours[name].self_cpu_ns < ours[name].cpu_total_ns
    del ours[name], torchs[name]
    assert {row.name: (row.calls, row.self_cpu_ns, row.cpu_total_ns) for row in ours.values()} == {
        row.name: (row.calls, row.self_cpu_ns, row.cpu_total_ns) for row in torchs.values()
    }


def test_workloads_are_the_ones_that_matter() -> None:
    """GIVEN the list THEN each of the hard parts of torch's table is in it."""
    assert set(WORKLOADS) >= {
        "training_step",
        "compiled_model",
        "data_loader",
        "nested_annotations",
        "autograd_threads",
        "memory_and_shapes",
        "recursion",
        "two_gloo_ranks",
    }


def test_several_processes_wrote_one_trace_each(tmp_path: Path) -> None:
    both = WORKLOADS["two_gloo_ranks"](tmp_path)
    profile = trnscope.open(*(recording.trace for recording in both))
    assert [trace.source.rank for trace in profile.traces] == [0, 1]
    calls = {row.name: row.calls for row in ops(profile).rows}
    expected: dict[str, int] = {}
    for recording in both:
        for row in recording.rows:
            expected[row.name] = expected.get(row.name, 0) + row.calls
    assert calls == expected
