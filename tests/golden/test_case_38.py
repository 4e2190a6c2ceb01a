"""Case 38: Nsight exports that lack some tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trnscope.ingest.nsys import read_nsys
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.store.reader import Trace
from trnscope.store.writer import TraceWriter


@pytest.fixture
def expected(shared: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((shared / "cases/38/expected.json").read_text())
    return loaded


def opened(shared: Path, tmp_path: Path, name: str) -> Trace:
    read_nsys(shared / "cases/38" / name, TraceWriter(tmp_path / "store"))
    return Trace(tmp_path / "store")


def busy(trace: Trace, *kinds: SliceKind) -> Intervals:
    ids = trace.slices.of_kind(*kinds)
    return Intervals.union_of(trace.slices.start_ns[ids], trace.slices.end_ns[ids])


def warnings(trace: Trace) -> dict[str, str]:
    return {warning.code: warning.message for warning in trace.health.warnings}


def test_kernels_without_nvtx(shared: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    trace, values = (
        opened(shared, tmp_path, "with_kernels_no_nvtx.sqlite"),
        expected["with_kernels_no_nvtx.sqlite"],
    )
    slices = trace.slices
    work = slices.of_kind(*DEVICE_WORK)
    assert work.size == values["kernels"]
    assert busy(trace, *DEVICE_WORK).total == values["busy_ns"]
    assert int(slices.dur_ns[work].sum()) == values["sum_ns"]
    communication, compute = busy(trace, SliceKind.COLLECTIVE), busy(trace, SliceKind.KERNEL)
    assert communication.total == values["communication_ns"]
    assert communication.subtract(compute).total == values["exposed_communication_ns"]
    launches, counts = np.unique(trace.launches.launch_slice, return_counts=True)
    graphs = launches[counts > 1]
    assert graphs.size == values["graph_launches"]
    assert trace.strings.take(slices.name[graphs]) == ["cudaGraphLaunch"]
    assert warnings(trace) == {"no-nvtx": "no NVTX ranges recorded in this export"}


def test_cpu_only(shared: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    trace, values = opened(shared, tmp_path, "cpu_only.sqlite"), expected["cpu_only.sqlite"]
    assert trace.slices.of_kind(*DEVICE_WORK).size == values["kernels"]
    assert all(track.device is None for track in trace.tracks)
    ranges = trace.slices.name[trace.slices.of_kind(SliceKind.ANNOTATION)]
    assert trace.strings.take(ranges) == values["nvtx_ranges"]
    assert warnings(trace) == {"no-gpu-activity": "no GPU activity recorded in this export"}


def test_nvtx_text_through_the_string_table(
    shared: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    trace, values = opened(shared, tmp_path, "nvtx_textid.sqlite"), expected["nvtx_textid.sqlite"]
    ranges = trace.slices.name[trace.slices.of_kind(SliceKind.ANNOTATION)]
    assert [f"{name} (through StringIds.textId)" for name in trace.strings.take(ranges)] == (
        values["nvtx_ranges"]
    )
    assert busy(trace, *DEVICE_WORK).total == values["busy_ns"]
    assert warnings(trace) == {}
