"""The hand-computed cases, each opened as a user opens it: exactly the values of expected.json.

Case 38 (Nsight) has a file of its own; case 35 is a monitor's stream and belongs elsewhere.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trnscope
from trnscope.analysis.attribution import attribute_device_time
from trnscope.analysis.backward import link_backward
from trnscope.analysis.devices import DeviceSummary
from trnscope.analysis.kernels import kernels
from trnscope.analysis.launch import launches
from trnscope.analysis.memory import memory
from trnscope.analysis.ops import OpRow, ops
from trnscope.analysis.overlap import overlap
from trnscope.analysis.steps import steps
from trnscope.analysis.summary import Summary, summarize
from trnscope.errors import TraceFormatError
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import DEVICE_WORK, SliceKind
from trnscope.model.units import format_bytes
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

US = 1000


class Case:
    """One folder of inputs and its right values."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())

    def profile(self, name: str | None = None) -> Profile:
        inputs = [p for p in self.folder.iterdir() if p.name != "expected.json"]
        (path,) = inputs if name is None else [self.folder / name]
        return trnscope.open(path)

    def trace(self, name: str | None = None) -> Trace:
        (trace,) = self.profile(name).traces
        return trace

    def summary(self, name: str | None = None) -> Summary:
        return summarize(self.profile(name))


@pytest.fixture
def case(request: pytest.FixtureRequest, shared: Path) -> Case:
    number = request.node.name.split("_")[2]
    return Case(shared / "cases" / number)


def device(summary: Summary) -> DeviceSummary:
    (only,) = summary.devices
    return only


def rows(profile: Profile) -> dict[str, OpRow]:
    return {row.name: row for row in ops(profile).rows}


def by_name(trace: Trace) -> dict[str, int]:
    names = trace.strings.take(trace.slices.name)
    assert len(set(names)) == len(names)
    return {name: i for i, name in enumerate(names)}


def warnings(trace: Trace) -> dict[str, int]:
    return {warning.code: warning.count for warning in trace.health.warnings}


def to_ns(us: Any) -> int:
    exact = Decimal(str(us)) * US
    assert exact == exact.to_integral_value()
    return int(exact)


def in_ns(by_name: dict[str, Any]) -> dict[str, int]:
    return {name: to_ns(us) for name, us in by_name.items()}


def test_case_01_control_characters_and_bad_utf8(case: Case) -> None:
    want, trace = case.expected, case.trace()
    assert len(trace.slices) == trace.source.num_events == want["events_X"]
    found = device(case.summary())
    assert found.num_kernels == want["kernels"]
    assert found.busy_ns == want["device_busy_us"] * US
    assert found.sum_ns == want["device_sum_us"] * US
    assert trace.health.num_events_repaired == want["names_repaired"]
    assert trace.health.num_events_unreadable == 0
    assert bool(trace.health.warnings) is want["must_warn"]
    assert warnings(trace) == {"control-character": 1, "invalid-utf8": 1}
    assert "cfg \ufffd\ufffd" in trace.strings.take(trace.slices.name)


@pytest.mark.parametrize("name", ["unescaped_quote.json", "unescaped_backslash.json"])
def test_case_02_broken_names(case: Case, name: str) -> None:
    want, trace = case.expected[name], case.trace(name)
    assert len(trace.slices) == want["recoverable_good_events"]
    assert sorted(by_name(trace)) == ["aten::mm", "gemm"]
    assert trace.health.num_events_unreadable == 1
    assert not trace.health.complete
    (warning,) = trace.health.warnings
    assert (warning.code, warning.count) == ("unreadable-event", 1)
    line = want["python_json_error"][0]
    assert f"line {line}, column " in warning.message


def test_case_02_silent_backslash(case: Case) -> None:
    trace = case.trace("silent_backslash.json")
    assert case.expected["silent_backslash.json"]["python_json_error"] is None
    assert trace.health.complete
    assert "site\torch\nn\functional.py(5): relu" in by_name(trace)


@pytest.mark.parametrize("name", ["truncated.json", "no_closing_brackets.json"])
def test_case_03_cut_files(case: Case, name: str) -> None:
    want, trace = case.expected[name], case.trace(name)
    assert len(trace.slices) == trace.source.num_events == want["complete_events"]
    found = device(case.summary(name))
    assert found.num_kernels == want["kernels"]
    assert found.busy_ns == want["device_busy_us"] * US
    assert not trace.health.complete
    assert "truncated" in warnings(trace)


def test_case_03_cut_gzip(case: Case) -> None:
    name = "truncated.json.gz"
    trace = case.trace(name)
    assert len(trace.slices) == case.expected[name]["complete_events_recoverable_by_streaming"]
    assert not trace.health.complete
    assert {"gzip-truncated", "truncated"} <= warnings(trace).keys()


