"""Traces that the installed torch writes: its C++ and its Python exporter, of one recording."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import trnscope
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One recording, written by the Python exporter and by the C++ one."""
    from torch.profiler import ProfilerActivity, profile, record_function

    folder = tmp_path_factory.mktemp("exported")
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    data = torch.randn(16, 64)
    options = {"record_shapes": True, "profile_memory": True, "with_flops": True}
    with profile(activities=[ProfilerActivity.CPU], **options) as recording:
        for _ in range(3):
            with record_function("forward"):
                loss = model(data).sum()
            loss.backward()
    python, native = folder / "python.json", folder / "native.json"
    recording.export_chrome_trace(str(python), use_python_export=True)
    recording.export_chrome_trace(str(native))
    return python, native


def opened(path: Path) -> Trace:
    (trace,) = trnscope.open(path).traces
    return trace


def rows(trace: Trace, *kinds: SliceKind) -> Counter[tuple[str, int, int]]:
    at = trace.slices.of_kind(*kinds)
    names = trace.strings.take(trace.slices.name[at])
    start, dur = trace.slices.start_ns[at].tolist(), trace.slices.dur_ns[at].tolist()
    return Counter(zip(names, start, dur, strict=True))


def test_both_exporters_give_the_same_slices(exported: tuple[Path, Path]) -> None:
    python, native = map(opened, exported)
    for kind in (SliceKind.CPU_OP, SliceKind.ANNOTATION):
        found = rows(python, kind)
        assert found == rows(native, kind)
        assert found
    assert python.health.complete and native.health.complete
    assert python.source.format == native.source.format == "kineto"
    assert python.source.epoch and native.source.epoch


def test_both_exporters_give_the_same_memory_events(exported: tuple[Path, Path]) -> None:
    python, native = (opened(path).memory for path in exported)
    text = exported[0].read_text()
    phases = {e["ph"] for e in json.loads(text)["traceEvents"] if e["name"] == "[memory]"}
    assert phases == {"X"}  # with a duration up to the end of the trace
    assert python.ts_ns.size > 20
    for column in ("ts_ns", "size_bytes", "address", "total_allocated_bytes", "device_index"):
        one, two = getattr(python, column), getattr(native, column)
        assert np.array_equal(np.sort(one), np.sort(two)), column


def test_slices_are_the_events_that_torch_lists(exported: tuple[Path, Path]) -> None:
    document = json.loads(exported[1].read_text(), parse_float=str)
    trace = opened(exported[1])
    categories = np.array(trace.categories)[trace.slices.category]
    wanted = Counter(e["cat"] for e in document["traceEvents"] if e["ph"] == "X")
    assert Counter(categories.tolist()) == wanted
    assert trace.source.num_events == len(document["traceEvents"])
