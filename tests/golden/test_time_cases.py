"""The hand-computed cases about device time, steps and launches, by their expected.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trnscope
from trnscope.analysis.attribution import attribute_device_time
from trnscope.analysis.backward import link_backward
from trnscope.analysis.breakdown import BreakdownBasis, breakdown
from trnscope.analysis.devices import DeviceSummary, device_work, summarize_devices
from trnscope.analysis.health import health
from trnscope.analysis.launch import stream_launches
from trnscope.analysis.overlap import overlap
from trnscope.analysis.span import span_ns
from trnscope.analysis.step_finder import find_steps
from trnscope.analysis.steps import summarize_steps
from trnscope.analysis.summary import summarize
from trnscope.model.kinds import SliceKind
from trnscope.store.profile import Profile

US = 1000


def in_ns(by_name: dict[str, int]) -> dict[str, int]:
    return {name: us * US for name, us in by_name.items()}


def case(shared: Path, number: str, *names: str) -> tuple[Profile, dict[str, Any]]:
    folder = shared / "cases" / number
    expected = json.loads((folder / "expected.json").read_text())
    return trnscope.open(*(folder / name for name in names)), expected


def only_device(profile: Profile) -> DeviceSummary:
    (row,) = summarize(profile).devices
    return row


def test_08_annotation_on_the_device_is_no_kernel(shared: Path) -> None:
    profile, expected = case(shared, "08", "gpu_annotation.json")
    row = only_device(profile)
    assert row.busy_ns == expected["device_busy_us"] * US
    assert row.sum_ns == expected["self_device_total_us"] * US
    slices = profile.traces[0].slices
    (annotation,) = slices.of_kind(SliceKind.DEVICE_ANNOTATION)
    assert slices.dur_ns[annotation] == expected["annotation_span_on_device_us"] * US


def test_11_busy_is_a_union_over_streams(shared: Path) -> None:
    profile, expected = case(shared, "11", "streams.json")
    row = only_device(profile)
    assert (row.sum_ns, row.busy_ns, row.idle_ns) == (
        expected["sum_us"] * US,
        expected["busy_us"] * US,
        expected["idle_us"] * US,
    )
    assert row.busy_ns + row.idle_ns == expected["span_us"] * US == span_ns(profile)
    assert 100 * row.busy_ns / (row.busy_ns + row.idle_ns) == expected["utilisation_pct"]
    (device,) = overlap(profile).devices
    alone = {str(p.stream): p.both_busy_ns for p in device.streams if p.stream == p.other}
    assert alone == in_ns(expected["per_stream_busy_us"])


def test_12_sync_rows_are_no_compute(shared: Path) -> None:
    profile, expected = case(shared, "12", "sync_is_not_compute.json")
    row = only_device(profile)
    (device,) = overlap(profile).devices
    assert row.compute_ns == expected["compute_us"] * US
    assert row.communication_ns == expected["communication_us"] * US
    assert row.exposed_communication_ns == expected["exposed_communication_us"] * US
    assert device.overlapped_communication_ns == expected["overlapped_us"] * US
    ratio = device.communication_overlap_ratio
    assert ratio is not None
    assert 100 * ratio == pytest.approx(expected["overlap_pct"])
    assert (row.busy_ns, row.idle_ns) == (expected["busy_us"] * US, expected["idle_us"] * US)


def test_18_counters_instants_and_profiler_rows(shared: Path) -> None:
    profile, expected = case(shared, "18", "counters.json")
    row = only_device(profile)
    assert row.busy_ns == expected["device_busy_us"] * US
    assert row.idle_ns == expected["idle_us"] * US
    assert span_ns(profile) == expected["device_span_us"] * US
    trace = profile.traces[0]
    assert len(trace.counter_series) == expected["counters"]
    assert trace.counters.ts_ns.size == expected["counter_samples"]


def test_21_backward_on_the_autograd_thread(shared: Path) -> None:
    profile, expected = case(shared, "21", "autograd_thread.json")
    (trace,) = profile.traces
    assert only_device(profile).busy_ns == expected["device_total_us"] * US
    for same_thread_only, key in (
        (True, "by_annotation_same_thread_only_us"),
        (False, "by_annotation_right_us"),
    ):
        found = attribute_device_time(profile, same_thread_only=same_thread_only)
        named = {row.name: row.device_total_ns for row in found.rows}
        named["unattributed"] = found.unattributed_ns
        del named["ProfilerStep#5"]
        assert named == in_ns(expected[key])
    (step,) = summarize_steps(trace)
    assert step.device_ns == expected["ProfilerStep#5_device_us"] * US
    links = link_backward(trace)
    assert trace.strings.take(trace.slices.name[links.forward]) == ["aten::linear"]


def test_23_steps_doubled_overlapping_and_on_two_threads(shared: Path) -> None:
    profile, expected = case(shared, "23", "steps.json")
    (trace,) = profile.traces
    rows = summarize_steps(trace)
    assert len(rows) == expected["steps"]
    starts = np.array([row.start_ns for row in rows])
    assert np.diff(starts).tolist() == [us * US for us in expected["step_start_to_start_us"]]
    assert [row.duration_ns for row in rows] == [100 * US] * 3
    assert [row.recorded_ns / US for row in rows] == expected["step_dur_us"]
    assert sum(row.duration_ns for row in rows) == expected["first_to_last_end_us"] * US
    assert only_device(profile).busy_ns == expected["device_busy_us"] * US


def test_25_kernels_launched_before_the_window(shared: Path) -> None:
    profile, expected = case(shared, "25", "unlinked.json")
    (trace,) = profile.traces
    row = only_device(profile)
    assert row.num_kernels == expected["kernels"]
    assert row.busy_ns == expected["busy_all_us"] * US
    assert row.busy_ns - row.unlinked_ns == expected["busy_linked_us"] * US
    assert 100 * row.unlinked_ns / row.sum_ns == expected["unlinked_pct_time"]
    (work,) = device_work(trace)
    host = trace.slices.of_kind(SliceKind.CPU_OP, SliceKind.RUNTIME)
    start, end = trace.slices.start_ns[host], trace.slices.end_ns[host]
    inside = work.busy.clip(int(start.min()), int(end.max())).total
    assert inside == expected["busy_inside_cpu_window_998_1105_us"] * US
    (stream,) = stream_launches(trace)
    assert stream.num_unlinked == expected["unlinked"]
    assert stream.queue.length.min() == expected["queue_length_min"]
    (warning,) = [w for w in health(profile).warnings if w.code == "unlinked-device-work"]
    assert warning.count == expected["unlinked"]
    assert "50.0 %" in warning.message


def test_28_ranks_with_different_base_times(shared: Path) -> None:
    profile, expected = case(shared, "28", "rank0.json", "rank1.json")
    starts = {f"rank{t.source.rank}": int(t.slices.start_ns[0]) for t in profile.traces}
    assert starts == expected["absolute_start_ns"]
    assert max(starts.values()) - min(starts.values()) == expected["skew_us"]
    assert span_ns(profile) == 10 * US
    assert [row.rank for row in summarize(profile).devices] == [0, 1]


def test_40_cpu_only(shared: Path) -> None:
    profile, expected = case(shared, "40", "cpu_only.json")
    (trace,) = profile.traces
    assert summarize_devices(trace) == ()
    assert find_steps(trace).steps == ()
    split = breakdown(profile)
    assert split.basis is BreakdownBasis.HOST
    (row,) = split.rows
    parts = {part.key: part.duration_ns for part in row.parts}
    assert parts["operators"] == row.duration_ns == expected["total_self_us"] * US
