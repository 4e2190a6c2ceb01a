"""Exports come back equal: Chrome JSON through the reader, Parquet and CSV through their own."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import stat
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.unit.chrome_json import complete, kernel, open_path, write
from trnscope.errors import TraceFormatError, UsageError
from trnscope.ingest.nsys import read_nsys
from trnscope.model.health import Health
from trnscope.model.kinds import DEVICE_WORK, DeviceKind, SliceKind, TrackKind
from trnscope.model.track import Track
from trnscope.report.chrome_json import ARG_NAMES, innermost_times, microseconds
from trnscope.report.export import (
    PARQUET_VIEWS,
    export_chrome_json,
    export_csv,
    export_parquet,
    write_csv,
)
from trnscope.report.output_file import whole_file
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.sql import QueryResult, connect
from trnscope.store.writer import TraceWriter

# What a trace says, whatever the order of its tracks -----------------------------------------


def track_key(track: Track) -> tuple[Any, ...]:
    device = None if track.device is None else (track.device.label, track.device.name)
    return (
        track.kind.name,
        track.process,
        track.thread,
        track.process_name,
        track.thread_name,
        track.sort_index,
        device,
        track.stream,
    )


def slice_texts(trace: Trace) -> list[str]:
    """One text a slice that says all but its links."""
    s = trace.slices
    return [
        repr(
            (
                track_key(trace.tracks[s.track[i]]),
                SliceKind(s.kind[i]).name,
                trace.categories[s.category[i]],
                trace.strings[s.name[i]],
                int(s.start_ns[i]),
                int(s.dur_ns[i]),
                int(s.self_ns[i]),
                int(s.op_self_ns[i]),
                int(s.depth[i]),
                trace.args(i),
            )
        )
        for i in range(len(s))
    ]


def described(trace: Trace) -> dict[str, Counter[Any]]:
    """Everything in a trace, as counted texts."""
    texts = slice_texts(trace)
    take = trace.strings.take
    s, m = trace.slices, trace.memory
    parts: dict[str, Any] = {
        "slices": texts,
        "parents": zip(texts, (texts[p] for p in s.parent), strict=True),
        "flows": [
            (kind, texts[out], texts[into])
            for kind, out, into in zip(
                take(trace.flows.kind), trace.flows.slice_out, trace.flows.slice_in, strict=True
            )
        ],
        "launches": [
            (texts[d], texts[la] if has_launch else None, texts[op] if has_op else None)
            for d, has_launch, la, has_op, op in zip(
                trace.launches.device_slice,
                trace.launches.has_launch,
                trace.launches.launch_slice,
                trace.launches.has_op,
                trace.launches.op_slice,
                strict=True,
            )
        ],
        "instants": zip(
            trace.instants.ts_ns.tolist(),
            (track_key(trace.tracks[t]) for t in trace.instants.track),
            take(trace.instants.name),
            (trace.categories[c] for c in trace.instants.category),
            (
                repr(trace.args_at(int(offset), int(length)))
                for offset, length in zip(
                    trace.instants.args_offset, trace.instants.args_length, strict=True
                )
            ),
            strict=True,
        ),
        "memory": zip(
            m.ts_ns.tolist(),
            m.address.tolist(),
            m.size_bytes.tolist(),
            m.device_type.tolist(),
            m.device_index.tolist(),
            m.has_total.tolist(),
            m.total_allocated_bytes.tolist(),
            m.total_reserved_bytes.tolist(),
            strict=True,
        ),
        "counters": [
            (trace.tracks[one.track].process, one.name, one.key, ts, value)
            for one, ts, value in zip(
                (trace.counter_series[i] for i in trace.counters.series),
                trace.counters.ts_ns.tolist(),
                trace.counters.value.tolist(),
                strict=True,
            )
        ],
        "unfinished": zip(
            trace.unfinished.start_ns.tolist(),
            (track_key(trace.tracks[t]) for t in trace.unfinished.track),
            take(trace.unfinished.name),
            (trace.categories[c] for c in trace.unfinished.category),
            strict=True,
        ),
    }
    for key, kind in ATTRIBUTES.items():
        attribute = trace.attribute(key)
        if attribute is not None:
            values = take(attribute.values) if kind is AttributeType.TEXT else attribute.values
            parts[key] = [(texts[i], str(v)) for i, v in zip(attribute.slices, values, strict=True)]
    return {name: Counter(rows) for name, rows in parts.items()}


def round_trip(trace: Trace, tmp_path: Path, name: str = "out.json") -> Trace:
    folder = tmp_path / "export"
    folder.mkdir(exist_ok=True)
    export_chrome_json(Profile((trace,)), folder / name)
    return open_path(folder / name)


def assert_same(a: Trace, b: Trace) -> None:
    left, right = described(a), described(b)
    assert left.keys() == right.keys()
    for part in left:
        assert left[part] == right[part], part


# Chrome JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0.000"), (1, "0.001"), (1500, "1.500"), (-1, "-0.001"), (-2500, "-2.500")],
)
def test_times_are_decimal_and_exact(ns: int, text: str) -> None:
    assert microseconds(ns) == text


def every_kind_of_event() -> list[dict[str, Any]]:
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": 'main "thread"'}},
        {"ph": "M", "name": "thread_sort_index", "pid": 1, "tid": 1, "args": {"sort_index": 4}},
        complete("step", "user_annotation", 10, 100),
        complete("aten::mm", "cpu_op", 10, 60.001, args={"External id": 3, "Input Dims": [[2, 3]]}),
        complete("cudaLaunchKernel", "cuda_runtime", 10, 5, args={"correlation": 2**53 + 1}),
        complete("zero", "cpu_op", 10, 0),
        complete(
            "crosses", "cpu_op", 65, 30, args={"text": "a\tb\\c \u00fc \ud83d\ude00", "n": 1.50}
        ),
        kernel("gemm", 40, 20, correlation=2**53 + 1, grid=[1, 2, 3], **{"Comms Id": 2**63 + 1}),
        complete("Spans row", "Trace", 0.5, 200, pid="Spans", tid="PyTorch Profiler"),
        {"ph": "s", "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 12},
        {
            "ph": "f",
            "id": 9,
            "cat": "ac2g",
            "name": "ac2g",
            "pid": 0,
            "tid": 7,
            "ts": 40,
            "bp": "e",
        },
        {"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": 15},
        {"ph": "f", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": 90},
        {
            "ph": "i",
            "name": "mark",
            "cat": "m",
            "pid": 1,
            "tid": 1,
            "ts": 33.125,
            "args": {"x": [1]},
        },
        {"ph": "i", "name": "end", "pid": "", "tid": "", "ts": 999},
        {
            "ph": "i",
            "name": "[memory]",
            "cat": "cpu_instant_event",
            "pid": 1,
            "tid": 1,
            "ts": 20,
            "args": {
                "Addr": 2**63 + 5,
                "Bytes": -400,
                "Device Type": 1,
                "Device Id": 0,
                "Total Allocated": 7,
                "Total Reserved": 9,
            },
        },
        {"ph": "C", "name": "load", "pid": "GPU 0 Counters", "ts": 5, "args": {"a": 1.5, "": 2}},
        {
            "ph": "b",
            "id": 1,
            "cat": "net",
            "name": "get",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "args": {"u": 1},
        },
        {"ph": "b", "id": 2, "cat": "net", "name": "put", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "e", "id": 1, "cat": "net", "name": "get", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "e", "id": 2, "cat": "net", "name": "put", "pid": 1, "tid": 1, "ts": 7},
        {"ph": "b", "id": 3, "cat": "net", "name": "cut", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "B", "name": "open", "cat": "cpu_op", "pid": 1, "tid": 2, "ts": 44},
    ]


def test_every_kind_of_event_comes_back(tmp_path: Path) -> None:
    header = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU"}],
        "distributedInfo": {"rank": 3, "world_size": 8},
        "baseTimeNanoseconds": 1_735_632_360_000_000_123,
        "with_stack": 1,
    }
    trace = open_path(write(tmp_path / "in.json", every_kind_of_event(), **header))
    assert len(trace.flows.kind) == 2
    back = round_trip(trace, tmp_path)
    assert_same(trace, back)
    assert (back.source.rank, back.source.world_size, back.source.format) == (3, 8, "kineto")
    assert back.source.base_time_ns == 1_735_632_360_000_000_123
    metadata = dict(back.source.metadata)
    export = json.loads(metadata.pop("trnscopeExport"))
    assert export["complete"] == trace.health.complete
    assert {k: json.loads(v) for k, v in metadata.items()} == {
        k: json.loads(v) for k, v in trace.source.metadata.items()
    }


def test_the_document_is_valid_json_and_times_are_texts_with_three_places(tmp_path: Path) -> None:
    trace = open_path(write(tmp_path / "in.json", every_kind_of_event()))
    (written,) = export_chrome_json(Profile((trace,)), tmp_path / "out.json")
    text = written.path.read_text(encoding="utf-8")
    document = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert len(document["traceEvents"]) == written.num_rows
    assert written.size_bytes == len(text.encode())
    (mm,) = (e for e in document["traceEvents"] if e["name"] == "aten::mm")
    assert mm["pid"] == 1
    assert '"dur":60.001' in text
    assert '"correlation": 9007199254740993' in text


def test_exporting_twice_is_the_same(tmp_path: Path) -> None:
    first = open_path(write(tmp_path / "in.json", every_kind_of_event()))
    assert_same(first, round_trip(round_trip(first, tmp_path, "1.json"), tmp_path, "2.json"))


def test_compressed_in_and_out(tmp_path: Path) -> None:
    plain = write(tmp_path / "in.json", every_kind_of_event())
    packed = tmp_path / "in.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    trace = open_path(packed)
    back = round_trip(trace, tmp_path, "out.json.gz")
    assert (tmp_path / "export/out.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert_same(trace, back)
    assert_same(open_path(plain), back)


def test_a_flow_finds_its_slice_past_children_that_start_with_it(tmp_path: Path) -> None:
    events = [
        complete("outer", "cpu_op", 0, 100),
        complete("first", "cpu_op", 0, 10),
        complete("point", "cpu_op", 10, 0),
        complete("second", "cpu_op", 10, 20),
        complete("target", "cpu_op", 200, 5),
        {"ph": "s", "id": 1, "cat": "k", "name": "k", "pid": 1, "tid": 1, "ts": 50},
        {"ph": "f", "id": 1, "cat": "k", "name": "k", "pid": 1, "tid": 1, "ts": 201},
    ]
    trace = open_path(write(tmp_path / "in.json", events))
    names = trace.strings.take(trace.slices.name)
    assert names[trace.flows.slice_out[0]] == "outer"
    assert_same(trace, round_trip(trace, tmp_path))


def test_innermost_times() -> None:
    # 0: [0, 100) holds 1: [0, 10), 2: [10, 10], 3: [10, 30), 4: [40, 50); 5: [200, 210) is full.
    start = np.array([0, 0, 10, 10, 40, 200, 200], np.int64)
    end = np.array([100, 10, 10, 30, 50, 210, 210], np.int64)
    parent = np.array([0, 0, 0, 0, 0, 5, 5], np.uint32)
    asked = np.array([0, 1, 4, 5, 0], np.uint32)
    assert innermost_times(start, end, parent, asked).tolist() == [30, 0, 40, 200, 30]


def test_attributes_stand_in_for_args_that_a_format_has_not(tmp_path: Path) -> None:
    assert ARG_NAMES.keys() == ATTRIBUTES.keys()
    b = TraceBuilder(tmp_path / "t", format="nsys")
    texts = {"input_dims": "[[2, 3], []]", "process_group_ranks": "[0, 1]", "dtype": "BFloat16"}
    numbers = {key: i for i, key in enumerate(ATTRIBUTES, 5) if key not in texts}
    values: dict[str, Any] = {
        key: f"text {i}" if ATTRIBUTES[key] is AttributeType.TEXT else i
        for key, i in numbers.items()
    }
    values |= {**texts, "comms_id": 2**64 - 1, "device": 0, "stream": 7}
    b.slice(b.stream(), "ncclKernel", 10, 5, SliceKind.COLLECTIVE, **values)
    back = round_trip(b.build(), tmp_path)
    for key, kind in ATTRIBUTES.items():
        attribute = back.attribute(key)
        assert attribute is not None, key
        (value,) = attribute.values
        assert (back.strings[value] if kind is AttributeType.TEXT else int(value)) == values[key]


@pytest.mark.parametrize(
    "name", ["with_kernels_no_nvtx", "nvtx_textid", "cpu_only", "h100_2gpu_1s", "mfu_2gpu_after"]
)
def test_nsight_exports_become_chrome_traces(shared: Path, tmp_path: Path, name: str) -> None:
    found = [*shared.glob(f"cases/38/{name}.sqlite"), *shared.glob(f"formats/nsys/{name}.sqlite")]
    found += shared.glob(f"traces/nsys-ai/tests/fixtures/{name}.sqlite")
    read_nsys(found[0], TraceWriter(tmp_path / "store"))
    trace = Trace(tmp_path / "store")
    back = round_trip(trace, tmp_path)

    def facts(t: Trace) -> Counter[Any]:
        s = t.slices
        return Counter(
            zip(
                s.kind.tolist(),
                t.strings.take(s.name),
                s.start_ns.tolist(),
                s.dur_ns.tolist(),
                s.self_ns.tolist(),
                (t.tracks[i].device and t.tracks[i].device.label for i in s.track),
                (t.tracks[i].stream for i in s.track),
                strict=True,
            )
        )

    assert facts(trace) == facts(back)
    assert int(trace.launches.has_launch.sum()) == int(back.launches.has_launch.sum())
    assert int(trace.launches.has_op.sum()) == int(back.launches.has_op.sum())
    assert trace.source.base_time_ns == back.source.base_time_ns
    assert back.slices.of_kind(*DEVICE_WORK).size == trace.slices.of_kind(*DEVICE_WORK).size


SAMPLES = (
    "cases/07/unfinished.json",
    "cases/16/begin_end.json",
    "cases/18/counters.json",
    "cases/20/ties.json",
    "cases/21/autograd_thread.json",
    "cases/32/bigint.json",
    "cases/34/*.json",
    "traces/catapult/tracing/test_data/*.json",
    "traces/viztracer/tests/data/*.json",
    "traces/HTA/tests/data/amd_trace/*.json.gz",
    "traces/HTA/tests/data/critical_path/cuda_event_sync_multi_stream/*.json.gz",
    "traces/TraceLens/tests/traces/torch_compile_triton/trace.json.gz",
    "traces/TraceLens/tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz",
)


@pytest.mark.parametrize("pattern", SAMPLES)
def test_real_traces_come_back(shared: Path, tmp_path: Path, pattern: str) -> None:
    paths = [p for p in sorted(shared.glob(pattern)) if p.name != "expected.json"]
    assert paths
    for number, path in enumerate(paths):
        inside = tmp_path / f"{number}{''.join(path.suffixes[-2:])}"
        inside.write_bytes(path.read_bytes())
        try:
            trace = open_path(inside)
        except TraceFormatError:
            continue
        assert_same(trace, round_trip(trace, tmp_path, f"{number}.json"))


def test_damage_is_repaired_and_stated(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    event = '{"ph":"X","cat":"cpu_op","name":"%s","pid":1,"tid":1,"ts":%d,"dur":5,"args":%s}'
    events = [
        event % ("nan", 0, '{"loss": NaN, "n": 1}'),
        event % ("tab", 10, '{"s": "a\tb"}'),
        event % ("fine", 20, '{"big": 18446744073709551615, "f": 1.10}'),
    ]
    path.write_text('{"traceEvents": [' + ",\n".join(events) + "]}")
    trace = open_path(path)
    back = round_trip(trace, tmp_path)
    text = (tmp_path / "export/out.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert '"args":{"loss": null, "n": 1}' in text
    assert '"args":{"s": "a\\tb"}' in text
    assert '"args":{"big": 18446744073709551615, "f": 1.10}' in text
    assert len(back.slices) == 3


def test_an_incomplete_source_is_marked(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "a", 0, 5)
    trace = b.build(Health(False, 1, 0, 2))
    export_chrome_json(Profile((trace,)), tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["trnscopeExport"] == {
        "source_format": "kineto",
        "complete": False,
        "num_events_unreadable": 2,
        "simulated": False,
    }
    again = open_path(tmp_path / "out.json").health
    assert not again.complete
    assert [warning.code for warning in again.warnings] == ["partial-export"]


def test_a_simulated_device_stays_simulated(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t", format="sim")
    gpu = b.stream(kind=DeviceKind.NEURON, name="NC v3", simulated=True)
    b.slice(gpu, "k", 0, 5, SliceKind.KERNEL, device=0)
    back = round_trip(b.build(), tmp_path)
    (device,) = {track.device for track in back.tracks if track.device}
    assert (device.label, device.name, device.simulated) == ("neuron:0", "NC v3", True)
    assert back.source.simulated


def test_a_counter_track_with_an_order(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    track = b.track(Track(TrackKind.COUNTER, "GPU 1", "", sort_index=9))
    b.counter(track, "clock", "MHz", 5, 0.1)
    b.slice(b.thread(), "a", 0, 5)
    back = round_trip(b.build(), tmp_path)
    (series,) = back.counter_series
    assert (series.name, series.key, back.counters.value.tolist()) == ("clock", "MHz", [0.1])
    assert (back.tracks[series.track].process, back.tracks[series.track].sort_index) == ("GPU 1", 9)


# Files ---------------------------------------------------------------------------------------


def two_ranks(tmp_path: Path) -> Profile:
    traces = []
    for rank in (0, 1):
        b = TraceBuilder(tmp_path / f"t{rank}", rank=rank)
        b.slice(b.thread(), f"op of {rank}", 0, 5)
        traces.append(b.build())
    return Profile(tuple(traces))


def test_ranks_become_a_file_each(tmp_path: Path) -> None:
    written = export_chrome_json(two_ranks(tmp_path), tmp_path / "out")
    assert [file.path.name for file in written] == ["rank0.json", "rank1.json"]
    assert [open_path(file.path).source.rank for file in written] == [0, 1]
    with pytest.raises(UsageError, match="exists already"):
        export_chrome_json(two_ranks(tmp_path / "again"), tmp_path / "out")


def one_op(tmp_path: Path) -> Profile:
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "=op", 0, 5, external_id=2**64 - 1)
    return Profile((b.build(),))


def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    profile, target = one_op(tmp_path), tmp_path / "out.json"
    target.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        export_chrome_json(profile, target)
    with pytest.raises(UsageError, match="exists already"):
        export_csv(QueryResult(("a",), ("INTEGER",), [(1,)]), target)
    assert target.read_text() == "mine"
    export_chrome_json(profile, target, overwrite=True)
    assert json.loads(target.read_text())["traceEvents"]
    with pytest.raises(UsageError, match="is a directory"):
        export_chrome_json(profile, tmp_path, overwrite=True)


def test_a_trace_never_replaces_itself(tmp_path: Path) -> None:
    path = tmp_path / "in.json"
    path.write_text('{"traceEvents": [{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5}]}')
    before = path.read_bytes()
    profile = Profile((open_path(path),))
    with pytest.raises(UsageError, match="is the trace that is read"):
        export_chrome_json(profile, tmp_path / "." / "in.json", overwrite=True)
    assert path.read_bytes() == before


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profile, folder = one_op(tmp_path), tmp_path / "out"
    folder.mkdir()

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trnscope.report.chrome_json.microseconds", fails)
    with pytest.raises(OSError, match="No space left"):
        export_chrome_json(profile, folder / "out.json")
    monkeypatch.setattr("trnscope.report.export._write_parquet", fails)
    with pytest.raises(OSError, match="No space left"):
        export_parquet(profile, folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_file_has_the_permissions_of_any_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        # Even for a moment, another umask would be that of every thread.
        monkeypatch.delattr(os, "umask")
        path = tmp_path / ("long" * 60 + ".json")
        with whole_file(path, overwrite=False) as part:
            part.write_text("{}")
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_os_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        export_chrome_json(one_op(tmp_path), tmp_path / "no/out.json")


# Parquet -------------------------------------------------------------------------------------


def test_parquet_holds_what_the_views_hold(tmp_path: Path) -> None:
    profile = Profile((open_path(write(tmp_path / "in.json", every_kind_of_event())),))
    written = export_parquet(profile, tmp_path / "tables")
    assert [file.path.stem for file in written] == list(PARQUET_VIEWS)
    with connect(profile) as session:
        for file in written:
            expected = session.query(f"SELECT * FROM {file.path.stem}")
            table = pq.read_table(file.path)
            assert tuple(table.column_names) == expected.columns
            assert [tuple(row.values()) for row in table.to_pylist()] == expected.rows
            assert file.num_rows == len(expected.rows)
            metadata = pq.read_metadata(file.path)
            if metadata.num_row_groups:
                assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_parquet_keeps_64_bits(tmp_path: Path) -> None:
    export_parquet(one_op(tmp_path), tmp_path / "tables")
    ops = pq.read_table(tmp_path / "tables/ops.parquet").to_pylist()
    assert [op["external_id"] for op in ops] == [2**64 - 1]
    attributes = pq.read_table(tmp_path / "tables/attributes.parquet").to_pylist()
    assert [int(row["int_value"]) for row in attributes] == [2**64 - 1]


def test_parquet_leaves_other_files_alone(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    profile = one_op(tmp_path)
    export_parquet(profile, folder)
    with pytest.raises(UsageError, match="exists already"):
        export_parquet(profile, folder)
    export_parquet(profile, folder, overwrite=True)
    assert {path.name for path in folder.iterdir()} == {
        "notes.txt",
        *(f"{view}.parquet" for view in PARQUET_VIEWS),
    }
    with pytest.raises(UsageError, match="is a file"):
        export_parquet(profile, folder / "notes.txt")


# CSV -----------------------------------------------------------------------------------------


def as_csv(rows: list[tuple[Any, ...]], **options: Any) -> str:
    file = io.StringIO()
    write_csv(QueryResult(("a", "b"), ("VARCHAR", "VARCHAR"), rows), file, **options)
    return file.getvalue()


def test_csv_quotes_what_needs_it() -> None:
    rows = [('say "hi", you', "two\nlines"), (None, ""), (1.5, 2**64 - 1), (True, Decimal("2.50"))]
    text = as_csv(rows)
    assert text == ('a,b\n"say ""hi"", you","two\nlines"\n,\n1.5,18446744073709551615\ntrue,2.50\n')
    assert list(csv.reader(io.StringIO(text)))[1] == ['say "hi", you', "two\nlines"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_csv_texts_are_no_formulas(start: str) -> None:
    text = f"{start}cmd|' /C calc'!A0"
    cell = next(csv.reader(io.StringIO(as_csv([(text, -5)]).split("a,b\n")[1], newline="")))
    assert cell == [f"'{text}", "-5"]
    plain = next(
        csv.reader(
            io.StringIO(as_csv([(text, -5)], spreadsheet_safe=False).split("a,b\n")[1], newline="")
        )
    )
    assert plain == [text, "-5"]


def test_csv_of_one_column_has_a_line_for_null() -> None:
    file = io.StringIO()
    write_csv(QueryResult(("a",), ("VARCHAR",), [(None,), ("x",)]), file)
    assert file.getvalue() == 'a\n""\nx\n'


def test_csv_lists_and_bytes() -> None:
    assert as_csv([([1, "x"], b"\xff")]) == 'a,b\n"[1, ""x""]",ff\n'


def test_csv_file(tmp_path: Path) -> None:
    with connect(one_op(tmp_path)) as session:
        result = session.query("SELECT name, dur_ns, external_id FROM ops")
    file = export_csv(result, tmp_path / "out.csv")
    assert file.path.read_text() == "name,dur_ns,external_id\n'=op,5,18446744073709551615\n"
    assert file.num_rows == 1
    assert file.to_json() == {
        "path": str(tmp_path / "out.csv"),
        "size_bytes": 52,
        "num_rows": 1,
        "num_args_left_out": 0,
    }
