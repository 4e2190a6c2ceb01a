"""Overlap of communication and copies with compute; numbers computed by hand (case 12)."""

from __future__ import annotations

from pathlib import Path

from trnscope.analysis.overlap import DeviceOverlap, overlap
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile


def of(builder: TraceBuilder) -> DeviceOverlap:
    (row,) = overlap(Profile((builder.build(),))).devices
    return row


def test_sync_rows_hide_nothing(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    seven, twenty = b.stream(stream=7), b.stream(stream=20)
    b.slice(seven, "gemm", 1000, 100, SliceKind.KERNEL)
    b.slice(twenty, "ncclDevKernel", 1080, 120, SliceKind.COLLECTIVE)
    b.slice(seven, "Stream Sync", 1100, 100, SliceKind.SYNC)
    row = of(b)
    assert (row.communication_ns, row.overlapped_communication_ns) == (120, 20)
    assert row.exposed_communication_ns == 100
    assert row.communication_overlap_ratio == 20 / 120
    assert row.memcpy_overlap_ratio is None


def test_streams_that_run_together(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    seven, eight, nine = (b.stream(stream=s) for s in (7, 8, 9))
    b.slice(seven, "gemm", 0, 100, SliceKind.KERNEL)
    b.slice(eight, "copy", 50, 30, SliceKind.MEMCPY)
    b.slice(eight, "copy", 90, 30, SliceKind.MEMCPY)
    b.slice(nine, "gemm", 70, 40, SliceKind.KERNEL)
    row = of(b)
    assert [(p.stream, p.other, p.both_busy_ns) for p in row.streams] == [
        (7, 7, 100),
        (7, 8, 40),
        (7, 9, 30),
        (8, 8, 60),
        (8, 9, 30),
        (9, 9, 40),
    ]
    assert (row.memcpy_ns, row.overlapped_memcpy_ns, row.exposed_memcpy_ns) == (60, 50, 10)


def test_only_the_busiest_of_very_many_streams_are_paired(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    for stream in range(1000):
        b.slice(b.stream(stream=stream), "k", 10, 1 + stream, SliceKind.KERNEL)
    row = of(b)
    assert row.num_streams_left_out == 936
    assert len(row.streams) == 64 * 65 // 2
    assert {pair.stream for pair in row.streams} == set(range(936, 1000))
    assert {(p.stream, p.other): p.both_busy_ns for p in row.streams}[940, 999] == 941


def test_json(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.stream(), "gemm", 0, 5, SliceKind.KERNEL)
    assert of(b).to_json() == {
        "source": 0,
        "rank": None,
        "device": "cuda:0",
        "communication_ns": 0,
        "overlapped_communication_ns": 0,
        "exposed_communication_ns": 0,
        "communication_overlap_ratio": None,
        "memcpy_ns": 0,
        "overlapped_memcpy_ns": 0,
        "exposed_memcpy_ns": 0,
        "memcpy_overlap_ratio": None,
        "streams": [{"stream": 7, "other": 7, "both_busy_ns": 5}],
        "num_streams_left_out": 0,
    }
