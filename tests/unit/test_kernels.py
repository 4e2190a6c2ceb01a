"""Device work by kernel, device and stream, with hand-computed answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.analysis.kernels import KernelRow, KernelsTable, LaunchConfig, kernels
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile


@pytest.fixture
def b(tmp_path: Path) -> TraceBuilder:
    return TraceBuilder(tmp_path / "t")


def table(b: TraceBuilder, group_by: str = "name") -> KernelsTable:
    return kernels(Profile((b.build(),)), group_by)


def by_name(result: KernelsTable) -> dict[tuple[str, str], KernelRow]:
    return {(row.name, row.kind): row for row in result.rows}


def test_statistics_of_a_kernel(b: TraceBuilder) -> None:
    gpu = b.stream()
    for at, dur in enumerate(range(1, 101)):
        b.slice(gpu, "gemm", at * 1000, dur, SliceKind.KERNEL)
    (row,) = table(b).rows
    assert (row.count, row.sum_ns, row.mean_ns) == (100, 5050, 51)
    assert (row.min_ns, row.p50_ns, row.p95_ns, row.max_ns) == (1, 50, 95, 100)
    assert row.share_of_sum_ratio == 1.0


def test_kernels_below_a_microsecond_keep_their_length(b: TraceBuilder) -> None:
    """Case 05: 200, 350 and 950 ns."""
    gpu = b.stream()
    for at, dur in ((0, 200), (1000, 350), (2000, 950)):
        b.slice(gpu, "tiny", at, dur, SliceKind.KERNEL)
    (row,) = table(b).rows
    assert (row.sum_ns, row.mean_ns, row.min_ns) == (1500, 500, 200)


def test_sorts_of_work_are_rows_apart_and_shares_are_of_the_sum(b: TraceBuilder) -> None:
    gpu, other = b.stream(stream=7), b.stream(stream=13)
    b.slice(gpu, "gemm", 0, 100, SliceKind.KERNEL)
    b.slice(gpu, "gemm", 150, 100, SliceKind.KERNEL)
    b.slice(other, "nccl", 50, 70, SliceKind.COLLECTIVE)
    b.slice(other, "gemm", 300, 20, SliceKind.MEMCPY)
    b.slice(other, "fill", 330, 10, SliceKind.MEMSET)
    b.slice(other, "range", 0, 9_999, SliceKind.DEVICE_ANNOTATION)
    result = table(b)
    rows = by_name(result)
    assert {key: row.sum_ns for key, row in rows.items()} == {
        ("gemm", "kernel"): 200,
        ("nccl", "communication"): 70,
        ("gemm", "memcpy"): 20,
        ("fill", "memset"): 10,
    }
    assert [row.sum_ns for row in result.rows] == [200, 70, 20, 10]
    assert result.sum_ns == 300
    # [0, 120] + [150, 250] + [300, 320] + [330, 340]
    assert result.busy_ns == 250
    assert rows["gemm", "kernel"].share_of_sum_ratio == 200 / 300
    assert sum(row.share_of_sum_ratio or 0 for row in result.rows) == pytest.approx(1)
    assert [row.name for row in result.of_kind("communication")] == ["nccl"]


def test_by_device_and_by_stream(b: TraceBuilder) -> None:
    tracks = [b.stream(0, 7), b.stream(0, 13), b.stream(1, 7)]
    for track, dur in zip(tracks, (10, 20, 40), strict=True):
        b.slice(track, "k", 0, dur, SliceKind.KERNEL)
    profile = Profile((b.build(),))
    by_device = {row.name: row.sum_ns for row in kernels(profile, "device").rows}
    assert by_device == {"cuda:0": 30, "cuda:1": 40}
    by_stream = {row.name: row.sum_ns for row in kernels(profile, "stream").rows}
    assert by_stream == {
        "cuda:0 stream 7": 10,
        "cuda:0 stream 13": 20,
        "cuda:1 stream 7": 40,
    }
    (row,) = kernels(profile).rows
    assert (row.devices, row.streams) == (("cuda:0", "cuda:1"), (7, 13))


def test_launch_configurations_most_frequent_first(b: TraceBuilder) -> None:
    gpu = b.stream()
    for at, (grid, block) in enumerate(
        [("[1, 1, 1]", "[32, 1, 1]"), ("[2, 1, 1]", "[64, 1, 1]"), ("[2,1,1]", "[64,1,1]")]
    ):
        b.slice(gpu, "k", at * 10, 5, SliceKind.KERNEL, grid=grid, block=block)
    b.slice(gpu, "k", 50, 5, SliceKind.KERNEL)
    (row,) = table(b).rows
    assert row.launch_configs == (
        LaunchConfig((2, 1, 1), (64, 1, 1), 2),
        LaunchConfig((1, 1, 1), (32, 1, 1), 1),
    )
    assert row.to_json()["launch_configs"] == [
        {"grid": [2, 1, 1], "block": [64, 1, 1], "count": 2},
        {"grid": [1, 1, 1], "block": [32, 1, 1], "count": 1},
    ]


def test_ranks_are_added_up_and_their_devices_kept_apart(tmp_path: Path) -> None:
    traces = []
    for rank in (0, 1):
        b = TraceBuilder(tmp_path / str(rank), rank=rank)
        b.slice(b.stream(kind=DeviceKind.NEURON), "k", 0, 10 + rank, SliceKind.KERNEL)
        traces.append(b.build())
    result = kernels(Profile(tuple(traces)))
    (row,) = result.rows
    assert (row.count, row.sum_ns) == (2, 21)
    assert row.devices == ("rank 0 neuron:0", "rank 1 neuron:0")
    assert result.busy_ns == 21


@pytest.mark.parametrize("ranks", [(None, None), (3, 3), (None, 1)])
def test_devices_of_files_that_are_no_ranks_are_kept_apart(
    tmp_path: Path, ranks: tuple[int | None, int | None]
) -> None:
    traces = []
    for number, rank in enumerate(ranks):
        b = TraceBuilder(tmp_path / str(number), rank=rank)
        b.slice(b.stream(), "k", 0, 10 + number, SliceKind.KERNEL)
        traces.append(b.build())
    profile = Profile(tuple(traces))
    by_device = {row.name: row.sum_ns for row in kernels(profile, "device").rows}
    assert by_device == {"source 0 cuda:0": 10, "source 1 cuda:0": 11}
    by_stream = {row.name: row.sum_ns for row in kernels(profile, "stream").rows}
    assert by_stream == {"source 0 cuda:0 stream 7": 10, "source 1 cuda:0 stream 7": 11}
    (row,) = kernels(profile).rows
    assert (row.sum_ns, row.devices) == (21, ("source 0 cuda:0", "source 1 cuda:0"))


def test_no_device_work(b: TraceBuilder) -> None:
    b.slice(b.thread(), "aten::mm", 0, 5)
    result = table(b)
    assert not result.has_device
    assert result.to_json() == {"schema": 1, "kernels": [], "sum_ns": 0, "busy_ns": 0}
