"""Device time equals what TraceLens published for the same files (docs/agreement.md).

Two files differ because TraceLens leaves work out; there its rule, applied to our slices,
gives its number, which proves the explanation.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import trnscope
from trnscope.analysis.devices import DeviceSummary, summarize_devices
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool

FILES = {
    "h100/google_owlv2-large-patch14-ensemble__1016001": None,
    "h100/facebook_timesformer-base-finetuned-k400__1016002": None,
    "h100/gaunernst_bert-small-uncased__1016001": None,
    "h100/Falconsai_nsfw_image_detection__1016002": None,
    "inference/vllm_decode_full/graph_execution": "inference/vllm_decode_full/perf_csvs",
    "inference/sglang_decode/sglang_Qwen3-8B_decode": "inference/sglang_decode/perf_csvs",
    "torch_compile_triton/trace": None,
}
QWEN = "h100/Qwen_Qwen1.5-0.5B-Chat__1016005"
NORMALIZATION = "perf_model/normalization/normalization_layer_test"

ROUNDING_NS = 30
"""TraceLens adds float64 µs: near 10**9 µs one of them is off by up to 0.06 ns, an end by 0.12."""


def folder(shared: Path) -> Path:
    return shared / "traces" / "TraceLens" / "tests" / "traces"


def reference(shared: Path, name: str, csvs: str | None = None) -> dict[str, float]:
    """The published table, ns."""
    path = folder(shared) / (csvs or f"{name}_perf_report_csvs") / "gpu_timeline.csv"
    with path.open(newline="") as file:
        return {row["type"]: float(row["time ms"]) * 1e6 for row in csv.DictReader(file)}


def open_one(shared: Path, name: str) -> Trace:
    (trace,) = trnscope.open(folder(shared) / f"{name}.json.gz").traces
    return trace


def only_device(trace: Trace) -> DeviceSummary:
    (row,) = summarize_devices(trace)
    return row


def close(expected: float) -> object:
    return pytest.approx(expected, rel=1e-3, abs=ROUNDING_NS)


@pytest.mark.parametrize(("name", "csvs"), list(FILES.items()))
def test_device_times(shared: Path, name: str, csvs: str | None) -> None:
    expected = reference(shared, name, csvs)
    row = only_device(open_one(shared, name))
    assert row.busy_ns == close(expected["busy_time"])
    assert row.idle_ns == close(expected["idle_time"])
    assert row.busy_ns + row.idle_ns == close(expected["total_time"])
    assert row.compute_ns == close(expected["computation_time"])
    assert row.memcpy_ns == close(expected["total_memcpy_time"])
    assert row.exposed_memcpy_ns == close(expected["exposed_memcpy_time"])
    assert row.exposed_communication_ns == close(expected["exposed_comm_time"])


def times_of(trace: Trace, chosen: Bool) -> tuple[int, int, int]:
    """Busy, idle and compute (copies left out) of some of the device work, ns."""
    ids = trace.launches.device_slice[chosen]
    start, dur = trace.slices.start_ns[ids], trace.slices.dur_ns[ids]
    computes = trace.slices.kind[ids] != SliceKind.MEMCPY
    busy = Intervals.union_of(start, start + dur)
    compute = Intervals.union_of(start[computes], start[computes] + dur[computes])
    window = int(busy.end[-1] - busy.start[0])
    return busy.total, window - busy.total, compute.total


def test_qwen_differs_by_the_work_without_a_launch(shared: Path) -> None:
    """TraceLens drops 509 kernels that were launched before recording began."""
    expected = reference(shared, QWEN)
    trace = open_one(shared, QWEN)
    busy, idle, compute = times_of(trace, trace.launches.has_launch)
    assert busy == close(expected["busy_time"])
    assert idle == close(expected["idle_time"])
    assert compute == close(expected["computation_time"])
    row = only_device(trace)
    assert (row.busy_ns, row.idle_ns, row.unlinked_ns) == (45_647_300, 4_005_532, 13_741_827)
    assert row.busy_ns == busy + row.unlinked_ns


def test_normalization_differs_by_the_fills_without_a_flow(shared: Path) -> None:
    """TraceLens follows flow arrows, which five memsets lack though their launch is known."""
    expected = reference(shared, NORMALIZATION)
    trace = open_one(shared, NORMALIZATION)
    has_flow = np.isin(trace.launches.device_slice, trace.flows.slice_in)
    busy, idle, compute = times_of(trace, has_flow)
    assert busy == close(expected["busy_time"])
    assert idle == close(expected["idle_time"])
    assert compute == close(expected["computation_time"])
    row = only_device(trace)
    missing = trace.launches.device_slice[~has_flow]
    assert trace.slices.kind[missing].tolist() == [SliceKind.MEMSET] * 5
    assert row.busy_ns == busy + int(trace.slices.dur_ns[missing].sum()) == 1_018_632
    assert row.unlinked_ns == 0
