"""Nsight Systems exports: hand-made databases, and real ones against plain SQL."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trnscope.errors import TraceFormatError
from trnscope.ingest.nsys import read_nsys
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import DEVICE_WORK, SliceKind, TrackKind
from trnscope.store.reader import Trace
from trnscope.store.writer import TraceWriter

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
Rows = Sequence[Mapping[str, Any]]
STRINGS = {
    1: "gemm(float*)",
    2: "cudaLaunchKernel_v7000",
    3: "cuLaunchKernel",
    4: "ncclDevKernel_X",
}


def tid(process: int, thread: int) -> int:
    return (process << 24) | thread


def pid(process: int) -> int:
    return process << 24


def export(path: Path, tables: Mapping[str, Rows], strings: Mapping[int, Any] = STRINGS) -> Path:
    """Write a database whose tables have just the columns that the rows name."""
    with sqlite3.connect(path) as connection:
        string_rows = [{"id": i, "value": text} for i, text in strings.items()]
        for table, rows in {"StringIds": string_rows, **tables}.items():
            columns = list(dict.fromkeys(name for row in rows for name in row))
            quoted = ", ".join(f'"{name}"' for name in columns)
            connection.execute(f"CREATE TABLE {table} ({quoted})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})",
                [[row.get(name) for name in columns] for row in rows],
            )
    connection.close()
    return path


def read(path: Path, tmp_path: Path) -> Trace:
    store = tmp_path / f"{path.name}.store"
    read_nsys(path, TraceWriter(store))
    return Trace(store)


def opened(
    tmp_path: Path, tables: Mapping[str, Rows], strings: Mapping[int, Any] = STRINGS
) -> Trace:
    return read(export(tmp_path / "e.sqlite", tables, strings), tmp_path)


def names(trace: Trace, kind: SliceKind) -> list[str]:
    return trace.strings.take(trace.slices.name[trace.slices.of_kind(kind)])


def values(trace: Trace, key: str, kind: SliceKind) -> list[Any]:
    """An attribute of all slices of a kind, null where a slice has none."""
    attribute = trace.attribute(key)
    ids = trace.slices.of_kind(kind)
    if attribute is None:
        return [None] * ids.size
    has, found = attribute.of(ids)
    texts = [trace.strings[v] if attribute.is_text else int(v) for v in found]
    return [text if known else None for text, known in zip(texts, has, strict=True)]


def warnings(trace: Trace) -> dict[str, int]:
    return {warning.code: warning.count for warning in trace.health.warnings}


CALL = {"start": 100, "end": 110, "globalTid": tid(7, 8), "nameId": 2, "correlationId": 5}
WORK = {
    "start": 200,
    "end": 230,
    "deviceId": 0,
    "contextId": 1,
    "streamId": 13,
    "correlationId": 5,
    "globalPid": pid(7),
    "demangledName": 1,
}


def test_a_kernel_is_linked_to_its_launch_and_described(tmp_path: Path) -> None:
    shape = {"gridX": 4, "gridY": 2, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1}
    trace = opened(tmp_path, {RUNTIME: [CALL], KERNEL: [{**WORK, **shape}]})
    slices, launches = trace.slices, trace.launches
    (kernel,), (call,) = slices.of_kind(SliceKind.KERNEL), slices.of_kind(SliceKind.RUNTIME)
    assert (slices.start_ns[kernel], slices.dur_ns[kernel]) == (200, 30)
    assert launches.device_slice.tolist() == [kernel]
    assert launches.has_launch.tolist() == [True]
    assert launches.launch_slice.tolist() == [call]
    assert names(trace, SliceKind.KERNEL) == ["gemm(float*)"]
    assert names(trace, SliceKind.RUNTIME) == ["cudaLaunchKernel"]
    assert values(trace, "grid", SliceKind.KERNEL) == ["[4, 2, 1]"]
    assert values(trace, "block", SliceKind.KERNEL) == ["[128, 1, 1]"]
    assert values(trace, "stream", SliceKind.KERNEL) == [13]
    assert values(trace, "device", SliceKind.KERNEL) == [0]
    thread, stream = (trace.tracks[slices.track[i]] for i in (call, kernel))
    assert (thread.kind, thread.process, thread.thread) == (TrackKind.CPU_THREAD, "7", "8")
    assert (stream.kind, stream.stream) == (TrackKind.DEVICE_STREAM, 13)
    assert stream.device is not None
    assert stream.device.label == "cuda:0"
    assert trace.args(int(kernel)) == {}


def test_every_column_but_the_times_may_be_missing(tmp_path: Path) -> None:
    bare = {"start": 10, "end": 25}
    tables = {table: [bare] for table in (KERNEL, MEMCPY, MEMSET, SYNC, RUNTIME)}
    trace = opened(tmp_path, {**tables, "NVTX_EVENTS": [bare]})
    kinds = Counter(SliceKind(kind).name for kind in trace.slices.kind)
    assert kinds == dict.fromkeys(
        ("KERNEL", "MEMCPY", "MEMSET", "SYNC", "RUNTIME", "ANNOTATION"), 1
    )
    assert trace.slices.dur_ns.tolist() == [15] * 6
    assert names(trace, SliceKind.KERNEL) == ["(name not recorded)"]
    assert names(trace, SliceKind.ANNOTATION) == ["(unnamed)"]
    assert names(trace, SliceKind.MEMCPY) == ["Memcpy"]


def test_no_string_table(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {KERNEL} (start, end, shortName)")
        connection.execute(f"INSERT INTO {KERNEL} VALUES (0, 4, 12)")
    connection.close()
    trace = read(path, tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["(name not recorded)"]
    assert warnings(trace)["missing-string"] == 1


def test_processes_count_correlation_ids_each_for_itself(tmp_path: Path) -> None:
    other = {"globalTid": tid(9, 9), "start": 120, "end": 130}
    trace = opened(
        tmp_path,
        {
            RUNTIME: [CALL, {**CALL, **other}],
            KERNEL: [
                {**WORK, "globalPid": pid(9), "start": 300, "end": 310},
                {**WORK, "start": 400, "end": 410},
            ],
        },
    )
    slices, launches = trace.slices, trace.launches
    launched = {
        int(slices.start_ns[d]): int(slices.start_ns[h])
        for d, h in zip(launches.device_slice, launches.launch_slice, strict=True)
    }
    assert launched == {300: 120, 400: 100}
    assert sorted(values(trace, "correlation", SliceKind.RUNTIME)) == [5, 5 + (1 << 32)]
    streams = {trace.tracks[slices.track[d]].process for d in launches.device_slice}
    assert streams == {"7", "9"}


def test_a_gpu_row_without_process_is_not_linked_by_guess(tmp_path: Path) -> None:
    nobody = {name: value for name, value in WORK.items() if name != "globalPid"}
    calls = [CALL, {**CALL, "globalTid": tid(9, 9)}]
    one = opened(tmp_path, {RUNTIME: calls[:1], KERNEL: [nobody]})
    assert one.launches.has_launch.tolist() == [True]
    two = read(export(tmp_path / "2.sqlite", {RUNTIME: calls, KERNEL: [nobody]}), tmp_path)
    assert two.launches.has_launch.tolist() == [False]
    assert warnings(two)["no-process-id"] == 1


def test_devices_that_each_process_numbers_from_zero_are_told_apart(tmp_path: Path) -> None:
    gpus = [{"id": 0, "name": "GPU A"}, {"id": 3, "name": "GPU B"}]
    visible = [{"gpuId": 0, "cudaId": 0, "pid": 7}, {"gpuId": 3, "cudaId": 0, "pid": 9}]
    trace = opened(
        tmp_path,
        {
            KERNEL: [WORK, {**WORK, "globalPid": pid(9)}],
            "TARGET_INFO_GPU": gpus,
            "TARGET_INFO_CUDA_DEVICE": visible,
        },
    )
    devices = {track.device.label: track.device.name for track in trace.tracks if track.device}
    assert devices == {"cuda:0": "GPU A", "cuda:3": "GPU B"}
    assert values(trace, "device", SliceKind.KERNEL) == [0, 3]


def test_sync_rows_take_their_device_from_the_context_and_are_no_work(tmp_path: Path) -> None:
    sync = {**WORK, "start": 0, "end": 500, "syncType": 3, "contextId": 2, "deviceId": 0}
    kernel = {**WORK, "contextId": 2, "deviceId": 1}
    trace = opened(tmp_path, {KERNEL: [kernel], SYNC: [sync]})
    assert names(trace, SliceKind.SYNC) == ["Stream Sync"]
    assert values(trace, "sync_kind", SliceKind.SYNC) == ["Stream Sync"]
    assert values(trace, "device", SliceKind.SYNC) == [1]
    assert trace.launches.device_slice.tolist() == trace.slices.of_kind(SliceKind.KERNEL).tolist()
    (kernel_id,) = trace.slices.of_kind(SliceKind.KERNEL)
    assert trace.slices.self_ns[kernel_id] == 30
    assert trace.slices.parent[kernel_id] == kernel_id


def test_a_wait_for_all_streams_has_no_stream(tmp_path: Path) -> None:
    trace = opened(tmp_path, {SYNC: [{**WORK, "syncType": 4, "streamId": 0xFFFFFFFF}]})
    assert [track.stream for track in trace.tracks] == [None]
    assert warnings(trace)["no-gpu-activity"] == 1


def test_copies_and_fills(tmp_path: Path) -> None:
    copies = [
        {**WORK, "copyKind": 1, "srcKind": 0, "dstKind": 2, "bytes": 4096},
        {**WORK, "start": 300, "end": 301, "copyKind": 10, "bytes": 1 << 40},
        {**WORK, "start": 400, "end": 401, "copyKind": 99},
    ]
    fills = [{**WORK, "start": 500, "end": 501, "memKind": 2, "bytes": 8}]
    trace = opened(tmp_path, {MEMCPY: copies, MEMSET: fills})
    assert names(trace, SliceKind.MEMCPY) == [
        "Memcpy HtoD (Pageable -> Device)",
        "Memcpy PtoP",
        "Memcpy",
    ]
    assert values(trace, "bytes", SliceKind.MEMCPY) == [4096, 1 << 40, None]
    assert values(trace, "memcpy_kind", SliceKind.MEMCPY) == ["HtoD", "PtoP", None]
    assert names(trace, SliceKind.MEMSET) == ["Memset (Device)"]
    assert values(trace, "bytes", SliceKind.MEMSET) == [8]


def test_runtime_and_driver_calls_are_told_apart(tmp_path: Path) -> None:
    driver = {**CALL, "start": 120, "end": 121, "nameId": 3, "eventClass": 1}
    trace = opened(tmp_path, {RUNTIME: [{**CALL, "eventClass": 0}, driver]})
    slices = trace.slices
    assert names(trace, SliceKind.RUNTIME) == ["cudaLaunchKernel", "cuLaunchKernel"]
    assert [trace.categories[c] for c in slices.category] == ["cuda_runtime", "cuda_driver"]


def test_one_graph_launch_runs_many_kernels(tmp_path: Path) -> None:
    nodes = [{**WORK, "start": 200 + 40 * i, "end": 230 + 40 * i, "graphNodeId": i} for i in (1, 2)]
    trace = opened(tmp_path, {RUNTIME: [CALL], KERNEL: nodes})
    assert trace.launches.has_launch.tolist() == [True, True]
    assert np.unique(trace.launches.launch_slice).size == 1
    assert values(trace, "graph_node_id", SliceKind.KERNEL) == [1, 2]


def test_a_graph_traced_as_a_whole_is_device_work(tmp_path: Path) -> None:
    trace = opened(
        tmp_path, {RUNTIME: [CALL], "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [{**WORK, "graphId": 6}]}
    )
    assert names(trace, SliceKind.KERNEL) == ["CUDA graph 6"]
    assert trace.launches.has_launch.tolist() == [True]
    assert values(trace, "graph_id", SliceKind.KERNEL) == [6]


def test_collectives_by_name(tmp_path: Path) -> None:
    trace = opened(tmp_path, {KERNEL: [{**WORK, "demangledName": 4}]})
    assert names(trace, SliceKind.COLLECTIVE) == ["ncclDevKernel_X"]


def test_other_names_stand_in_for_the_demangled_one(tmp_path: Path) -> None:
    short = {**WORK, "demangledName": None, "shortName": 4}
    assert names(opened(tmp_path, {KERNEL: [short]}), SliceKind.COLLECTIVE) == ["ncclDevKernel_X"]


def nvtx(start: int | None, end: int | None, text: str | None, **more: Any) -> dict[str, Any]:
    row = {"start": start, "end": end, "text": text, "eventType": 59, "globalTid": tid(7, 8)}
    return {**row, **more}


def test_nvtx_ranges_nest_on_their_thread(tmp_path: Path) -> None:
    rows = [nvtx(0, 100, "step"), nvtx(10, 40, None, textId=1), nvtx(50, None, "cut off")]
    trace = opened(tmp_path, {"NVTX_EVENTS": rows, RUNTIME: [{**CALL, "start": 20, "end": 30}]})
    slices = trace.slices
    order = np.argsort(slices.start_ns)
    assert trace.strings.take(slices.name[order]) == ["step", "gemm(float*)", "cudaLaunchKernel"]
    assert slices.self_ns[order].tolist() == [70, 20, 10]
    assert slices.parent[order].tolist() == [order[0], order[0], order[1]]
    assert trace.strings.take(trace.unfinished.name) == ["cut off"]
    assert trace.unfinished.start_ns.tolist() == [50]
    assert trace.source.num_events == 4


def test_start_end_ranges_do_not_disturb_the_nesting(tmp_path: Path) -> None:
    crossing = nvtx(50, 150, "batch", eventType=60)
    trace = opened(tmp_path, {"NVTX_EVENTS": [nvtx(0, 100, "step"), crossing]})
    kinds = {
        name: trace.tracks[track].kind
        for name, track in zip(
            trace.strings.take(trace.slices.name), trace.slices.track, strict=True
        )
    }
    assert kinds == {"step": TrackKind.CPU_THREAD, "batch": TrackKind.ASYNC}
    assert sorted(trace.slices.self_ns.tolist()) == [100, 100]


def test_nvtx_marks_domains_and_other_rows(tmp_path: Path) -> None:
    rows = [
        nvtx(0, None, "NCCL", eventType=75, domainId=1),
        nvtx(None, None, "a category", eventType=33, domainId=1),
        nvtx(5, 9, "all", domainId=1),
        nvtx(6, 7, "sub", domainId=4),
        nvtx(3, None, "here", eventType=34, domainId=0),
    ]
    trace = opened(tmp_path, {"NVTX_EVENTS": rows})
    categories = {
        name: trace.categories[category]
        for name, category in zip(
            trace.strings.take(trace.slices.name), trace.slices.category, strict=True
        )
    }
    assert categories == {"all": "nvtx:NCCL", "sub": "nvtx:domain 4"}
    assert trace.strings.take(trace.instants.name) == ["here"]
    assert trace.instants.ts_ns.tolist() == [3]
    assert trace.source.num_events == 3
    assert trace.health.complete


@pytest.mark.parametrize(
    ("text", "name", "kind", "sequence", "dims"),
    [
        ("aten::mm, op_id = 12", "aten::mm", "CPU_OP", None, None),
        (
            "aten::mm, seq = 4, op_id = 12, sizes = [[2, 3], [3, 5]]",
            "aten::mm",
            "CPU_OP",
            4,
            "[[2, 3], [3, 5]]",
        ),
        ("MyFn, seq = 9", "MyFn", "CPU_OP", 9, None),
        (
            "AddmmBackward0, seq = 4, op_id = 3, input_op_ids = [(1, 0)]",
            "AddmmBackward0",
            "CPU_OP",
            4,
            None,
        ),
        ("forward, op_id = 3", "forward", "ANNOTATION", None, None),
        ("FSDP::root_pre_forward, op_id = 3", "FSDP::root_pre_forward", "ANNOTATION", None, None),
        ("aten::mm", "aten::mm", "ANNOTATION", None, None),
        ("x, y = 3", "x, y = 3", "ANNOTATION", None, None),
    ],
)
def test_texts_of_torch(
    tmp_path: Path, text: str, name: str, kind: str, sequence: int | None, dims: str | None
) -> None:
    trace = opened(tmp_path, {"NVTX_EVENTS": [nvtx(0, 5, text)]})
    expected = SliceKind[kind]
    assert names(trace, expected) == [name]
    assert values(trace, "sequence_number", expected) == [sequence]
    assert values(trace, "input_dims", expected) == [dims]


def test_device_time_reaches_the_op_of_torch(tmp_path: Path) -> None:
    op = nvtx(90, 120, "aten::mm, op_id = 1")
    trace = opened(tmp_path, {RUNTIME: [CALL], KERNEL: [WORK], "NVTX_EVENTS": [op]})
    assert trace.launches.has_op.tolist() == [True]
    assert trace.strings[trace.slices.name[trace.launches.op_slice[0]]] == "aten::mm"


def test_overhead_and_library_calls(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        {
            "CUPTI_ACTIVITY_KIND_OVERHEAD": [{**CALL, "start": 105, "end": 130}],
            RUNTIME: [CALL],
            "OSRT_API": [{**CALL, "start": 0, "end": 4, "nameId": 3}],
        },
    )
    slices = trace.slices
    kinds = {
        SliceKind(k).name: trace.tracks[t] for k, t in zip(slices.kind, slices.track, strict=True)
    }
    assert kinds["OVERHEAD"].kind == TrackKind.PROFILER
    assert kinds["RUNTIME"] == kinds["OTHER"]
    assert slices.dur_ns[slices.of_kind(SliceKind.RUNTIME)].tolist() == [10]


def test_threads_and_processes_are_named(tmp_path: Path) -> None:
    trace = opened(
        tmp_path,
        {
            RUNTIME: [CALL],
            "ThreadNames": [{"globalTid": tid(7, 8), "nameId": 1}],
            "PROCESSES": [{"globalPid": pid(7), "pid": 7, "name": "python3"}],
        },
    )
    assert (trace.tracks[0].process_name, trace.tracks[0].thread_name) == (
        "python3",
        "gemm(float*)",
    )


def test_times_count_from_the_epoch_when_the_session_start_is_recorded(tmp_path: Path) -> None:
    session = {"utcEpochNs": 1_779_630_014_975_716_426}
    trace = opened(tmp_path, {KERNEL: [WORK], "TARGET_INFO_SESSION_START_TIME": [session]})
    assert trace.slices.start_ns.tolist() == [1_779_630_014_975_716_626]
    assert (trace.source.epoch, trace.source.base_time_ns) == (True, 1_779_630_014_975_716_426)
    plain = read(export(tmp_path / "2.sqlite", {KERNEL: [WORK]}), tmp_path)
    assert (plain.source.epoch, plain.source.base_time_ns) == (False, 0)


def test_what_was_not_recorded_is_named(tmp_path: Path) -> None:
    trace = opened(
        tmp_path, {"META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION", "value": "9"}]}
    )
    assert warnings(trace) == {"no-gpu-activity": 1, "no-runtime-calls": 1, "no-nvtx": 1}
    assert trace.health.complete
    assert len(trace.slices) == 0
    assert dict(trace.source.metadata) == {"EXPORT_PRODUCT_VERSION": '"9"'}


def test_damaged_rows_are_counted_and_the_rest_is_kept(tmp_path: Path) -> None:
    rows = [
        WORK,
        {**WORK, "start": None},
        {**WORK, "start": 0, "end": 0},
        {**WORK, "start": 300, "end": 290},
        {**WORK, "demangledName": 77, "start": 310, "end": 311},
    ]
    trace = opened(tmp_path, {KERNEL: rows})
    assert trace.slices.start_ns.tolist() == [200, 310]
    assert trace.unfinished.start_ns.tolist() == [300]
    assert {"null-time": 1, "no-timestamp": 1, "missing-string": 1}.items() <= warnings(
        trace
    ).items()
    assert not trace.health.complete
    assert (trace.health.num_events_unreadable, trace.health.num_events_read) == (2, 3)


def test_durations_of_years_are_kept_apart(tmp_path: Path) -> None:
    nine_years = (1 << 58) - 1
    rows = [
        {"start": at, "end": at + nine_years, "deviceId": 0, "streamId": at, "shortName": 1}
        for at in range(1, 11)
    ]
    rows += [
        {"start": 1, "end": 6, "deviceId": 0, "streamId": 20, "shortName": 1},
        {"start": 1, "end": 1 + (1 << 59), "deviceId": 0, "streamId": 21, "shortName": 1},
        {"start": 1, "end": 1 << 62, "deviceId": 0, "streamId": 22, "shortName": 1},
        {"start": -(1 << 62), "end": 5, "deviceId": 0, "streamId": 23, "shortName": 1},
    ]
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": rows})
    # Four fit 36 years; an end beyond any time is no end, and such a start is no time at all.
    assert sum(trace.slices.dur_ns.tolist()) == 4 * nine_years + 5
    assert warnings(trace)["impossible-duration"] == 7
    assert warnings(trace)["null-time"] == 1
    assert trace.unfinished.name.size == 8
    assert not trace.health.complete


def test_text_that_is_no_utf8_is_repaired(tmp_path: Path) -> None:
    path = export(tmp_path / "e.sqlite", {KERNEL: [WORK]}, {2: "x"})
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO StringIds VALUES (1, CAST(x'67ff' AS TEXT))")
    connection.close()
    trace = read(path, tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["g\ufffd"]
    assert warnings(trace)["invalid-utf8"] == 1


def test_ids_are_exact_and_times_negative(tmp_path: Path) -> None:
    trace = opened(tmp_path, {RUNTIME: [{**CALL, "start": -3000, "end": -500}]})
    assert (trace.slices.start_ns[0], trace.slices.dur_ns[0]) == (-3000, 2500)


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    path = export(tmp_path / "e.sqlite", {RUNTIME: [CALL], KERNEL: [WORK, WORK]})
    calls: list[tuple[int, int]] = []
    read_nsys(path, TraceWriter(tmp_path / "s"), lambda done, total: calls.append((done, total)))
    size = path.stat().st_size
    assert calls == [(size // 3, size), (size, size)]


def test_nothing_is_written_beside_the_export_whatever_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "odd #1 %41?"
    folder.mkdir()
    path = export(folder / "a?mode=rw&b.sqlite", {KERNEL: [WORK]})
    path.chmod(0o400)
    before = path.read_bytes()
    assert len(read(path, tmp_path).slices) == 1
    assert list(folder.iterdir()) == [path]
    assert path.read_bytes() == before


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = export(tmp_path / "other.sqlite", {"users": [{"name": "x"}]})
    with pytest.raises(TraceFormatError, match="no Nsight Systems export") as caught:
        read(path, tmp_path)
    assert "\n" not in str(caught.value)
    assert "nsys export --type sqlite" in str(caught.value)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_damaged_database_is_one_error(tmp_path: Path, keep: float) -> None:
    rows = [{**WORK, "start": i, "end": i + 1} for i in range(5000)]
    path = export(tmp_path / "e.sqlite", {KERNEL: rows, RUNTIME: [CALL] * 5000})
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(TraceFormatError, match="damaged or cut-off") as caught:
        read(path, tmp_path)
    assert "\n" not in str(caught.value)


def test_garbage_behind_the_magic_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "e.sqlite"
    path.write_bytes(b"SQLite format 3\x00" + b"\xa5" * 5000)
    with pytest.raises(TraceFormatError, match="damaged or cut-off"):
        read(path, tmp_path)


# Real exports, against plain SQL over the same file ---------------------------------------

FIXTURES = (
    "h100_2gpu_1s",
    "healthy_1pct",
    "healthy_judged_1pct",
    "mfu_2gpu_after",
    "mfu_2gpu_before",
    "mock",
)


def sql(connection: sqlite3.Connection, text: str) -> list[Any]:
    try:
        return connection.execute(text).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise


def count(connection: sqlite3.Connection, table: str) -> int:
    return sum(n for (n,) in sql(connection, f"SELECT count(*) FROM {table}"))


def union_ns(intervals: Sequence[tuple[int, int]]) -> int:
    """Covered time, the slow and plain way."""
    total, reach = 0, None
    for start, end in sorted(intervals):
        first = start if reach is None else max(start, reach)
        total += max(end - first, 0)
        reach = end if reach is None else max(reach, end)
    return total


@pytest.mark.parametrize("name", FIXTURES)
def test_real_exports_equal_plain_sql(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "traces/nsys-ai/tests/fixtures" / f"{name}.sqlite"
    trace = read(path, tmp_path)
    slices = trace.slices
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)

    kinds = Counter(SliceKind(kind).name for kind in slices.kind)
    assert kinds["KERNEL"] + kinds["COLLECTIVE"] == count(connection, KERNEL)
    assert kinds["MEMCPY"] == count(connection, MEMCPY)
    assert kinds["MEMSET"] == count(connection, MEMSET)
    assert kinds["SYNC"] == count(connection, SYNC)
    assert kinds["RUNTIME"] == count(connection, RUNTIME)
    assert kinds["CPU_OP"] + kinds["ANNOTATION"] == count(connection, "NVTX_EVENTS")

    work = [
        row
        for table in (KERNEL, MEMCPY, MEMSET)
        for row in sql(connection, f'SELECT deviceId, start, "end" FROM {table}')
    ]
    of_device = {
        track.device.index: [
            i for i, other in enumerate(trace.tracks) if other.device == track.device
        ]
        for track in trace.tracks
        if track.device is not None
    }
    is_work = np.isin(slices.kind, DEVICE_WORK)
    assert sorted({device for device, *_ in work}) == sorted(of_device)
    for device, tracks in of_device.items():
        mine = is_work & np.isin(slices.track, tracks)
        expected = [(start, end) for owner, start, end in work if owner == device]
        assert int(slices.dur_ns[mine].sum()) == sum(end - start for start, end in expected)
        busy = Intervals.union_of(slices.start_ns[mine], slices.end_ns[mine])
        assert busy.total == union_ns(expected)

    linked = sum(
        n
        for table in (KERNEL, MEMCPY, MEMSET)
        for (n,) in sql(
            connection,
            f"SELECT count(*) FROM {table} k WHERE EXISTS (SELECT 1 FROM {RUNTIME} r WHERE "
            "r.correlationId = k.correlationId AND r.globalTid / 0x1000000 = "
            + ("k.globalPid / 0x1000000)" if not name.startswith("healthy") else "0)"),
        )
    )
    assert int(trace.launches.has_launch.sum()) == linked
    by_name = Counter(names(trace, SliceKind.KERNEL) + names(trace, SliceKind.COLLECTIVE))
    assert by_name == dict(
        sql(
            connection,
            f"SELECT value, count(*) FROM {KERNEL} JOIN StringIds ON id = demangledName "
            "GROUP BY demangledName",
        )
    )
    connection.close()
