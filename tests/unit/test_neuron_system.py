"""Neuron system profiles: executions are merged, linked to their calls and ops, and placed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.neuron_profiles import (
    BIG,
    SEQUENCE,
    chain,
    event,
    names,
    read,
    spans,
    values,
    warnings,
    write_json,
    write_tables,
)
from tools import make_example_neuron
from trnscope.analysis.ops import ops
from trnscope.errors import TraceFormatError
from trnscope.ingest.neuron_json_stream import JsonStream
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.store.profile import Profile

SYNTHETIC = "formats/synthetic/SYNTHETIC_{}.json"


def table(folder: Path, events: list[dict[str, Any]]) -> Path:
    return write_tables(folder, {"SystemProfileEvents": events})


def test_rows_of_two_physical_cores_are_one_execution(tmp_path: Path) -> None:
    trace = read(table(tmp_path / "p", chain(1000, SEQUENCE, 1, 10)), tmp_path)
    # [1040, 1100] and [1041, 1101]: one execution over both; added up they would be 120.
    assert spans(trace, SliceKind.KERNEL) == [(1040, 61)]
    assert names(trace, SliceKind.KERNEL) == ["neff_10.neff"]


def test_executions_of_one_core_stay_apart(tmp_path: Path) -> None:
    rows = [
        event("nc_exec_running", "neuron_hw", start, 10, nc_idx=0, pcore_idx=0, model_id=1)
        for start in (100, 105, 120)
    ]
    trace = read(table(tmp_path / "p", rows), tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(100, 10), (120, 10), (105, 10)]


def test_rows_without_an_id_are_merged_where_they_overlap(tmp_path: Path) -> None:
    rows = [
        event("nc_exec_running", "neuron_hw", start, 10, nc_idx=0, pcore_idx=core)
        for start, core in ((100, 0), (102, 1), (200, 0), (300, 1))
    ]
    trace = read(table(tmp_path / "p", rows), tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(100, 12), (200, 10), (300, 10)]


def test_a_small_number_counts_within_its_model(tmp_path: Path) -> None:
    events = [*chain(1000, SEQUENCE, 1, 10), *chain(2000, SEQUENCE + 1, 1, 11)]
    trace = read(table(tmp_path / "p", events), tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["neff_10.neff", "neff_11.neff"]
    launches = trace.launches
    starts = trace.slices.start_ns
    assert starts[launches.launch_slice].tolist() == [1005, 2005]
    assert starts[launches.op_slice].tolist() == [1000, 2000]


def test_the_chain_leads_from_op_to_device(tmp_path: Path) -> None:
    trace = read(table(tmp_path / "p", chain(1000, SEQUENCE, 1, 10)), tmp_path)
    launches, slices = trace.launches, trace.slices
    assert trace.strings.take(slices.name[launches.launch_slice]) == ["nrta_execute_schedule"]
    assert trace.strings.take(slices.name[launches.op_slice]) == ["aten::mm"]
    assert values(trace, "external_id", SliceKind.KERNEL) == [SEQUENCE]
    names_of = trace.strings.take
    assert list(
        zip(
            names_of(slices.name[trace.flows.slice_out]),
            names_of(slices.name[trace.flows.slice_in]),
            strict=True,
        )
    ) == [
        ("aten::mm", "nrta_execute_schedule"),
        ("nrta_execute_schedule", "kbl_exec_wait"),
        ("kbl_exec_wait", "neff_10.neff"),
    ]
    row = ops(Profile((trace,))).rows[0]
    assert (row.name, row.self_device_ns) == ("aten::mm", 61)


def test_the_framework_s_own_dispatch_is_the_launch(tmp_path: Path) -> None:
    dispatch = event(
        "aten::mm", "framework", 1002, 2, flow_id=[str(SEQUENCE)], cat="privateuse1_runtime"
    )
    trace = read(table(tmp_path / "p", [*chain(1000, SEQUENCE, 1, 10), dispatch]), tmp_path)
    assert trace.slices.start_ns[trace.launches.launch_slice].tolist() == [1002]


def test_the_call_nearest_to_the_core_is_the_launch(tmp_path: Path) -> None:
    ids = {"flow_id": [str(SEQUENCE), "1"], "model_id": 10, "nc_idx": 0}
    inner = [event("kmgr_exec_core", "neuron_rt", 1030, 3, thread_id=9, **ids)]
    inner.append(event("kbl_exec_pre", "neuron_rt", 1031, 1, thread_id=9, **ids))
    trace = read(table(tmp_path / "p", [*chain(1000, SEQUENCE, 1, 10), *inner]), tmp_path)
    assert trace.slices.start_ns[trace.launches.launch_slice].tolist() == [1030]
    assert trace.slices.start_ns[trace.launches.op_slice].tolist() == [1000]


def test_ids_keep_all_their_digits(tmp_path: Path) -> None:
    events = [*chain(1000, BIG, 1, 10), *chain(2000, BIG + 1, 2, 10)]
    trace = read(table(tmp_path / "p", events), tmp_path)
    assert values(trace, "external_id", SliceKind.KERNEL) == [BIG, BIG + 1]
    assert trace.slices.start_ns[trace.launches.op_slice].tolist() == [1000, 2000]


def test_processes_that_use_the_same_ids_are_not_mixed_up(tmp_path: Path) -> None:
    first = chain(1000, SEQUENCE, 1, 10, worker_gid=0)
    second = [row | {"process_id": 43} for row in chain(1003, SEQUENCE, 1, 10, worker_gid=1)]
    trace = read(table(tmp_path / "p", [*first, *second]), tmp_path)
    launches, slices = trace.launches, trace.slices
    assert slices.start_ns[launches.device_slice].tolist() == [1040, 1043]
    assert slices.start_ns[launches.op_slice].tolist() == [1000, 1003]
    devices = [trace.tracks[track].device for track in slices.track[launches.device_slice]]
    assert [device and device.label for device in devices] == ["neuron:0", "neuron:1"]


def test_a_collective_of_a_program_has_the_program_s_launch(tmp_path: Path) -> None:
    inside = event("cc_running", "neuron_hw", 1050, 20, nc_idx=0, pcore_idx=0)
    trace = read(table(tmp_path / "p", [*chain(1000, SEQUENCE, 1, 10), inside]), tmp_path)
    launches, slices = trace.launches, trace.slices
    assert slices.kind[launches.device_slice].tolist() == [SliceKind.KERNEL, SliceKind.COLLECTIVE]
    assert slices.start_ns[launches.launch_slice].tolist() == [1005, 1005]


def test_every_event_finds_its_place(tmp_path: Path) -> None:
    rows = [
        event("nrt_load", "neuron_rt", 1, 5),
        event("dmem_buf_copyin", "neuron_hw", 10, 4, nc_idx=0, size="4096"),
        event("cc_exec_barrier", "neuron_hw", 20, 2, nc_idx=0),
        event("nc_model_switch", "neuron_hw", 30, 2, nc_idx=0),
        event("timestamp_sync_point", "neuron_hw", 40, 0, nc_idx=0),
        event("PjitFunction(f)", "framework", 50, 9),
        event("ProfilerStep#3 [trace.json]", "framework", 60, 9),
        event("something_new", "neuron_rt", 70, 1),
    ]
    trace = read(table(tmp_path / "p", rows), tmp_path)
    assert names(trace, SliceKind.RUNTIME) == ["nrt_load", "something_new"]
    assert names(trace, SliceKind.MEMCPY) == ["dmem_buf_copyin"]
    assert values(trace, "bytes", SliceKind.MEMCPY) == [4096]
    assert values(trace, "memcpy_kind", SliceKind.MEMCPY) == ["HtoD"]
    assert names(trace, SliceKind.SYNC) == ["cc_exec_barrier"]
    assert names(trace, SliceKind.DEVICE_ANNOTATION) == ["nc_model_switch"]
    assert names(trace, SliceKind.CPU_OP) == ["PjitFunction(f)"]
    assert names(trace, SliceKind.ANNOTATION) == ["ProfilerStep#3"]
    assert trace.strings.take(trace.instants.name) == ["timestamp_sync_point"]


def test_columns_may_move_out_of_the_json_text(tmp_path: Path) -> None:
    events = chain(1000, SEQUENCE, 1, 10)
    for row in events:
        row |= json.loads(row.pop("extra_attributes_json") or "{}")
    trace = read(table(tmp_path / "p", events), tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["neff_10.neff"]
    assert trace.slices.start_ns[trace.launches.op_slice].tolist() == [1000]


def test_a_framework_without_a_device_still_shows_its_device_rows(tmp_path: Path) -> None:
    driver = event("aten::mm", "framework", 10, 5, cat="privateuse1_driver")
    assert names(read(table(tmp_path / "a", [driver]), tmp_path), SliceKind.KERNEL) == ["aten::mm"]
    both = [driver, *chain(1000, SEQUENCE, 1, 10)]
    trace = read(table(tmp_path / "b", both), tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["neff_10.neff"]
    assert names(trace, SliceKind.DEVICE_ANNOTATION) == ["aten::mm"]


def test_rows_that_say_nothing_are_counted(tmp_path: Path) -> None:
    good = event("nrt_load", "neuron_rt", 1, 5)
    rows = [good, good | {"name": None}, good | {"start_ts": None}, good | {"start_ts": -4}]
    cut = good | {"end_ts": None, "duration_ns": None}
    trace = read(table(tmp_path / "p", [*rows, cut]), tmp_path)
    assert trace.health.num_events_unreadable == 3
    assert not trace.health.complete
    assert len(trace.slices) == 1
    assert trace.unfinished.start_ns.tolist() == [1]


def test_durations_that_64_bits_cannot_add_up_are_kept_apart(tmp_path: Path) -> None:
    rows = [*chain(1000, SEQUENCE, 1, 10)]
    for at, duration in enumerate((1 << 58, (1 << 63) - 1), start=1):
        long = event("nrt_load", "neuron_rt", at, 0)
        rows.append(long | {"end_ts": None, "duration_ns": duration})
    far = event("nrt_load", "neuron_rt", 1 << 61, 5)
    trace = read(table(tmp_path / "p", [*rows, far]), tmp_path)
    assert warnings(trace)["impossible-duration"] == 2
    assert warnings(trace)["unreadable-event"] == 1
    assert not trace.health.complete
    assert trace.unfinished.start_ns.tolist() == [1, 2]
    assert spans(trace, SliceKind.KERNEL) == [(1040, 61)]


def test_years_apart_the_rows_of_two_cores_are_no_execution(tmp_path: Path) -> None:
    run = {"model_id": 1, "nc_idx": 0, "flow_id": ["1"]}
    starts = (5, 1 << 60)
    rows = [
        event("nc_exec_running", "neuron_hw", start, 10, pcore_idx=core, **run)
        for core, start in enumerate(starts)
    ]
    trace = read(table(tmp_path / "p", rows), tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(start, 10) for start in starts]


@pytest.mark.parametrize(
    "number", [str(1 << 63), str(1 << 64), str(-(1 << 63)), "-7", "1e400", "9" * 5000],
    ids=["2^63", "2^64", "-2^63", "-7", "1e400", "5000 digits"],
)  # fmt: skip
def test_numbers_of_any_size_are_damage_and_no_fault(tmp_path: Path, number: str) -> None:
    good = [as_json(row) for row in chain(1000, SEQUENCE, 1, 10)]
    fields = ("id", "timestamp", "duration", "nc_idx", "device_core_idx", "flow_id", "model_id",
              "External id", "framework_stream_id", "bytes", "nc_start_timestamp_ns", "worker_gid",
              "thread_id", "process_id", "exec_id")  # fmt: skip
    bad = [row | {field: "NUMBER"} for row in good for field in fields]
    text = json.dumps({"trace_events": [*good, *bad, *good]})
    path = tmp_path / "x.json"
    path.write_text(text.replace('"NUMBER"', number))
    trace = read(path, tmp_path)
    assert trace.health.num_events_read + trace.health.num_events_unreadable == 5 * 17
    assert (1040, 61) in spans(trace, SliceKind.KERNEL)
    assert sum(trace.slices.dur_ns.tolist()) < 1 << 40


# JSON ------------------------------------------------------------------------------------


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """The row as system_profile.json spells it: ids as text, an end as a duration."""
    more = json.loads(row["extra_attributes_json"] or "{}")
    kept = {key: row[key] for key in ("id", "name", "instance_id", "thread_id", "flow_id", "nc_idx",
            "trace_event_source") if row.get(key) is not None}  # fmt: skip
    times = {"timestamp": row["start_ts"], "duration": row["duration_ns"]}
    core = {} if row.get("pcore_idx") is None else {"device_core_idx": row["pcore_idx"]}
    return kept | times | core | more | {"process_id": str(row["process_id"])}


@pytest.mark.parametrize("spelling", ["trace_event", "trace_events", None])
@pytest.mark.parametrize("compressed", [False, True])
def test_the_three_spellings_and_the_tables_say_the_same(
    tmp_path: Path, spelling: str | None, compressed: bool
) -> None:
    events = [*chain(1000, SEQUENCE, 1, 10), *chain(2000, BIG, 2, 10)]
    listed = [as_json(row) for row in events]
    document = listed if spelling is None else {"mem_usage": [], spelling: listed}
    path = write_json(tmp_path / "x.json", document)
    if compressed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    from_json = read(path, tmp_path)
    from_table = read(table(tmp_path / "p", events), tmp_path)
    assert from_json.source.format == "neuron-json"
    for trace in (from_json, from_table):
        assert spans(trace, SliceKind.KERNEL) == [(1040, 61), (2040, 61)]
        assert values(trace, "external_id", SliceKind.KERNEL) == [SEQUENCE, BIG]
        assert trace.slices.start_ns[trace.launches.op_slice].tolist() == [1000, 2000]


def test_a_cut_off_document_gives_what_stands_before(tmp_path: Path) -> None:
    listed = [as_json(row) for row in chain(1000, SEQUENCE, 1, 10)]
    text = json.dumps({"trace_events": listed})
    path = tmp_path / "x.json"
    path.write_text(text[: text.index("kbl_exec_wait")])
    trace = read(path, tmp_path)
    assert len(trace.slices) == 2
    assert not trace.health.complete
    assert "truncated" in warnings(trace)


DAMAGE = {
    "a missing comma": (', "timestamp": 1040', ' "timestamp": 1040'),
    "a missing colon": ('"timestamp": 1040', '"timestamp" 1040'),
    "a missing first quote": ('"name": "kbl_exec_wait"', '"name": kbl_exec_wait"'),
    "a missing last quote": ('"name": "kbl_exec_wait"', '"name": "kbl_exec_wait'),
    "a missing bracket": ("}, {", ", {"),
    "another bracket": ("}, {", "]}, {"),
    "rubbish before": ('{"id": 1040, "name": "kbl_exec_wait"', 'x:" {"id": 1, "name": "nrt_load"'),
    "no value": ('"timestamp": 1040', '"timestamp": '),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("num_after", [0, 1, 40_000])
def test_a_damaged_event_costs_only_itself(tmp_path: Path, damage: str, num_after: int) -> None:
    listed = [as_json(row) for row in chain(1000, SEQUENCE, 1, 10)[:3]]
    listed[2]["args"] = [{"n": 1}, {"n": 2}]
    last = as_json(event("nrt_load", "neuron_rt", 5000, 10))
    before = json.dumps(listed)
    old, new = DAMAGE[damage]
    at = before.rindex(old) if old != "}, {" else before.index(old)
    before = before[:at] + new + before[at + len(old) :]
    after = "".join(", " + json.dumps(last | {"timestamp": 5000 + n}) for n in range(num_after))
    path = tmp_path / "x.json"
    path.write_text(f'{{"trace_events": {before[:-1]}{after}], "warnings": ["last"]}}')
    trace = read(path, tmp_path)
    sound = 3 if damage == "rubbish before" else 2
    assert len(trace.slices) == sound + num_after
    assert trace.health.num_events_unreadable == 1
    assert not trace.health.complete
    (damaged,) = [w for w in trace.health.warnings if w.code == "damaged-event"]
    where = re.search(r"first at character (\d+)", damaged.message)
    assert where is not None
    assert abs(int(where[1]) - len('{"trace_events": ') - at) < len(json.dumps(listed[2])) + 3
    if num_after:
        assert warnings(trace)["profiler-warning"] == 1
        assert "truncated" not in warnings(trace)


def test_reading_past_damage_holds_little_of_the_document() -> None:
    sound = json.dumps({"id": 1, "name": "x" * 1000}) + ", "
    held = 0

    def chunks() -> Iterator[bytes]:
        nonlocal held
        yield b'[{"id": 1, "name": "a"}, {"id": 2, "name": a"}, '
        for _ in range(20_000):
            held = max(held, len(stream._text))
            yield sound.encode()
        yield b'{"id": 3}]'

    stream = JsonStream(chunks())
    assert sum(1 for _ in stream) == 20_002
    assert (stream.num_skipped, stream.first_skipped) == (1, 25)
    assert held < 1 << 16


def test_dropped_events_make_a_profile_incomplete(tmp_path: Path) -> None:
    message = "Warning: 12 trace events were dropped during capture (stored 100 out of 112)"
    listed = [as_json(row) for row in chain(1000, SEQUENCE, 1, 10)]
    for n, warning in enumerate((message, {"message": message})):
        document = {"trace_events": listed, "warnings": [warning]}
        trace = read(write_json(tmp_path / f"{n}.json", document), tmp_path)
        assert warnings(trace)["events-dropped"] == 12
        assert not trace.health.complete


def test_a_profile_without_events_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", {"trace_events": []})
    with pytest.raises(TraceFormatError, match=r"looks like a Neuron system profile, but holds no"):
        read(path, tmp_path)


def test_the_synthetic_system_profile(shared: Path, tmp_path: Path) -> None:
    trace = read(shared / SYNTHETIC.format("system_profile"), tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(1780000000000036000, 118001)]
    assert spans(trace, SliceKind.COLLECTIVE) == [(1780000000000040000, 9000)]
    assert trace.source.epoch
    launched = trace.strings.take(trace.slices.name[trace.launches.launch_slice])
    assert launched == ["nrt_model_submit", "nrt_model_submit"]
    series = {(one.name, one.key) for one in trace.counter_series}
    assert series == {("host memory", "used_bytes"), ("cpu 47", "util_percent")}
    assert sorted(trace.counters.value.tolist()) == [2.3255813, 51805806592.0]


def test_a_simulated_system_profile_says_so(tmp_path: Path) -> None:
    listed = [as_json(row) for row in chain(1000, SEQUENCE, 1, 10)]
    metadata = [{"simulated": True, "model": "trn2 model v1"}]
    document = {"trace_events": listed, "system_profile_metadata": metadata}
    trace = read(write_json(tmp_path / "x.json", document), tmp_path)
    assert Profile((trace,)).simulated_by == "trn2 model v1"
    assert all(track.device.simulated for track in trace.tracks if track.device)


# Live ------------------------------------------------------------------------------------


def live(name: str, phase: str, time: int, number: int, **more: Any) -> dict[str, Any]:
    row = {"event_type": name, "phase": phase, "timestamp_ns": time, "tracking_id": number}
    return row | {"nc_idx": 0, "thread_id": 1, **more}


def test_starts_and_stops_are_paired_by_their_tracking_id(tmp_path: Path) -> None:
    rows = [
        live("nrt_execute", "start", 100, 1),
        live("nc_exec_running", "start", 110, 2, data={"exec_id": 7, "device_core_idx": 0}),
        live("nrt_load", "start", 115, 3),
        live("nc_exec_running", "stop", 150, 2),
        live("nrt_execute", "stop", 160, 1),
        live("nrt_tensor_read", "stop", 170, 4),
        live("hw_notify", "instant", 180, 5),
    ]
    path = write_json(tmp_path / "x.json", {"events": rows, "data_version": 2})
    trace = read(path, tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(110, 40)]
    assert spans(trace, SliceKind.RUNTIME) == [(100, 60)]
    assert trace.launches.has_launch.tolist() == [True]
    assert trace.strings.take(trace.unfinished.name) == ["nrt_load"]
    assert warnings(trace) == {"end-without-begin": 1, "unknown-duration": 1}
    assert not trace.health.complete


def test_the_synthetic_live_events(shared: Path, tmp_path: Path) -> None:
    trace = read(shared / SYNTHETIC.format("nrt_sys_trace_fetch_events"), tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(1780000000000036000, 118000)]
    assert spans(trace, SliceKind.RUNTIME) == [(1780000000000000000, 150000)]
    assert trace.health.complete
    track = trace.tracks[trace.slices.track[trace.launches.device_slice[0]]]
    assert track.kind is TrackKind.DEVICE_STREAM
    assert track.device is not None and track.device.kind is DeviceKind.NEURON


def test_the_example_profiles_of_the_documentation_are_up_to_date() -> None:
    for name, text in make_example_neuron.texts().items():
        assert (make_example_neuron.EXAMPLES / name).read_text(encoding="utf-8") == text
