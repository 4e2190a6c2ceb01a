"""Device time: unions, sums, exposure; numbers computed by hand (cases 08, 11, 12, 18, 25)."""

from __future__ import annotations

from pathlib import Path

from trnscope.analysis.devices import DeviceSummary, device_work, summarize_devices
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.model.track import Track
from trnscope.store.builder import TraceBuilder


def only(rows: tuple[DeviceSummary, ...]) -> DeviceSummary:
    (row,) = rows
    return row


def test_annotation_on_device_is_no_device_work(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    gpu = b.stream()
    b.slice(gpu, "ncclDevKernel_AllReduce", 1020, 10, SliceKind.COLLECTIVE)
    b.slice(gpu, "ncclDevKernel_AllReduce", 1045, 20, SliceKind.COLLECTIVE)
    b.slice(gpu, "nccl:all_reduce", 1020, 45, SliceKind.DEVICE_ANNOTATION)
    row = only(summarize_devices(b.build()))
    assert (row.sum_ns, row.busy_ns, row.idle_ns, row.num_kernels) == (30, 30, 15, 2)
    assert (row.communication_ns, row.exposed_communication_ns, row.compute_ns) == (30, 30, 0)


def test_busy_is_the_union_over_streams(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    seven, thirteen = b.stream(stream=7), b.stream(stream=13)
    b.slice(seven, "gemm_a", 0, 100, SliceKind.KERNEL)
    b.slice(seven, "gemm_b", 150, 100, SliceKind.KERNEL)
    b.slice(thirteen, "other", 50, 70, SliceKind.KERNEL)
    row = only(summarize_devices(b.build()))
    assert (row.sum_ns, row.busy_ns, row.idle_ns) == (270, 220, 30)


def test_sync_rows_are_no_compute(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    seven, thirteen, twenty = (b.stream(stream=s) for s in (7, 13, 20))
    b.slice(seven, "gemm", 1000, 100, SliceKind.KERNEL)
    b.slice(twenty, "ncclDevKernel_AllReduce", 1080, 120, SliceKind.COLLECTIVE)
    b.slice(seven, "Stream Sync", 1100, 100, SliceKind.SYNC)
    b.slice(thirteen, "Stream Wait Event", 1090, 110, SliceKind.SYNC)
    row = only(summarize_devices(b.build()))
    assert (row.compute_ns, row.communication_ns, row.exposed_communication_ns) == (100, 120, 100)
    assert (row.busy_ns, row.idle_ns) == (200, 0)


def test_counters_instants_and_profiler_rows_add_no_time(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    gpu = b.stream()
    rows = b.track(Track(TrackKind.PROFILER, "Spans", "PyTorch Profiler"))
    b.slice(gpu, "gemm", 1000, 100, SliceKind.KERNEL)
    b.slice(gpu, "gemm", 1200, 100, SliceKind.KERNEL)
    b.slice(rows, "PyTorch Profiler (0)", 0, 9999, SliceKind.PROFILER)
    b.counter(gpu, "GPU 0 Utilization", "GPU Utilization", 9000, 0.0)
    b.instant(rows, "Record Window End", 9999)
    row = only(summarize_devices(b.build()))
    assert (row.busy_ns, row.idle_ns) == (200, 100)


def test_fills_are_compute_and_copies_are_not(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    seven, eight = b.stream(stream=7), b.stream(stream=8)
    b.slice(seven, "Memset (Device)", 0, 10, SliceKind.MEMSET)
    b.slice(seven, "gemm", 20, 10, SliceKind.KERNEL)
    b.slice(eight, "Memcpy HtoD", 5, 20, SliceKind.MEMCPY)
    b.slice(eight, "ncclDevKernel", 24, 10, SliceKind.COLLECTIVE)
    row = only(summarize_devices(b.build()))
    # compute [0,10] + [20,30]; copy [5,25]; communication [24,34]
    assert (row.num_kernels, row.sum_ns, row.busy_ns) == (2, 50, 34)
    assert (row.compute_ns, row.memcpy_ns, row.exposed_memcpy_ns) == (20, 20, 10)
    assert (row.communication_ns, row.exposed_communication_ns) == (10, 4)


def test_work_without_length_stretches_the_window(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    one, two = b.stream(0), b.stream(1)
    b.slice(one, "k", 40, 60, SliceKind.KERNEL)
    b.slice(one, "first", 10, 0, SliceKind.MEMSET)
    b.slice(two, "last", 130, 0, SliceKind.KERNEL)
    rows = summarize_devices(b.build())
    assert [(r.device.label, r.num_kernels, r.busy_ns, r.idle_ns) for r in rows] == [
        ("cuda:0", 1, 60, 60),
        ("cuda:1", 1, 0, 120),
    ]


def test_idle_time_spans_all_devices_of_the_rank(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t", rank=3)
    b.slice(b.stream(device=1), "late", 90, 10, SliceKind.KERNEL)
    b.slice(b.stream(device=0), "early", 0, 40, SliceKind.KERNEL)
    rows = summarize_devices(b.build())
    assert [(r.device.label, r.busy_ns, r.idle_ns, r.rank) for r in rows] == [
        ("cuda:0", 40, 60, 3),
        ("cuda:1", 10, 90, 3),
    ]


def test_unlinked_work_is_busy_and_named(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(gpu, "carry_over", 980, 40, SliceKind.KERNEL, correlation=500)
    for correlation, launch, start in ((501, 1000, 1030), (502, 1060, 1070)):
        b.slice(cpu, "cudaLaunchKernel", launch, 5, SliceKind.RUNTIME, correlation=correlation)
        b.slice(gpu, "gemm", start, 20, SliceKind.KERNEL, correlation=correlation)
    row = only(summarize_devices(b.build()))
    assert (row.num_kernels, row.busy_ns, row.unlinked_ns) == (3, 80, 40)


def test_work_on_a_track_without_device_is_kept(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    nowhere = b.track(Track(TrackKind.OTHER, "0", "7"))
    b.slice(nowhere, "ncclKernel", 0, 50, SliceKind.COLLECTIVE)
    row = only(summarize_devices(b.build()))
    assert (row.device.label, row.communication_ns) == ("other:0", 50)


def test_zero_length_work_is_counted_and_takes_no_time(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.stream(), "empty", 5, 0, SliceKind.KERNEL)
    row = only(summarize_devices(b.build()))
    assert (row.num_kernels, row.busy_ns, row.idle_ns) == (1, 0, 0)


def test_no_device_work_no_devices(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "aten::linear", 0, 100)
    trace = b.build()
    assert device_work(trace) == () == summarize_devices(trace)


def test_json_has_the_contracts_fields(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.stream(kind=DeviceKind.NEURON, simulated=True), "matmul", 0, 5, SliceKind.KERNEL)
    assert only(summarize_devices(b.build(), source=2)).to_json() == {
        "source": 2,
        "rank": None,
        "device": "neuron:0",
        "kind": "neuron",
        "simulated": True,
        "num_kernels": 1,
        "sum_ns": 5,
        "busy_ns": 5,
        "idle_ns": 0,
        "compute_ns": 5,
        "communication_ns": 0,
        "exposed_communication_ns": 0,
        "memcpy_ns": 0,
        "exposed_memcpy_ns": 0,
        "unlinked_ns": 5,
    }
