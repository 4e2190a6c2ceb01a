"""The virtual-time trace: values against a recording written by hand, through trnscope's reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.chrome_json import open_path
from tests.unit.recordings import SEQUENCE, TRN2, host, launch, recording
from trnscope.advisor.source import source_lines
from trnscope.analysis.backward import link_backward
from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.devices import summarize_devices
from trnscope.analysis.launch import launches, launches_without_work
from trnscope.analysis.op_groups import GroupBy
from trnscope.analysis.ops import ops
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.report.marks import view_of
from trnscope.report.sentence import sentence_line
from trnscope.sim.virtual_trace.backward_links import backward_links
from trnscope.sim.virtual_trace.collective_args import collective_args, message_args
from trnscope.sim.virtual_trace.device_annotations import device_annotations
from trnscope.sim.virtual_trace.observed import Process, Program, to_recording
from trnscope.sim.virtual_trace.python_frames import folders_of_code, short_name
from trnscope.sim.virtual_trace.recording import (
    CollectiveInfo,
    HostKind,
    LaunchKind,
    Message,
    Recording,
)
from trnscope.sim.virtual_trace.rows import micros
from trnscope.sim.virtual_trace.selection import dropped_text, select
from trnscope.sim.virtual_trace.system_events import filtered, system_events
from trnscope.sim.virtual_trace.trace_json import trace_text, write_trace
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_path(write_trace(recording(), tmp_path / "trace.json"))


def rows(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [row for row in document["traceEvents"] if row.get("cat") == category]


def test_the_header_says_simulated() -> None:
    document = json.loads(trace_text(recording()))
    assert document["trnscopeSimulation"] == {
        "clock": "virtual",
        "hardware": "trn2",
        "version": "1",
        "model": "trn2 model v1",
        "instance": "trn2.3xlarge",
        "lnc": 2,
        "dropped_events": {},
    }
    assert [device["simulated"] for device in document["deviceProperties"]] == [True, True]
    assert document["deviceProperties"][1]["totalGlobalMem"] == 24 * 1024**3
    assert document["baseTimeNanoseconds"] == 0
    assert list(document)[-1] == "traceName"


def test_the_reader_takes_it_whole_and_knows_it_is_simulated(trace: Trace) -> None:
    assert trace.health.complete
    assert not trace.health.warnings
    assert trace.source.format == "kineto"
    assert trace.source.simulated
    assert Profile((trace,)).simulated_by == "trn2 model v1"
    assert Profile((trace,)).is_virtual


def test_a_trace_with_a_measured_host_says_so(tmp_path: Path) -> None:
    text = trace_text(recording()).replace('"clock": "virtual"', '"clock": "host real"', 1)
    path = tmp_path / "trace.json"
    path.write_text(text)
    profile = Profile((open_path(path),))
    assert profile.simulated_by == "trn2 model v1"
    assert not profile.is_virtual
    assert sentence_line(breakdown(profile), view_of(profile)).plain.endswith(
        "Device times are simulated."
    )


def test_a_virtual_trace_says_that_all_of_it_is_simulated(trace: Trace) -> None:
    profile = Profile((trace,))
    assert sentence_line(breakdown(profile), view_of(profile)).plain.endswith(
        "All times are simulated."
    )


def test_device_times_are_the_recordings(trace: Trace) -> None:
    (row,) = summarize_devices(trace)
    assert row.device.label == "neuron:0"
    assert row.device.kind is DeviceKind.NEURON
    assert (row.device.simulated, row.device.name) == (True, "AWS Trainium2")
    # Copies 10 + 10 µs, the product 30, the all-reduce 30; 18 of it after the product.
    assert row.sum_ns == recording().device_ns == 80_000
    assert (row.compute_ns, row.communication_ns, row.memcpy_ns) == (30_000, 30_000, 20_000)
    assert (row.busy_ns, row.idle_ns) == (68_000, 6_000)
    assert row.exposed_communication_ns == 18_000


def test_nothing_is_unlinked(trace: Trace) -> None:
    (row,) = summarize_devices(trace)
    assert row.unlinked_ns == 0
    assert ops(Profile((trace,))).unattributed_device_ns == 0


def test_ops_have_their_own_work(trace: Trace) -> None:
    table = {row.name: row for row in ops(Profile((trace,))).rows}
    assert table["aten::mm"].self_device_ns == 30_000
    assert table["aten::linear"].device_total_ns == 30_000
    assert table["aten::linear"].self_cpu_ns == 13_002 - 12_000
    assert table["nrta_execute_schedule"].self_cpu_ns == 6_000 - 1
    assert table["neuronx-cc"].self_cpu_ns == 4_000
    assert table["kmgr_exec_core"].self_cpu_ns == 2


def test_work_is_not_charged_to_the_op_that_begins_when_its_launch_ends(tmp_path: Path) -> None:
    first, second = host(1, "aten::mm", 0, 100), host(2, "aten::view", 100, 110)
    one = launch(1, LaunchKind.KERNEL, "aten::mm", (0, 100), (120, 150), op=1)
    whole = recording(host=(first, second), launches=(one,), waits=(), memory=())
    table = {
        row.name: row.self_device_ns
        for row in ops(Profile((open_path(write_trace(whole, tmp_path / "trace.json")),))).rows
    }
    assert (table["aten::mm"], table["aten::view"]) == (30, 0)


def test_launch_latencies_are_those_of_the_model(trace: Trace) -> None:
    found = launches(Profile((trace,)))
    assert sorted(row.num_launches for row in found.streams) == [1, 3]
    assert launches_without_work(trace).size == 0


def test_an_idle_device_waits_for_the_host_until_work_is_enqueued(trace: Trace) -> None:
    # The device is idle from 16 to 22 µs; the product was enqueued at 19, when its call ended.
    (row,) = breakdown(Profile((trace,))).rows
    parts = {part.key: part.duration_ns for part in row.parts}
    assert parts["launch_wait"] == 0
    assert parts["host_wait"] == 6_000 + 6_000 + 20_000


def test_runtime_rows_are_of_the_launching_thread(trace: Trace) -> None:
    kinds = trace.slices.kind
    names = trace.strings.take(trace.slices.name)
    runtime = {name for name, kind in zip(names, kinds, strict=True) if kind == SliceKind.RUNTIME}
    assert runtime == {
        "nrt_tensor_write",
        "neuronx-cc",
        "nrta_execute_schedule",
        "nrt_cc_schedule",
        "nrt_tensor_read",
        "nrt_async_sema_wait",
        "kmgr_exec_core",
    }


def test_flows_join_launch_and_work() -> None:
    document = json.loads(trace_text(recording()))
    flows = rows(document, "ac2g")
    starts = {row["id"]: row["ts"] for row in flows if row["ph"] == "s"}
    ends = {row["id"]: (row["ts"], row["bp"]) for row in flows if row["ph"] == "f"}
    assert starts == {1: 2.0, 2: 18.999, 3: 23.999, 4: 27.0}
    assert ends == {1: (6.0, "e"), 2: (22.0, "e"), 3: (40.0, "e"), 4: (70.0, "e")}


def test_ids_beyond_what_a_float_holds_stay_exact() -> None:
    huge = (1 << 62) + 1
    one = launch(2, LaunchKind.KERNEL, "aten::mm", (0, 1), (2, 3), op=4)
    document = json.loads(trace_text(recording(launches=(replace(one, sequence_id=huge),))))
    (driver,) = rows(document, "privateuse1_driver")
    assert driver["args"]["nrt_sequence_id"] == driver["args"]["flow_id"] == str(huge)


def test_collectives_and_copies_have_their_arguments() -> None:
    document = json.loads(trace_text(recording()))
    reduce = rows(document, "kernel")[1]["args"]
    assert (reduce["Collective name"], reduce["In msg nelems"]) == ("allreduce", 1024)
    assert (reduce["Group size"], reduce["Process Group Ranks"]) == (2, "[4, 6]")
    assert (reduce["Rank"], reduce["Seq"], reduce["dtype"]) == (1, 9, "BFloat16")
    assert (reduce["Process Group Name"], reduce["In split size"]) == ("0", "[]")
    assert "Src Rank" not in reduce
    copy_in, copy_out = (row["args"] for row in rows(document, "gpu_memcpy"))
    assert (copy_in["kind"], copy_in["bytes"]) == ("HtoD", 262_144)
    assert (copy_out["kind"], copy_out["bytes"]) == ("DtoH", 4)


def test_readers_find_a_collectives_message(trace: Trace) -> None:
    (collective,) = trace.slices.of_kind(SliceKind.COLLECTIVE).tolist()
    texts = {
        key: trace.strings[value_of(trace, key, collective)]
        for key in ("collective_name", "dtype", "process_group_name", "process_group_ranks")
    }
    assert texts == {
        "collective_name": "allreduce",
        "dtype": "BFloat16",
        "process_group_name": "0",
        "process_group_ranks": "[4, 6]",
    }
    numbers = ("in_nelems", "out_nelems", "group_size", "collective_seq")
    assert [value_of(trace, key, collective) for key in numbers] == [1024, 1024, 2, 9]


def value_of(trace: Trace, key: str, at: int) -> int:
    attribute = trace.attribute(key)
    assert attribute is not None
    has, values = attribute.of(np.array([at], np.uint32))
    assert has[0]
    return int(values[0])


def test_a_message_to_one_rank_names_both_and_a_split_is_told() -> None:
    sent = message_args(Message("send", 8, 8, "Float", "1", (2, 5), source=0, destination=1))
    assert (sent["Src Rank"], sent["Dst Rank"], sent["Group size"]) == (0, 1, 2)
    assert "Seq" not in sent
    split = Message("all_to_allv", 4, 6, "Long", "0", (0, 1), in_splits=(1, 3), out_splits=(2, 4))
    args = message_args(split)
    assert (args["In split size"], args["Out split size"]) == ("[1, 3]", "[2, 4]")
    assert (args["In msg nelems"], args["Out msg nelems"]) == (4, 6)


def test_a_collective_without_a_message_tells_no_sizes() -> None:
    one = launch(3, LaunchKind.COLLECTIVE, "all_reduce", (0, 1), (2, 3), op=5,
                 collective=CollectiveInfo("all_reduce", 1024, "bfloat16", 2))  # fmt: skip
    assert collective_args(one) == {
        "Collective name": "all_reduce",
        "Group size": 2,
        "dtype": "bfloat16",
    }


def test_arguments_of_ops() -> None:
    document = json.loads(trace_text(recording()))
    (linear,) = (row for row in rows(document, "cpu_op") if row["name"] == "aten::linear")
    assert linear["args"]["Input Dims"] == [[128, 1024], []]
    assert linear["args"]["Input type"] == ["c10::BFloat16", "Scalar"]
    assert linear["args"]["Concrete Inputs"] == ["", "1"]


def test_times_are_exact_to_the_nanosecond() -> None:
    assert micros(1) == "0.001"
    assert micros(12_345_678_901_234_567) == "12345678901234.567"


def test_backward_ops_lead_to_their_forward_ops(trace: Trace) -> None:
    links = link_backward(trace)
    names = trace.strings.take(trace.slices.name)
    pairs = zip(links.forward.tolist(), links.backward.tolist(), strict=True)
    assert [(names[forward], names[backward]) for forward, backward in pairs] == [
        ("aten::mm", "MmBackward0")
    ]


def test_an_arrow_leads_from_the_forward_op_to_the_backward_op(trace: Trace) -> None:
    document = json.loads(trace_text(recording()))
    arrows = [(row["ph"], row["id"], row["ts"], row.get("bp")) for row in rows(document, "fwdbwd")]
    assert arrows == [("s", 1, 8.0, None), ("f", 1, 30.0, "e")]
    assert (trace.health.complete, len(trace.health.warnings)) == (True, 0)


def test_the_last_forward_op_and_the_first_backward_op_of_a_number_are_joined() -> None:
    backward: dict[str, Any] = {"kind": HostKind.BACKWARD, "thread": 1, "forward_thread": 0}
    rows = (
        host(1, "aten::linear", 0, 9, sequence_number=4),
        host(2, "aten::addmm", 1, 8, sequence_number=4),
        host(3, "aten::relu", 10, 11, sequence_number=5),
        host(4, "evaluate_function: AddmmBackward0", 20, 30, sequence_number=4, **backward),
        host(5, "AddmmBackward0", 20, 30, sequence_number=4, **backward),
        host(6, "OldBackward0", 31, 32, sequence_number=1, **backward),
    )
    assert [(one.id, other.id) for one, other in backward_links(rows)] == [(2, 4)]


# The program's ranges on the device ----------------------------------------------------


def annotated() -> Recording:
    """A range around an op on each of two streams, a range in it, and a step around all."""
    ranges = (
        host(1, "ProfilerStep#0", 0, 100, kind=HostKind.ANNOTATION),
        host(2, "outer", 0, 60, kind=HostKind.ANNOTATION),
        host(3, "aten::mm", 1, 10, parent=2),
        host(4, "inner", 10, 50, kind=HostKind.ANNOTATION, parent=2),
        host(5, "aten::linear", 11, 20, parent=4),
        host(6, "aten::addmm", 12, 20, parent=5),
        host(7, "aten::add", 70, 80),
        host(8, "empty", 90, 95, kind=HostKind.ANNOTATION),
    )
    kernel = LaunchKind.KERNEL
    work = (
        launch(1, kernel, "aten::mm", (1, 10), (20, 30), op=3),
        launch(2, kernel, "aten::addmm", (12, 20), (30, 45), op=6),
        launch(3, kernel, "aten::addmm", (20, 20), (25, 40), op=6, stream=1),
        launch(4, kernel, "aten::add", (70, 80), (90, 120), op=7),
    )
    return recording(host=ranges, launches=work, waits=(), memory=())


def test_ranges_lie_on_the_device_from_their_first_work_to_their_last(tmp_path: Path) -> None:
    found = device_annotations(annotated())
    assert [(one.name, one.stream, one.start_ns, one.end_ns) for one in found] == [
        ("ProfilerStep#0", 0, 20, 120),
        ("outer", 0, 20, 45),
        ("ProfilerStep#0", 1, 25, 40),
        ("outer", 1, 25, 40),
        ("inner", 1, 25, 40),
        ("inner", 0, 30, 45),
    ]
    trace = open_path(write_trace(annotated(), tmp_path / "trace.json"))
    assert trace.slices.of_kind(SliceKind.DEVICE_ANNOTATION).size == 6
    (device,) = summarize_devices(trace)
    assert (device.sum_ns, device.busy_ns) == (10 + 15 + 15 + 30, 25 + 30)


# Python functions ----------------------------------------------------------------------


def with_functions() -> Recording:
    python: dict[str, Any] = {"kind": HostKind.PYTHON}
    ranges = (
        host(1, "train.py(1): main", 0, 100_000, **python),
        host(2, "nn.Module: Linear_3", 7_001, 20_003, **python),
        host(3, "torch/nn/modules/linear.py(120): forward", 7_001, 20_003, **python),
        host(4, "aten::linear", 7_001, 20_003),
        host(5, "train.py(9): other", 30_000, 40_000, **python),
        host(6, "aten::relu", 30_000, 40_000),
    )
    return recording(host=ranges, launches=(), waits=(), memory=(), with_stack=True)


def test_functions_have_rows_and_name_their_callers() -> None:
    document = json.loads(trace_text(with_functions()))
    assert document["with_stack"] == 1
    args = [row["args"] for row in rows(document, "python_function")]
    assert args == [
        {"Python id": 1, "Python parent id": None},
        {"Python id": 2, "Python parent id": 1, "Python module id": 3},
        {"Python id": 3, "Python parent id": 2},
        {"Python id": 4, "Python parent id": 1},
    ]
    (span,) = rows(document, "Trace")
    assert span["args"]["Op count"] == 2


def test_ops_are_grouped_by_stack_and_by_module(tmp_path: Path) -> None:
    trace = open_path(write_trace(with_functions(), tmp_path / "trace.json"))
    profile = Profile((trace,))
    stacks = {row.key.name: row.key.stack for row in ops(profile, group_by=GroupBy.STACK).rows}
    assert stacks == {
        "aten::linear": (
            "torch/nn/modules/linear.py(120): forward",
            "nn.Module: Linear_3",
            "train.py(1): main",
        ),
        "aten::relu": ("train.py(9): other", "train.py(1): main"),
    }
    modules = {row.key.name: row.key.module for row in ops(profile, group_by=GroupBy.MODULE).rows}
    assert modules == {"aten::linear": "Linear_3", "aten::relu": None}
    (linear,) = np.flatnonzero(
        np.array([name == "aten::linear" for name in trace.strings.take(trace.slices.name)])
    ).tolist()
    lines = source_lines(trace, [linear])
    assert lines is not None
    assert [(line.file, line.line) for line in lines] == [("train.py", 1)]


def test_functions_are_no_events_of_the_system() -> None:
    names = {event.name for event in system_events(with_functions())}
    assert names == {"aten::linear [trace.json]", "aten::relu [trace.json]"}


def test_names_of_functions_leave_the_folders_of_the_path_out() -> None:
    folders = folders_of_code(["/home/me", "/home/me/lib/", "/usr/lib"])
    assert folders == ("/home/me/lib/", "/home/me/", "/usr/lib/")
    assert short_name("/home/me/lib/a/b.py(3): f", folders) == "a/b.py(3): f"
    assert short_name("/home/me/train.py(3): f", folders) == "train.py(3): f"
    assert short_name("nn.Module: Linear_0", folders) == "nn.Module: Linear_0"
    assert short_name("/other/x.py(3): f", folders) == "/other/x.py(3): f"


def test_ranks_name_themselves(tmp_path: Path) -> None:
    path = write_trace(recording(rank=3, world_size=8), tmp_path / "trace.json")
    source = open_path(path).source
    assert (source.rank, source.world_size) == (3, 8)


def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write_trace(recording(), tmp_path / "a" / "trace.json").read_bytes()
    assert write_trace(recording(), tmp_path / "b" / "trace.json").read_bytes() == first


# Selection -----------------------------------------------------------------------------


def many(count: int, core: int) -> list[Any]:
    return [
        launch(10 * core + i, LaunchKind.KERNEL, "aten::mm", (i, i), (i, i + 1), core=core)
        for i in range(count)
    ]


def test_the_latest_executions_of_each_core_are_kept() -> None:
    whole = recording(launches=tuple(many(5, 0) + many(2, 1)), memory=())
    kept = select(whole, None, 3)
    assert [(one.core, one.host_start_ns) for one in kept.launches] == [
        (0, 2), (0, 3), (0, 4), (1, 0), (1, 1),
    ]  # fmt: skip
    assert kept.dropped == {0: 2}
    assert dropped_text(kept) == (
        "2 trace events were dropped during capture (stored 5 out of 7 total events); "
        "raise max_events_per_nc"
    )
    assert dropped_text(select(whole, None, 5)) is None


def test_cores_left_out_are_no_drops() -> None:
    kept = select(recording(launches=tuple(many(5, 0) + many(2, 1))), frozenset({1}), 10)
    assert {one.core for one in kept.launches} == {1}
    assert kept.memory == ()
    assert kept.dropped == {}


# System events -------------------------------------------------------------------------


def test_a_chain_of_ids_leads_from_the_op_to_each_physical_core() -> None:
    events = system_events(recording())
    op = next(event for event in events if event.name == "aten::mm [trace.json]")
    assert (op.source, op.flow_ids) == ("framework", (SEQUENCE + 2,))
    call = next(event for event in events if event.name == "nrta_execute_schedule")
    assert call.flow_ids == op.flow_ids
    wait = next(event for event in events if event.name == "kbl_exec_wait")
    assert wait.flow_ids == (SEQUENCE + 2, 1)
    running = [event for event in events if event.name == "nc_exec_running"]
    assert [event.pcore_idx for event in running] == [0, 1]
    assert {event.flow_ids for event in running} == {(1,)}
    assert {event.attributes["model_id"] for event in (wait, *running)} == {1}
    assert {(event.start_ns, event.end_ns) for event in running} == {(22_000, 52_000)}


def test_events_are_numbered_in_time() -> None:
    events = system_events(recording())
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    starts = [event.start_ns for event in events]
    assert starts == sorted(starts)


def test_executions_count_up_for_each_program() -> None:
    same = many(2, 0)
    other = replace(many(1, 0)[0], name="aten::add", switch_ns=0)
    events = system_events(replace(recording(), launches=(*same, other), simulation=TRN2))
    chains = [
        (event.attributes["model_id"], event.flow_ids)
        for event in events
        if event.name == "nc_exec_running" and event.pcore_idx == 0
    ]
    assert sorted(chains) == [(1, (1,)), (1, (2,)), (2, (1,))]


def test_a_switch_is_the_first_part_of_its_execution() -> None:
    one = launch(1, LaunchKind.KERNEL, "aten::mm", (0, 1), (10, 30), switch_ns=5)
    (switch,) = (
        event
        for event in system_events(recording(launches=(one,)))
        if event.name == "nc_model_switch"
    )
    assert (switch.start_ns, switch.end_ns, switch.source) == (10, 15, "neuron_hw")


def test_a_fill_runs_as_a_program() -> None:
    fill = launch(1, LaunchKind.MEMSET, "aten::zero_", (0, 1), (10, 30), num_bytes=64)
    names = [event.name for event in system_events(recording(launches=(fill,)))]
    assert names.count("nc_exec_running") == 2
    assert "nrt_tensor_memset" in names
    (row,) = rows(json.loads(trace_text(recording(launches=(fill,)))), "gpu_memset")
    assert (row["name"], row["args"]["bytes"]) == ("Memset zero_", 64)


def test_filters_by_type_and_by_name() -> None:
    events = system_events(recording())
    hardware = {event.name for event in filtered(events, ("hardware",))}
    assert hardware == {"dmem_buf_copyin", "nc_exec_running", "cc_running", "dmem_buf_copyout"}
    assert {event.name for event in filtered(events, ("hardware", "^cc_running"))} == (
        hardware - {"cc_running"}
    )
    assert {event.name for event in filtered(events, ("nrta_execute_schedule",))} == {
        "nrta_execute_schedule"
    }
    assert filtered(events, ()) == events


# From the observer ---------------------------------------------------------------------

OBSERVED: dict[str, Any] = {
    "start_ns": 5,
    "end_ns": 90,
    "names": ["aten::mm", "step", "profiler::_record_function_enter_new", "MmBackward0"],
    "inputs": [([[[2, 3]], [], [[4], [5, 6]]], ["float", "Scalar", "TensorList"], ["", "1", ""])],
    "ranges": [
        (11, 7, 1, 0, 5, 90, -1, 0, -1, 0),
        (12, 0, 2, 0, 5, 5, -1, 0, -1, 0),
        (13, 0, 0, 0, 6, 20, 4, 0, 0, 11),
        (14, 1, 3, 1, 30, 40, 4, 1, -1, 0),
    ],
    "launches": [
        (SEQUENCE, 1, 0, 3, 0, 0, 0, 7, 9, 12, 20, 13, 0, 1, 2, -1, 0),
        (SEQUENCE + 1, 2, 0, 3, 0, 0, 0, 7, 9, 20, 28, 2, 0, 0, 0, -1, 0),
    ],
    "collectives": [],
    "with_python": False,
    "waits": [(0, 0, 41, 60, 11, 0, -1)],
    "memory": [(6, 0, 0, 0xAAA, 64, 64), (7, 0, 0, 0xBBB, 8, 72), (8, 0, 0, 0xAAA, -64, 8),
               (9, 0, 0, 0xAAA, 16, 24)],
}  # fmt: skip


def observed() -> Recording:
    return to_recording(OBSERVED, Process(TRN2), lambda number: Program(f"op{number}", "key"))


def test_what_the_observer_saw_becomes_a_recording() -> None:
    found = observed()
    assert [(row.id, row.name, row.kind) for row in found.host] == [
        (11, "step", HostKind.ANNOTATION),
        (13, "aten::mm", HostKind.OP),
        (14, "MmBackward0", HostKind.BACKWARD),
    ]
    assert found.host[1].inputs is not None
    assert found.host[1].inputs.shapes == ((2, 3), (), ((4,), (5, 6)))
    assert (found.host[0].sequence_number, found.host[1].sequence_number) == (None, 4)
    assert (found.host[1].forward_thread, found.host[2].forward_thread) == (None, 0)
    first, second = found.launches
    assert (first.name, first.op, first.compile_ns, first.switch_ns) == ("op3", 13, 1, 2)
    assert second.op is None  # its op began before the recording
    assert [row.parent for row in found.host] == [None, 11, None]
    assert (found.waits[0].name, found.waits[0].op) == ("nrt_async_sema_wait", 11)


def test_functions_without_time_are_left_out_and_are_no_ones_op() -> None:
    ranges = [
        (21, 200, 0, 0, 5, 90, -1, 0, -1, 0),
        (22, 200, 1, 0, 6, 6, -1, 0, -1, 0),
        (23, 0, 2, 0, 6, 20, -1, 0, -1, 0),
    ]
    names = ["/work/train.py(3): main", "/work/train.py(9): nothing", "aten::mm"]
    process = Process(TRN2, code_folders=("/work/",))
    found = to_recording(
        {**OBSERVED, "ranges": ranges, "names": names, "with_python": True},
        process,
        lambda _: Program("op"),
    )
    assert [(row.name, row.kind) for row in found.host] == [
        ("train.py(3): main", HostKind.PYTHON),
        ("aten::mm", HostKind.OP),
    ]
    assert found.with_stack
    assert [launch.op for launch in found.launches] == [None, None]


def test_a_collective_brings_its_message_to_the_device_and_to_its_host_row() -> None:
    info = ("_allgather_base", 4, 8, [], [], "Float", "3", "tp", [1, 5], 1, -1, -1)
    launched = (SEQUENCE, 1, 6, 3, 0, 1, 0, 7, 9, 12, 20, 32, 0, 0, 0, 0, 12)
    ranges = [
        (31, 0, 0, 0, 6, 20, -1, 0, -1, 0),
        (32, 0, 1, 0, 6, 20, -1, 0, -1, 31),
    ]
    names = ["c10d::_allgather_base_", "record_param_comms"]
    values = {"ranges": ranges, "names": names, "launches": [launched], "collectives": [info]}
    found = to_recording({**OBSERVED, **values}, Process(TRN2), lambda _: Program("all_gather"))
    message = Message("_allgather_base", 4, 8, "Float", "3", (1, 5), 1, "tp", sequence_number=12)
    assert found.launches[0].message == message
    assert [row.message for row in found.host] == [None, message]
    document = json.loads(trace_text(found))
    (row,) = (row for row in rows(document, "cpu_op") if row["name"] == "record_param_comms")
    assert (row["args"]["In msg nelems"], row["args"]["Out msg nelems"]) == (4, 8)
    assert row["args"]["Process Group Ranks"] == "[1, 5]"


def test_the_runtimes_call_is_the_last_part_of_a_launch() -> None:
    process = Process(replace(TRN2, launch_call_ns=100))
    row = (SEQUENCE, 1, 0, 3, 0, 0, 0, 1_000, 1_500, 1_600, 1_700, 13, 0, 300, 0, -1, 0)
    copy = (SEQUENCE + 1, 2, 1, 4, 0, 0, 0, 1_500, 1_550, 1_600, 1_700, 13, 8, 0, 0, -1, 0)
    found = to_recording(
        {**OBSERVED, "launches": [row, copy]}, process, lambda _: Program("op", "key")
    )
    assert [launch.call_ns for launch in found.launches] == [(1_400, 1_500), (1_500, 1_550)]
    assert [launch.cache_key for launch in found.launches] == ["key", None]


def test_real_addresses_leave_no_trace() -> None:
    assert [(row.address, row.num_bytes) for row in observed().memory] == [
        (1, 64), (2, 8), (1, -64), (3, 16),
    ]  # fmt: skip
