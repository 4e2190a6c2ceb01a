"""Launch latency, queue length and missing partners; numbers computed by hand (case 25)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trnscope.analysis.launch import (
    Distribution,
    copies_without_work,
    launch_calls,
    launches,
    launches_without_work,
    queue_length,
    stream_launches,
)
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

RUNTIME = SliceKind.RUNTIME


def test_nearest_rank_percentiles() -> None:
    values = np.array([50, 10, 40, 20, 30], np.int64)
    assert Distribution.of(values) == Distribution(5, 10, 30, 50, 50)
    assert Distribution.of(np.arange(1, 101)) == Distribution(100, 1, 50, 95, 100)
    assert Distribution.of(np.array([7])) == Distribution(1, 7, 7, 7, 7)
    assert Distribution.of(values[:0]) is None


def test_queue_counts_linked_work_only(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(gpu, "carry_over", 980, 40, SliceKind.KERNEL, correlation=500)
    for correlation, launch, start in ((501, 1000, 1030), (502, 1060, 1070)):
        b.slice(cpu, "cudaLaunchKernel", launch, 5, RUNTIME, correlation=correlation)
        b.slice(gpu, "gemm", start, 20, SliceKind.KERNEL, correlation=correlation)
    (row,) = stream_launches(b.build())
    assert row.queue.ts_ns.tolist() == [1000, 1050, 1060, 1090]
    assert row.queue.length.tolist() == [1, 0, 1, 0]
    assert (row.queue.max_length, row.queue.mean_length) == (1, (50 + 30) / 90)
    assert (row.num_work, row.num_launches, row.num_unlinked, row.unlinked_ns) == (3, 2, 1, 40)
    assert row.latency == Distribution(2, 10, 10, 30, 30)
    assert row.delay == Distribution(2, 5, 5, 25, 25)


def test_queue_is_deep_when_the_host_runs_ahead() -> None:
    queue = queue_length(np.array([0, 1, 2]), np.array([5, 10, 15]), np.array([10, 15, 20]))
    assert list(zip(queue.ts_ns.tolist(), queue.length.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
        (2, 3),
        (10, 2),
        (15, 1),
        (20, 0),
    ]


def test_queue_never_falls_below_zero_when_clocks_disagree() -> None:
    queue = queue_length(np.array([10, 20]), np.array([2, 20]), np.array([8, 20]))
    assert (queue.ts_ns.tolist(), queue.length.tolist()) == ([2, 8], [1, 0])


def test_graph_launch_has_one_latency(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "cudaGraphLaunch", 0, 10, RUNTIME, correlation=1)
    for start in (15, 25, 35):
        b.slice(gpu, "k", start, 10, SliceKind.KERNEL, correlation=1)
    (row,) = stream_launches(b.build())
    assert (row.num_work, row.num_launches) == (3, 1)
    assert row.latency == Distribution(1, 15, 15, 15, 15)
    assert row.queue.length.tolist() == [3, 2, 1, 0]


def test_launches_whose_work_is_missing(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "oddCall", 0, 5, RUNTIME, correlation=1)
    b.slice(gpu, "k", 5, 5, SliceKind.KERNEL, correlation=1)
    b.slice(cpu, "oddCall", 10, 5, RUNTIME, correlation=2)
    b.slice(cpu, "hipModuleLaunchKernel", 20, 5, RUNTIME, correlation=3)
    b.slice(cpu, "cudaLaunchHostFunc", 30, 5, RUNTIME, correlation=4)
    b.slice(cpu, "cudaStreamSynchronize", 40, 5, RUNTIME)
    b.slice(cpu, "cudaMemsetAsync", 50, 5, RUNTIME, correlation=5)
    trace = b.build()
    assert trace.slices.start_ns[launch_calls(trace)].tolist() == [0, 10, 20, 50]
    assert trace.slices.start_ns[launches_without_work(trace)].tolist() == [10, 20]
    assert trace.slices.start_ns[copies_without_work(trace)].tolist() == [50]
    report = launches(Profile((trace,)))
    (host,) = report.hosts
    assert (host.num_launches, host.num_without_work, host.window_ns) == (4, 2, 50)
    assert host.num_copies_without_work == 1
    assert host.launches_per_second == 3 / 50e-9


def test_json(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t", rank=0)
    b.slice(b.stream(stream=3), "k", 5, 10, SliceKind.KERNEL)
    assert launches(Profile((b.build(),))).to_json() == {
        "schema": 1,
        "streams": [
            {
                "source": 0,
                "rank": 0,
                "device": "cuda:0",
                "stream": 3,
                "num_work": 1,
                "num_launches": 0,
                "latency": None,
                "delay": None,
                "num_unlinked": 1,
                "unlinked_ns": 10,
                "max_queue_length": 0,
                "mean_queue_length": None,
            }
        ],
        "hosts": [],
    }