@pytest.mark.parametrize(
    ("name", "problem"), [("empty.json", "is empty"), ("zero_events.json", "holds no events")]
)
def test_case_03_nothing_to_read(case: Case, name: str, problem: str) -> None:
    with pytest.raises(TraceFormatError, match=problem) as caught:
        case.trace(name)
    assert "\n" not in str(caught.value)


def test_case_05_kernels_below_a_microsecond(case: Case) -> None:
    want = case.expected
    (row,) = kernels(case.profile()).rows
    assert (row.name, row.count) == (want["kernel"], want["count"])
    assert row.sum_ns == to_ns(want["total_us"])
    assert row.mean_ns == to_ns(want["mean_us"])
    assert row.min_ns == to_ns(want["min_us"])
    assert row.max_ns == to_ns(want["max_us"])
    durations = case.trace().slices.dur_ns
    assert np.count_nonzero(durations < 0) == want["negative_durations"]


def test_case_06_kernels_at_time_zero(case: Case) -> None:
    want, trace, summary = case.expected, case.trace(), case.summary()
    assert summary.span_ns == want["span_us"] * US
    assert int(trace.slices.start_ns.min()) == want["span_from"] * US
    assert int(trace.slices.end_ns.max()) == want["span_to"] * US
    assert device(summary).num_kernels == want["kernels_valid"]
    assert device(summary).busy_ns == want["device_busy_us"] * US
    assert warnings(trace) == {"invalid-time": want["kernels_invalid_timestamp"]}
    assert not trace.health.complete


def test_case_07_unfinished_events(case: Case) -> None:
    want, profile = case.expected, case.profile()
    (trace,) = profile.traces
    assert device(case.summary()).busy_ns == want["device_busy_us"] * US
    linear = rows(profile)["aten::linear"]
    assert linear.cpu_total_ns == want["aten::linear_total_us"] * US
    assert linear.self_cpu_ns == want["aten::linear_self_us"] * US
    assert warnings(trace) == {"unknown-duration": want["unknown_duration_events"]}
    assert trace.unfinished.start_ns.size == want["unknown_duration_events"]
    assert all(row.self_cpu_ns >= 0 for row in rows(profile).values())


def test_case_08_gpu_annotations_are_no_work(case: Case) -> None:
    want, profile, trace = case.expected, case.profile(), case.trace()
    found = device(case.summary())
    assert found.busy_ns == want["device_busy_us"] * US
    assert found.sum_ns == want["self_device_total_us"] * US
    notes = trace.slices.of_kind(SliceKind.DEVICE_ANNOTATION)
    assert trace.slices.dur_ns[notes].tolist() == [want["annotation_span_on_device_us"] * US]
    table = ops(profile)
    assert table.unattributed_device_ns is not None
    total = sum(row.self_device_ns or 0 for row in table.rows) + table.unattributed_device_ns
    assert total == want["self_device_total_us"] * US


def test_case_09_device_time_is_given_once(case: Case) -> None:
    want, found = case.expected, rows(case.profile())
    for name, us in want["self_device_us"].items():
        assert found[name].self_device_ns == us * US
    total = sum(row.self_device_ns or 0 for row in found.values())
    assert total == want["sum_of_self_device_us"] * US


def test_case_11_sum_and_union_over_streams(case: Case) -> None:
    want, trace, found = case.expected, case.trace(), device(case.summary())
    assert found.sum_ns == want["sum_us"] * US
    assert found.busy_ns == want["busy_us"] * US
    assert found.idle_ns == want["idle_us"] * US
    assert found.busy_ns + found.idle_ns == want["span_us"] * US
    share = found.busy_ns / (found.busy_ns + found.idle_ns) * 100
    assert share == pytest.approx(want["utilisation_pct"])
    by_stream = {}
    for track in range(len(trace.tracks)):
        mine = trace.slices.track == track
        union = Intervals.union_of(trace.slices.start_ns[mine], trace.slices.end_ns[mine])
        by_stream[str(trace.tracks[track].stream)] = union.total
    assert by_stream == in_ns(want["per_stream_busy_us"])


def test_case_12_sync_is_no_compute(case: Case) -> None:
    want, found = case.expected, device(case.summary())
    assert found.compute_ns == want["compute_us"] * US
    assert found.communication_ns == want["communication_us"] * US
    assert found.exposed_communication_ns == want["exposed_communication_us"] * US
    assert found.busy_ns == want["busy_us"] * US
    assert found.idle_ns == want["idle_us"] * US
    (row,) = overlap(case.profile()).devices
    assert row.overlapped_communication_ns == want["overlapped_us"] * US
    share = row.overlapped_communication_ns / row.communication_ns * 100
    assert share == pytest.approx(want["overlap_pct"], abs=1e-6)


