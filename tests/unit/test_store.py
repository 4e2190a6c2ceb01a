"""The store: what the builder writes is what the reader hands out."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from trnscope.errors import TraceFormatError
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.store import schema
from trnscope.store.builder import TraceBuilder
from trnscope.store.reader import Trace
from trnscope.store.schema import META_FILE, SCHEMA_VERSION
from trnscope.store.strings import EncodedStrings, Strings


def names(trace, ids):
    return trace.strings.take(trace.slices.name[ids])


def test_slices_come_back_in_lane_order_with_their_parents(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "child", 10, 20)
    b.slice(cpu, "parent", 0, 100)
    b.slice(cpu, "grandchild", 12, 5, SliceKind.PYTHON)
    b.slice(cpu, "second child", 40, 30)
    trace = b.build()
    s = trace.slices
    assert trace.strings.take(s.name) == ["parent", "child", "second child", "grandchild"]
    assert s.depth.tolist() == [0, 1, 1, 2]
    assert s.parent.tolist() == [0, 0, 0, 1]
    assert s.self_ns.tolist() == [50, 15, 30, 5]
    assert s.op_self_ns.tolist() == [50, 20, 30, 5]
    assert trace.lanes.count.tolist() == [1, 2, 1]


def test_a_slice_that_outlives_an_open_one_becomes_its_sibling_on_a_free_lane(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "root", 0, 100)
    b.slice(cpu, "crossed", 10, 30)  # [10, 40)
    b.slice(cpu, "crossing", 20, 40)  # [20, 60): outlives "crossed"
    b.slice(cpu, "inside both", 30, 5)  # [30, 35): "crossed" is closed already
    trace = b.build()
    s = trace.slices
    by_name = {trace.strings[int(n)]: i for i, n in enumerate(s.name)}
    assert s.parent[by_name["crossing"]] == by_name["root"]
    assert s.parent[by_name["inside both"]] == by_name["crossing"]
    assert s.depth[by_name["crossed"]] == 1
    assert s.depth[by_name["crossing"]] == 2
    # The overlap [20, 40) is booked once, to the slice that started first; the child of
    # "crossing" lies in it and so gets nothing.
    self_ns = {name: int(s.self_ns[i]) for name, i in by_name.items()}
    assert self_ns == {"root": 50, "crossed": 30, "crossing": 20, "inside both": 0}
    assert sum(self_ns.values()) == 100
    op_self = {name: int(s.op_self_ns[i]) for name, i in by_name.items()}
    assert op_self == {"root": 50, "crossed": 30, "crossing": 35, "inside both": 5}


def test_launches_follow_correlation_then_flow_then_external_id(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "aten::mm", 0, 40, external_id=9)
    b.slice(cpu, "cudaLaunchKernel", 5, 5, SliceKind.RUNTIME, correlation=2**53 + 1)
    b.slice(cpu, "cudaLaunchKernel", 12, 5, SliceKind.RUNTIME)
    b.slice(gpu, "by correlation", 50, 10, SliceKind.KERNEL, correlation=2**53 + 1)
    b.slice(gpu, "by flow", 60, 10, SliceKind.KERNEL)
    b.slice(gpu, "by external id", 70, 10, SliceKind.KERNEL, external_id=9)
    b.slice(gpu, "unlinked", 80, 10, SliceKind.KERNEL, correlation=2**53)
    b.flow(1, "ac2g", out=(cpu, 12), into=(gpu, 60))
    trace = b.build()
    links = trace.launches
    assert names(trace, links.device_slice) == [
        "by correlation",
        "by flow",
        "by external id",
        "unlinked",
    ]
    assert links.has_launch.tolist() == [True, True, False, False]
    assert trace.slices.start_ns[links.launch_slice[:2]].tolist() == [5, 12]
    assert links.has_op.tolist() == [True, True, True, False]
    assert names(trace, links.op_slice[links.has_op]) == ["aten::mm"] * 3


def test_work_without_correlation_is_linked_to_the_call_with_its_external_id(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu, core = b.thread(), b.stream(kind=DeviceKind.NEURON)
    b.slice(cpu, "aten::mm", 0, 40, external_id=9)
    b.slice(cpu, "dispatch", 5, 5, SliceKind.RUNTIME, external_id=9)
    b.slice(core, "mm", 50, 10, SliceKind.KERNEL, external_id=9)
    b.slice(core, "launched earlier", 60, 10, SliceKind.KERNEL, external_id=9, correlation=3)
    links = b.build().launches
    assert links.has_launch.tolist() == [True, False]
    assert links.launch_slice[0] == 1
    assert links.has_op.tolist() == [True, True]


def test_one_flow_start_reaches_many_ends_and_late_starts_still_count(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu, gpu = b.thread(), b.stream()
    b.slice(cpu, "graphLaunch", 10, 5, SliceKind.RUNTIME)
    for i in range(3):
        b.slice(gpu, f"k{i}", 20 + 10 * i, 10, SliceKind.KERNEL)
        b.flow(7, "ac2g", out=(cpu, 10), into=(gpu, 20 + 10 * i))
    b.slice(gpu, "before its launch", 0, 5, SliceKind.KERNEL)
    b.flow(7, "ac2g", out=(cpu, 10), into=(gpu, 0))
    trace = b.build()
    assert set(names(trace, trace.flows.slice_out)) == {"graphLaunch"}
    assert sorted(names(trace, trace.flows.slice_in)) == ["before its launch", "k0", "k1", "k2"]


def test_attributes_keep_every_digit_and_the_last_value(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "late", 50, 1, comms_id=13835058055282163713, input_dims="[[2, 3]]")
    b.slice(cpu, "early", 0, 1, comms_id=13835058055282163714)
    trace = b.build()
    comms = trace.attribute("comms_id")
    assert names(trace, comms.slices) == ["early", "late"]
    assert comms.values.tolist() == [13835058055282163714, 13835058055282163713]
    dims = trace.attribute("input_dims")
    has, text = dims.of(np.array([0, 1], np.uint32))
    assert has.tolist() == [False, True]
    assert trace.strings[int(text[1])] == "[[2, 3]]"
    assert trace.attribute("correlation") is None
    with pytest.raises(KeyError):
        trace.attribute("no such attribute")


def test_every_table_is_an_arrow_stream_that_arrow_itself_reads(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for i in range(1000):
        b.slice(cpu, "x", 10 * i, 7, correlation=i)
    trace = b.build()
    table = pa.ipc.open_stream(pa.memory_map(str(tmp_path / "t" / "slices.arrow"))).read_all()
    table.validate(full=True)
    assert table.num_rows == 1000
    assert table["start_ns"].to_pylist() == [10 * i for i in range(1000)]
    assert table["dur_ns"].to_numpy().sum() == 7000
    assert table.schema.names == list(trace.table("slices"))


def test_an_empty_trace_is_a_trace(tmp_path):
    trace = TraceBuilder(tmp_path / "t").build()
    assert len(trace.slices) == 0
    assert len(trace.launches.device_slice) == 0
    assert trace.tracks == ()


def test_memory_events_find_the_op_around_them(tmp_path):
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    b.slice(cpu, "aten::empty", 0, 10)
    b.slice(cpu, "frame", 2, 5, SliceKind.PYTHON)
    b.memory(cpu, 20, 1, -64)
    b.memory(cpu, 3, 1, 64, total_allocated=64, total_reserved=128)
    memory = b.build().memory
    assert memory.ts_ns.tolist() == [3, 20]
    assert memory.has_op.tolist() == [True, False]
    assert memory.op_slice[0] == 0
    assert memory.has_total.tolist() == [True, False]


def test_a_newer_store_is_refused_by_name(tmp_path):
    TraceBuilder(tmp_path / "t").build()
    meta = tmp_path / "t" / META_FILE
    document = json.loads(meta.read_text())
    document["schema"] = SCHEMA_VERSION + 1
    meta.write_text(json.dumps(document))
    with pytest.raises(TraceFormatError, match="newer trnscope"):
        Trace(tmp_path / "t")


def test_an_older_store_is_migrated(tmp_path, monkeypatch):
    b = TraceBuilder(tmp_path / "t")
    b.slice(b.thread(), "x", 0, 5)
    b.build()

    def to_version_2(document):
        source = {**document["source"], "format": "renamed"}
        return {**document, "schema": 2, "source": source}

    monkeypatch.setattr(schema, "SCHEMA_VERSION", 2)
    monkeypatch.setitem(schema._MIGRATIONS, SCHEMA_VERSION, to_version_2)
    trace = Trace(tmp_path / "t")
    assert trace.source.format == "renamed"
    assert trace.slices.dur_ns.tolist() == [5]


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    (tmp_path / META_FILE).write_text("{}")
    with pytest.raises(TraceFormatError, match="no trnscope store"):
        Trace(tmp_path)


def test_strings_are_taken_by_ids_of_any_type() -> None:
    encoded = EncodedStrings.of(["first", "", "µs"])
    strings = Strings(encoded.ends, encoded.data)
    for dtype in (np.uint32, np.int64):
        assert strings.take(np.array([2, 0, 1, 0], dtype)) == ["µs", "first", "", "first"]
    assert strings.take(i for i in (1, 2)) == ["", "µs"]
    assert strings.take([]) == []
    for wrong in ([3], [-1]):
        with pytest.raises(IndexError):
            strings.take(wrong)


def test_words_are_found_in_any_case() -> None:
    texts = ["ProfilerStep#3", "", "a step", "ste", "BATCH 7", "µ-Iter", "pst-ep", "optimizer"]
    encoded = EncodedStrings.of(texts)
    strings = Strings(encoded.ends, encoded.data)
    among = np.ones(len(texts), np.uint8)
    words = ("Step", "iter", "batch")
    found = strings.with_words(words, among)
    assert found.tolist() == [any(word.lower() in text.lower() for word in words) for text in texts]
    among[2] = 0
    assert strings.with_words(words, among).tolist() == [1, 0, 0, 0, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="empty word"):
        strings.with_words([""], among)
