"""Chrome events of every phase become slices, points, flows, names and warnings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.chrome_json import (
    attribute,
    complete,
    kernel,
    kinds,
    named,
    open_events,
    open_path,
    times,
    warnings,
    write,
)
from trnscope.analysis.ops import ops
from trnscope.errors import TraceFormatError
from trnscope.ingest import open_trace
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


def flows(trace: Trace) -> list[tuple[str, str, str]]:
    names = trace.strings.take(trace.slices.name)
    return sorted(
        (trace.strings[kind], names[out], names[into])
        for kind, out, into in zip(
            trace.flows.kind, trace.flows.slice_out, trace.flows.slice_in, strict=True
        )
    )


def test_times_are_exact_and_the_base_is_added_wherever_it_stands(tmp_path: Path) -> None:
    events = [complete("a", "cpu_op", 4203669604595.407, 0.001), complete("b", "cpu_op", 5, 2.5)]
    text = json.dumps({"traceEvents": events, "baseTimeNanoseconds": 1735632360000000000})
    path = tmp_path / "t.json"
    path.write_text(text)
    trace = open_path(path)
    assert times(trace) == {
        "a": (1735632360000000000 + 4203669604595407, 1),
        "b": (1735632360000000000 + 5000, 2500),
    }
    assert trace.source.base_time_ns == 1735632360000000000
    assert trace.source.epoch


def test_the_base_moves_every_kind_of_event(tmp_path: Path) -> None:
    base = 1_000_000_000
    events: list[dict[str, Any]] = [
        complete("a", "cpu_op", 1, 10),
        complete("open", "cpu_op", 2, -1),
        {"ph": "i", "name": "mark", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "C", "name": "load", "pid": 1, "ts": 4, "args": {"x": 1.5}},
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 5, "args": {"Bytes": 8}},
    ]
    trace = open_events(tmp_path, events, baseTimeNanoseconds=base)
    assert times(trace) == {"a": (base + 1000, 10_000)}
    assert trace.unfinished.start_ns.tolist() == [base + 2000]
    assert trace.instants.ts_ns.tolist() == [base + 3000]
    assert trace.counters.ts_ns.tolist() == [base + 4000]
    assert trace.memory.ts_ns.tolist() == [base + 5000]


@pytest.mark.parametrize("base", [-5, 1 << 63, "x", None, 1.5])
def test_a_base_that_is_no_time_is_ignored_and_named(tmp_path: Path, base: Any) -> None:
    trace = open_events(tmp_path, [complete("a", "cpu_op", 1, 2)], baseTimeNanoseconds=base)
    assert times(trace) == {"a": (1000, 2000)}
    assert warnings(trace) == {"invalid-base-time": 1}


def test_text_times_of_a_bare_list_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace_view.json"
    path.write_text(json.dumps([complete("a", "cpu_op", "1700000000000000.123", "2.5")]))
    trace = open_path(path)
    assert times(trace) == {"a": (1700000000000000123, 2500)}
    assert trace.source.epoch


def test_begin_and_end_nest_and_the_newest_begin_is_closed(tmp_path: Path) -> None:
    def event(phase: str, ts: float, name: str | None = None, **args: Any) -> dict[str, Any]:
        named = {} if name is None else {"name": name}
        return {"ph": phase, "pid": "p", "tid": 1, "ts": ts, "args": args, **named}

    events = [
        event("B", 0, "outer", **{"External id": 7}),
        event("B", 10, "inner"),
        event("E", 40, result=1),
        event("E", 100),
        event("E", 105),
        event("B", 110, "open"),
    ]
    trace = open_events(tmp_path, events)
    assert times(trace) == {"outer": (0, 100_000), "inner": (10_000, 30_000)}
    assert attribute(trace, "external_id") == {"outer": 7}
    assert trace.strings.take(trace.unfinished.name) == ["open"]
    assert warnings(trace) == {"end-without-begin": 1, "begin-without-end": 1}
    assert not trace.health.complete
    messages = {w.code: w.message for w in trace.health.warnings}
    assert messages["begin-without-end"].startswith(
        '1 begin event (ph B) never ended: "open" at 110 µs, line 1, column '
    )


def test_async_events_are_paired_by_category_name_and_id(tmp_path: Path) -> None:
    def event(phase: str, name: str, id_: Any, ts: int, tid: int = 1) -> dict[str, Any]:
        where = {"pid": 3, "tid": tid, "ts": ts}
        return {"ph": phase, "cat": "net", "name": name, "id": id_, **where}

    events = [
        event("b", "request", "0xa", 0),
        event("b", "request", 11, 5),
        event("n", "half way", 10, 7),
        event("e", "request", 10, 20, tid=2),
        event("e", "request", "0xb", 30),
        event("S", "old", "z", 40),
        event("T", "old", "z", 45),
        event("F", "old", "z", 50),
        event("F", "lonely", "z", 60),
    ]
    trace = open_events(tmp_path, events)
    at = trace.slices
    found = sorted(zip(at.start_ns.tolist(), at.dur_ns.tolist(), strict=True))
    assert found == [(0, 20_000), (5_000, 25_000), (40_000, 10_000)]
    (track,) = {trace.tracks[i] for i in at.track.tolist()}
    assert (track.kind, track.process, track.thread) == (TrackKind.ASYNC, "3", "net")
    assert sorted(trace.instants.ts_ns.tolist()) == [7_000, 45_000]
    assert warnings(trace) == {"async-end-without-begin": 1}


def test_flows_of_any_kind_link_slices_even_when_the_end_comes_first(tmp_path: Path) -> None:
    def flow(phase: str, ts: int, id_: Any, pid: int, tid: Any, cat: str) -> dict[str, Any]:
        return {"ph": phase, "cat": cat, "name": "x", "id": id_, "pid": pid, "tid": tid, "ts": ts}

    events = [
        flow("f", 26, "0x8780d402", 0, 7, "ac2g"),
        kernel("k", 25, 10),
        complete("launch", "cuda_runtime", 10, 5),
        flow("s", 10, 0x8780D402, 1, 1, "ac2g"),
        complete("sink", "other", 100, 10, tid=2),
        complete("mid", "other", 80, 10, tid=2),
        flow("s", 11, "w", 1, 1, "ipc"),
        flow("t", 81, "w", 1, 2, "ipc"),
        flow("f", 101, "w", 1, 2, "ipc"),
        flow("s", 11, "never ends", 1, 1, "ipc"),
    ]
    trace = open_events(tmp_path, events)
    assert flows(trace) == [
        ("ac2g", "launch", "k"),
        ("ipc", "launch", "mid"),
        ("ipc", "mid", "sink"),
    ]


def test_where_a_thread_and_a_stream_share_ids_launches_end_on_the_stream(
    tmp_path: Path,
) -> None:
    frame = complete("frame", "python_function", 0, 1000, pid=0, tid=0)
    end = {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 0, "tid": 0, "ts": 50}
    start = {**end, "ph": "s", "pid": 9, "tid": 9, "ts": 10}
    events = [
        frame,
        complete("call", "cuda_runtime", 10, 5, pid=9, tid=9),
        start,
        complete("work", "kernel", 50, 10, pid=0, tid=0, args={"device": 0, "stream": 0}),
        end,
    ]
    trace = open_events(tmp_path, events)
    assert flows(trace) == [("ac2g", "call", "work")]
    kinds_of_tracks = {track.kind for track in trace.tracks if track.process == "0"}
    assert kinds_of_tracks == {TrackKind.CPU_THREAD, TrackKind.DEVICE_STREAM}


def test_counters_have_a_series_per_process_name_and_member(tmp_path: Path) -> None:
    def sample(ts: int, **values: Any) -> dict[str, Any]:
        return {"ph": "C", "name": "mem", "pid": "gpu", "ts": ts, "args": values}

    events = [
        sample(2, used=3, free=1.5),
        sample(1, used=2, text="no number"),
        complete("a", "cpu_op", 0, 1),
    ]
    trace = open_events(tmp_path, events)
    assert [(s.name, s.key) for s in trace.counter_series] == [("mem", "used"), ("mem", "free")]
    assert trace.tracks[trace.counter_series[0].track].kind is TrackKind.COUNTER
    assert trace.counters.series.tolist() == [0, 0, 1]
    assert trace.counters.ts_ns.tolist() == [1000, 2000, 2000]
    assert trace.counters.value.tolist() == [2.0, 3.0, 1.5]


def test_the_last_metadata_event_wins(tmp_path: Path) -> None:
    def meta(event: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": event, "pid": 1, "tid": tid, "args": args}

    events = [
        meta("process_name", 0, name="first"),
        meta("process_name", 5, name="second"),
        meta("process_name", 0, name="last"),
        meta("thread_name", 1, name="a thread "),
        meta("thread_sort_index", 1, sort_index=-3),
        complete("a", "cpu_op", 0, 1),
    ]
    (track,) = open_events(tmp_path, events).tracks
    assert (track.process_name, track.thread_name, track.sort_index) == ("last", "a thread", -3)


def test_the_same_thread_in_two_spellings_is_one_track(tmp_path: Path) -> None:
    events = [
        complete("a", "Operator", 0, 10, tid="1441273664"),
        complete("b", "Operator", 2, 3, tid=1441273664),
        complete("k1", "Kernel", 1, 2, pid=0, tid="stream 7", args={"device": 0, "stream": 7}),
        complete("k2", "Kernel", 4, 2, pid=0, tid=7, args={"device": 0, "stream": 7}),
        complete("c", "Operator", 2, 3, tid=2),
    ]
    trace = open_events(tmp_path, events)
    at = named(trace)
    track = trace.slices.track
    assert track[at["a"]] == track[at["b"]] != track[at["c"]]
    assert track[at["k1"]] == track[at["k2"]]
    assert len(trace.tracks) == 3


def test_memory_rows_are_memory_even_with_a_duration(tmp_path: Path) -> None:
    args = {"Device Type": 1, "Device Id": 0, "Addr": 2**63 + 5, "Bytes": -400}
    totals = {"Total Allocated": 600, "Total Reserved": 2048}
    row = complete("[memory]", "cpu_instant_event", 5, 900, args={**args, **totals})
    old = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 6}
    events = [
        complete("aten::empty", "cpu_op", 4, 3),
        row,
        {**old, "args": {"Device Type": 0, "Device Id": -1, "Bytes": 4}},
        complete("some mark", "cpu_instant_event", 7, 900),
    ]
    trace = open_events(tmp_path, events)
    assert list(named(trace)) == ["aten::empty"]
    memory = trace.memory
    assert memory.ts_ns.tolist() == [5000, 6000]
    assert memory.address.tolist() == [2**63 + 5, 0]
    assert memory.size_bytes.tolist() == [-400, 4]
    assert memory.device_type.tolist() == [1, 0]
    assert memory.device_index.tolist() == [0, -1]
    assert memory.has_total.tolist() == [True, False]
    assert memory.total_allocated_bytes[0] == 600
    assert memory.has_op.tolist() == [True, True]
    assert trace.strings.take(trace.instants.name) == ["some mark"]


def test_unknown_durations_are_kept_apart(tmp_path: Path) -> None:
    no_dur = complete("c", "cpu_op", 3, 0)
    del no_dur["dur"]
    events = [
        complete("a", "cpu_op", 1, 10),
        complete("b", "cpu_op", 2, -1),
        no_dur,
        complete("d", "cpu_op", 4, None),
        complete("zero", "cpu_op", 5, 0),
    ]
    trace = open_events(tmp_path, events)
    assert sorted(named(trace)) == ["a", "zero"]
    assert sorted(trace.strings.take(trace.unfinished.name)) == ["b", "c", "d"]
    assert warnings(trace)["unknown-duration"] == 3
    assert not trace.health.complete


def test_times_of_zero_are_invalid_only_among_times_of_another_age(tmp_path: Path) -> None:
    late = complete("late", "cpu_op", 1650000000000000, 10)
    trace = open_events(tmp_path, [kernel("k", 0, 0), late, kernel("k", 0, 5)])
    assert list(named(trace)) == ["late"]
    assert warnings(trace) == {"invalid-time": 2}
    assert not trace.health.complete
    trace = open_events(tmp_path, [kernel("k", 0, 0), complete("early", "cpu_op", 3600e6, 10)])
    assert sorted(named(trace)) == ["early", "k"]
    assert trace.health.complete
    trace = open_events(tmp_path, [kernel("k", 0, 3)])
    assert times(trace) == {"k": (0, 3000)}


def test_times_that_are_none_or_too_large_are_left_out_and_named(tmp_path: Path) -> None:
    no_time = complete("none", "cpu_op", 0, 1)
    del no_time["ts"]
    events = [
        complete("a", "cpu_op", 1, 10),
        no_time,
        complete("huge", "cpu_op", 1e300, 1),
        complete("year 2116", "cpu_op", 5_000_000_000_000_000, 1),
    ]
    trace = open_events(tmp_path, events)
    assert list(named(trace)) == ["a"]
    assert warnings(trace)["invalid-time"] == 3
    assert trace.health.num_events_read == 4


def test_the_largest_times_and_base_add_up_without_overflow(tmp_path: Path) -> None:
    most_us, base = ((1 << 61) - 1) // 1000, (1 << 61) - 1
    longest_us = ((1 << 58) - 1) // 1000
    trace = open_events(
        tmp_path, [complete("a", "cpu_op", most_us, longest_us)], baseTimeNanoseconds=base
    )
    assert int(trace.slices.start_ns[0]) == base + most_us * 1000
    assert int(trace.slices.end_ns[0]) == base + (most_us + longest_us) * 1000


def test_durations_of_ten_years_are_kept_apart(tmp_path: Path) -> None:
    too_long_us = (1 << 58) // 1000 + 1
    events = [
        complete("op", "cpu_op", 1, 5),
        complete("long op", "cpu_op", 2, too_long_us),
        kernel("k", 3, 5),
        kernel("long k", 20, too_long_us),
        {"ph": "B", "name": "long begin", "pid": 2, "tid": 2, "ts": 1},
        {"ph": "E", "pid": 2, "tid": 2, "ts": 1 + too_long_us},
        {"ph": "b", "cat": "x", "id": 1, "name": "long async", "pid": 2, "tid": 2, "ts": 1},
        {"ph": "e", "cat": "x", "id": 1, "name": "long async", "pid": 2, "tid": 2, "ts": 1e15},
    ]
    trace = open_events(tmp_path, events)
    assert times(trace) == {"op": (1000, 5000), "k": (3000, 5000)}
    assert warnings(trace) == {"impossible-duration": 4}
    assert not trace.health.complete
    unfinished = sorted(trace.strings[name] for name in trace.unfinished.name.tolist())
    assert unfinished == ["long async", "long begin", "long k", "long op"]


def test_durations_that_64_bits_cannot_add_up_are_kept_apart(tmp_path: Path) -> None:
    # Each is possible by itself; of 40, the four that fit 36 years are kept, and what is short.
    nine_years_us = (1 << 58) // 1000 - 1
    events = [complete("long", "cpu_op", i, nine_years_us) | {"tid": i} for i in range(40)]
    events += [complete("hour", "cpu_op", 1, 3_600_000_000) | {"tid": 99}]
    events += [kernel("k", 3, 5)]
    trace = open_events(tmp_path, events)
    assert warnings(trace) == {"impossible-duration": 36}
    total = sum(trace.slices.dur_ns.tolist())
    assert total == 4 * nine_years_us * 1000 + 3_600_000_000_000 + 5000
    assert total == int(trace.slices.dur_ns.sum()) < 1 << 62
    rows = {row.name: row for row in ops(Profile((trace,))).rows}
    assert rows["long"].cpu_total_ns == 4 * nine_years_us * 1000
    assert rows["hour"].self_cpu_ns == 3_600_000_000_000


def test_unsupported_phases_are_counted(tmp_path: Path) -> None:
    snapshot = {"ph": "O", "name": "x", "pid": 1, "tid": 1, "ts": 1, "id": 1}
    events = [complete("a", "cpu_op", 1, 1), snapshot, snapshot, {"name": "no phase"}]
    trace = open_events(tmp_path, events)
    assert warnings(trace) == {"ignored-phase": 2, "no-phase": 1}
    assert trace.source.num_events == 4


def test_args_are_found_again(tmp_path: Path) -> None:
    args = {"Input Dims": [[2, 3], []], "note": 'a "quoted" ü'}
    trace = open_events(tmp_path, [complete("a", "cpu_op", 1, 1, args=args)])
    assert trace.args(0) == args
    assert attribute(trace, "input_dims") == {"a": "[[2, 3], []]"}


def test_a_gzip_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    events = [complete(f"op {i}", "cpu_op", i * 10, 5, args={"External id": i}) for i in range(99)]
    plain = write(tmp_path / "a.json", events, baseTimeNanoseconds=10**18)
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    one, two = open_path(plain), open_path(packed)
    assert times(one) == times(two)
    assert attribute(one, "external_id") == attribute(two, "external_id")
    assert two.args(42) == one.args(42)


def test_a_cut_gzip_file_is_incomplete(tmp_path: Path) -> None:
    events = [complete(f"op {i}", "cpu_op", i * 10, 5) for i in range(5000)]
    whole = gzip.compress(json.dumps({"traceEvents": events}).encode())
    path = tmp_path / "cut.json.gz"
    path.write_bytes(whole[: len(whole) // 2])
    trace = open_path(path)
    assert 1000 < len(trace.slices) < 5000
    assert not trace.health.complete
    assert {"gzip-truncated", "truncated"} <= warnings(trace).keys()


def test_progress_reaches_the_size_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [complete("a", "cpu_op", 1, 1)])
    seen: list[tuple[int, int]] = []
    open_trace(path, tmp_path / "store", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size,) * 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"traceEvents": []}', "holds no events"),
        ("[]", "holds no events"),
        ('{"nodes": [], "schema": "1.0"}', "execution trace"),
        ('{"a": 1}', "JSON without traceEvents"),
        ('[{"file": "x", "mode": "FULL"}]', "no phase"),
        ("[[1, 2], [3, 4]]", "not of trace events"),
    ],
)
def test_json_that_is_no_trace_is_refused_in_one_line(
    tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(TraceFormatError, match=problem) as caught:
        open_path(path)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_a_trace_of_metadata_alone_opens(tmp_path: Path) -> None:
    meta = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "x"}}
    trace = open_events(tmp_path, [meta])
    assert (len(trace.slices), trace.source.num_events) == (0, 1)


def test_events_of_many_segments_are_one_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trnscope import _native

    whole = _native.Scanner
    monkeypatch.setattr(_native, "Scanner", lambda keys, threads, **_: whole(keys, threads, 7))
    events: list[dict[str, Any]] = []
    for i in range(50):
        where = {"pid": 1, "tid": i % 3, "ts": i}
        events.append({"ph": "B", "name": f"b{i}", **where, "args": {"External id": i + 1}})
        events.append(complete(f"op{i}", "cpu_op", 1000 + 10 * i, 5, args={"bytes": i}))
    events += [{"ph": "E", "pid": 1, "tid": i % 3, "ts": 200 - i} for i in reversed(range(50))]
    trace = open_events(tmp_path, events)
    found = times(trace)
    assert len(found) == 100
    for i in range(50):
        assert found[f"b{i}"] == (i * 1000, (200 - 2 * i) * 1000)
        assert found[f"op{i}"] == ((1000 + 10 * i) * 1000, 5000)
    ids = attribute(trace, "external_id")
    assert ids == {f"b{i}": i + 1 for i in range(50)}
    assert attribute(trace, "bytes") == {f"op{i}": i for i in range(50)}
    assert kinds(trace)["op7"] is SliceKind.CPU_OP
    assert np.all(np.bincount(trace.slices.track) > 0)