def test_case_14_nanoseconds_of_epoch_times(case: Case) -> None:
    want, trace = case.expected, case.trace()
    at, slices = by_name(trace), trace.slices
    assert int(slices.end_ns[at["B"]]) == to_ns(want["B_end_exact"])
    assert int(slices.start_ns[at["C"]]) == to_ns(want["C_start_exact"])
    assert int(slices.start_ns[at["C"]] - slices.end_ns[at["B"]]) == want["gap_ns"]
    assert slices.parent[at["B"]] == slices.parent[at["C"]] == at["A"]
    for name, us in want["self_us"].items():
        assert int(slices.self_ns[at[name]]) == to_ns(us)


def test_case_16_begin_and_end(case: Case) -> None:
    want, trace = case.expected, case.trace()
    at, slices = by_name(trace), trace.slices
    assert {n: int(slices.dur_ns[i]) for n, i in at.items()} == in_ns(want["complete_slices"])
    assert {n: int(slices.self_ns[i]) for n, i in at.items()} == in_ns(want["self_us"])
    assert warnings(trace) == {
        "end-without-begin": want["unmatched_E"],
        "begin-without-end": want["left_open_B"],
    }
    assert trace.strings.take(trace.unfinished.name) == ["open"]
    assert trace.unfinished.start_ns.tolist() == [110 * US]
    (message,) = [w.message for w in trace.health.warnings if w.code == "begin-without-end"]
    assert '"open" at 110 µs' in message


def test_case_18_counters_instants_and_doubled_names(case: Case) -> None:
    want, trace, found = case.expected, case.trace(), device(case.summary())
    assert found.busy_ns == want["device_busy_us"] * US
    assert found.idle_ns == want["idle_us"] * US
    assert found.busy_ns + found.idle_ns == want["device_span_us"] * US
    assert len(trace.counter_series) == want["counters"]
    assert trace.counters.ts_ns.size == want["counter_samples"]
    names = {track.process_name for track in trace.tracks if track.process == "0"}
    assert names == {want["process_name_0"].split(" (")[0]}


def test_case_19_recursion(case: Case) -> None:
    want, found = case.expected, rows(case.profile())
    assert {name: row.calls for name, row in found.items()} == want["calls"]
    assert {name: row.cpu_total_ns for name, row in found.items()} == in_ns(want["total_us"])
    assert {name: row.self_cpu_ns for name, row in found.items()} == in_ns(want["self_us"])
    assert sum(row.self_cpu_ns for row in found.values()) == want["sum_self_us"] * US


def test_case_20_identical_and_empty_intervals(case: Case) -> None:
    want, found = case.expected, rows(case.profile())
    selfs = {name: row.self_cpu_ns for name, row in found.items()}
    assert want["sum_self_us"] == want["total_wall_us"]
    assert sum(selfs.values()) == want["sum_self_us"] * US
    assert min(selfs.values()) >= 0
    both = selfs.pop("parent") + selfs.pop("child_same")
    assert {**selfs, "parent+child_same": both} == in_ns(want["self_us"])


def test_case_21_backward_on_the_autograd_thread(case: Case) -> None:
    want, profile = case.expected, case.profile()
    assert device(case.summary()).sum_ns == want["device_total_us"] * US
    for same_thread_only, key in (
        (True, "by_annotation_same_thread_only_us"),
        (False, "by_annotation_right_us"),
    ):
        result = attribute_device_time(profile, same_thread_only=same_thread_only)
        by_name = {row.name: row.self_device_ns for row in result.rows}
        step = by_name.pop("ProfilerStep#5")
        found = {**dict.fromkeys(want[key], 0), **by_name}
        found["unattributed"] = result.unattributed_ns + step
        assert found == in_ns(want[key])
    (total,) = [row for row in result.rows if row.name == "ProfilerStep#5"]
    assert total.device_total_ns == want["ProfilerStep#5_device_us"] * US
    (trace,) = profile.traces
    links = link_backward(trace)
    assert trace.strings.take(trace.slices.name[links.forward]) == ["aten::linear"]
    assert trace.strings.take(trace.slices.name[links.backward]) == [
        "autograd::engine::evaluate_function: AddmmBackward0"
    ]


