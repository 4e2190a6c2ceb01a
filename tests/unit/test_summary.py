"""The summary document in the contract's form."""

from __future__ import annotations

from pathlib import Path

from trnscope.analysis.span import span_ns
from trnscope.analysis.summary import summarize
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.model.track import Track
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile


def test_document(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t", rank=4)
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "ProfilerStep#1", 0, 100, SliceKind.ANNOTATION)
    b.slice(cpu, "cudaLaunchKernel", 5, 1, SliceKind.RUNTIME, correlation=1)
    b.slice(gpu, "k", 20, 10, SliceKind.KERNEL, correlation=1)
    document = summarize(Profile((b.build(),))).to_json()
    assert list(document) == ["schema", "sources", "health", "span_ns", "devices", "steps"]
    assert document["schema"] == 1
    assert document["sources"] == [
        {
            "path": str(tmp_path / "t" / "built-by-hand"),
            "format": "kineto",
            "rank": 4,
            "num_events": 3,
            "simulated_by": None,
        }
    ]
    assert document["span_ns"] == 100


def test_cpu_only_has_no_devices(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "aten::linear", 0, 100)
    summary = summarize(Profile((b.build(),)))
    assert (summary.devices, summary.steps, summary.span_ns) == ((), (), 100)


def test_span_is_real_work_only(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    rows = b.track(Track(TrackKind.PROFILER, "Spans", "PyTorch Profiler"))
    b.slice(rows, "PyTorch Profiler (0)", 0, 9999, SliceKind.OTHER)
    b.slice(cpu, "Trace", 0, 9999, SliceKind.PROFILER)
    b.slice(cpu, "Buffer Flush", 900, 100, SliceKind.OVERHEAD)
    b.slice(gpu, "ProfilerStep#1", 100, 500, SliceKind.DEVICE_ANNOTATION)
    b.slice(gpu, "Event Sync", 50, 500, SliceKind.SYNC)
    b.slice(gpu, "gemm", 300, 100, SliceKind.KERNEL)
    b.slice(cpu, "aten::mm", 250, 10)
    b.instant(rows, "Record Window End", 20000)
    b.counter(gpu, "util", "", 30000, 1.0)
    assert span_ns(Profile((b.build(),))) == 150


def test_span_of_an_empty_trace(tmp_path: Path) -> None:
    assert span_ns(Profile((TraceBuilder(tmp_path / "t").build(),))) == 0


def test_span_of_files_with_clocks_of_their_own_is_the_longest(tmp_path: Path) -> None:
    traces = []
    for name, start, dur in (("a", 0, 50), ("b", 1000, 70)):
        b = TraceBuilder(tmp_path / name)
        b.slice(b.thread(), "aten::mm", start, dur)
        traces.append(b.build())
    assert span_ns(Profile(tuple(traces))) == 70