def test_case_23_steps_doubled_and_overlapping(case: Case) -> None:
    want, found = case.expected, steps(case.profile()).rows
    assert len(found) == want["steps"]
    starts = np.array([step.start_ns for step in found])
    gaps = np.diff(starts)
    assert gaps.tolist() == [us * US for us in want["step_start_to_start_us"]]
    assert [step.recorded_ns for step in found] == [to_ns(us) for us in want["step_dur_us"]]
    end = found[-1].start_ns + found[-1].recorded_ns
    assert end - found[0].start_ns == want["first_to_last_end_us"] * US
    assert int(gaps.mean()) == want["mean_start_to_start_us"] * US
    assert [step.duration_ns for step in found] == [100 * US] * 3
    assert device(case.summary()).busy_ns == want["device_busy_us"] * US


def test_case_25_kernels_launched_before_the_window(case: Case) -> None:
    want, profile = case.expected, case.profile()
    (trace,) = profile.traces
    found = device(case.summary())
    assert found.num_kernels == want["kernels"]
    linked = trace.launches.has_launch
    assert np.count_nonzero(~linked) == want["unlinked"]
    assert found.unlinked_ns / found.sum_ns * 100 == want["unlinked_pct_time"]
    assert found.busy_ns == want["busy_all_us"] * US
    assert found.busy_ns - found.unlinked_ns == want["busy_linked_us"] * US
    work = trace.slices.of_kind(*DEVICE_WORK)
    union = Intervals.union_of(trace.slices.start_ns[work], trace.slices.end_ns[work])
    inside = union.clip(998 * US, 1105 * US).total
    assert inside == want["busy_inside_cpu_window_998_1105_us"] * US
    (stream,) = launches(profile).streams
    assert int(stream.queue.length.min()) == want["queue_length_min"]
    table = ops(profile)
    assert sum(row.self_device_ns or 0 for row in table.rows) == 40 * US
    assert table.unattributed_device_ns == 40 * US


def test_case_28_bases_of_two_ranks(case: Case) -> None:
    want = case.expected
    profile = trnscope.open(case.folder / "rank0.json", case.folder / "rank1.json")
    assert profile.is_multi_rank
    starts = [int(trace.slices.start_ns[0]) for trace in profile.traces]
    assert starts == [want["absolute_start_ns"]["rank0"], want["absolute_start_ns"]["rank1"]]
    assert starts[1] - starts[0] == want["skew_us"]
    assert [trace.source.rank for trace in profile.traces] == [0, 1]
    assert [trace.source.world_size for trace in profile.traces] == [2, 2]


def test_case_32_ids_of_64_bits(case: Case) -> None:
    want, profile = case.expected, case.profile()
    (trace,) = profile.traces
    found = {
        row.name: row.self_device_ns
        for row in ops(profile).rows
        if row.self_device_ns and row.name in want["device_us_by_op"]
    }
    assert found == in_ns(want["device_us_by_op"])
    correlation, comms = trace.attribute("correlation"), trace.attribute("comms_id")
    assert correlation is not None and comms is not None
    assert np.unique(correlation.values).size == want["distinct_correlations"]
    assert np.unique(comms.values).tolist() == [13835058055282163713, 13835058055282163714]
    assert np.unique(comms.values).size == want["distinct_Comms_Id"]


def test_case_34_memory(case: Case) -> None:
    want = case.expected
    (found,) = memory(case.profile()).devices
    assert (found.num_allocations, found.num_frees) == (want["allocs"], want["frees"])
    assert found.net_bytes == want["net_bytes"]
    assert found.start_bytes == want["start_level_bytes"]
    assert found.peak_bytes == want["peak_level_bytes"]
    assert found.end_bytes == want["end_level_bytes"]
    by_op = {op.name: op.net_bytes for op in found.ops}
    assert by_op["aten::empty"] == want["attributed_to_aten::empty_bytes"]
    assert by_op[None] == want["outside_any_op_bytes"]
    before = [{"addr": b.address, "bytes": b.size_bytes} for b in found.freed_from_before.largest]
    assert before == want["freed_but_not_allocated_in_window"]
    assert format_bytes(69793218560) == "65.00 GiB"


def test_case_37_brackets_in_names(case: Case) -> None:
    want, trace = case.expected, case.trace()
    assert "[Strategy]" in trace.source.path
    assert trace.source.num_events == want["events"]
    assert device(case.summary()).busy_ns == want["device_busy_us"] * US
    assert "[Strategy]" in trace.source.metadata["traceName"]
    assert trace.health.complete


def test_case_40_cpu_only(case: Case) -> None:
    want, profile = case.expected, case.profile()
    table = ops(profile)
    assert {row.name: row.self_cpu_ns for row in table.rows} == in_ns(want["self_us"])
    assert table.self_cpu_ns == want["total_self_us"] * US
    assert not table.has_device
    assert all(row.self_device_ns is None for row in table.rows)
    assert table.unattributed_device_ns is None
    assert case.summary().devices == ()
