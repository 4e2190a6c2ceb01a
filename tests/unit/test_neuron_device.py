"""Neuron device profiles: tables of any columns and types, alone and beside a system profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.neuron_profiles import (
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
from trnscope.analysis.devices import summarize_devices
from trnscope.analysis.engines import engines
from trnscope.analysis.reported import reported_figures
from trnscope.errors import TraceFormatError
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.profile import Profile
from trnscope.store.sql import connect

WORK = (SliceKind.KERNEL, SliceKind.MEMCPY, SliceKind.COLLECTIVE)


def instruction(start: int, end: int, engine: str, opcode: str, **more: Any) -> dict[str, Any]:
    times = {"start_ts": start, "end_ts": end, "duration_ns": end - start}
    return {**times, "engine": engine, "opcode": opcode, **more}


def transfer(start: int, end: int, queue: str, **more: Any) -> dict[str, Any]:
    times = {"start_ts": start, "end_ts": end, "duration_ns": end - start}
    return {**times, "queue_name": queue, "variable": "w", "transfer_bytes": 8, **more}


INSTRUCTIONS = [
    instruction(0, 40, "tensor", "MATMUL", id=1, raw_flops=10, layer="l0"),
    instruction(40, 100, "tensor", "EVENT_SEMAPHORE", id=2),
    instruction(100, 150, "TensorMatrix", "MATMUL", id=3, raw_flops=10, layer="l1"),
    instruction(20, 60, "DVE", "TENSOR_COPY", id=4),
]
TRANSFERS = [transfer(50, 80, "q0", id=9), transfer(70, 90, "q1", id=10)]


def tables(folder: Path, **more: Any) -> Path:
    return write_tables(
        folder, {"Instruction": INSTRUCTIONS, "DmaPacketAggregated": TRANSFERS} | more
    )


def test_alone_engines_and_queues_are_the_device_s_work(tmp_path: Path) -> None:
    trace = read(tables(tmp_path / "p"), tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["MATMUL", "MATMUL", "TENSOR_COPY"]
    assert names(trace, SliceKind.SYNC) == ["EVENT_SEMAPHORE"]
    assert values(trace, "flops", SliceKind.KERNEL) == [10, 10, None]
    assert values(trace, "layer", SliceKind.KERNEL) == ["l0", "l1", None]
    assert values(trace, "bytes", SliceKind.MEMCPY) == [8, 8]
    (row,) = summarize_devices(trace)
    # Compute [0, 60] + [100, 150]; DMA [50, 90], of which [60, 90] is exposed.
    assert (row.device.label, row.num_kernels, row.sum_ns) == ("neuron:0", 3, 180)
    assert (row.compute_ns, row.memcpy_ns, row.exposed_memcpy_ns) == (110, 40, 30)
    assert (row.busy_ns, row.idle_ns) == (140, 10)


def test_engines_are_active_without_their_waits(tmp_path: Path) -> None:
    rows = engines(Profile((read(tables(tmp_path / "p"), tmp_path),)))
    found = [(r.name, r.unit, r.num_instructions, r.busy_ns, r.sum_ns, r.window_ns) for r in rows]
    assert found == [
        ("tensor", "engine", 2, 90, 90, 150),
        ("vector", "engine", 1, 40, 40, 150),
        ("DMA, 2 queues", "queue", 2, 40, 50, 150),
    ]
    assert rows[0].busy_ratio == 0.6


def test_physical_cores_have_engines_of_their_own(tmp_path: Path) -> None:
    rows = [instruction(0, 10, "vector", "ADD", pcore_idx=core) for core in (1, 0, 1)]
    trace = read(write_tables(tmp_path / "p", {"Instruction": rows}), tmp_path)
    found = [(r.name, r.num_instructions) for r in engines(Profile((trace,)))]
    assert found == [("vector (core 0)", 1), ("vector (core 1)", 2)]
    assert {t.stream for t in trace.tracks if t.kind is TrackKind.DEVICE_ENGINE} == {1, 9}


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.int32(), pa.uint64()])
def test_numbers_may_have_any_type(tmp_path: Path, kind: Any) -> None:
    numbers = ("start_ts", "end_ts", "duration_ns")
    rows = [
        {k: str(v) if kind == pa.string() and k in numbers else v for k, v in row.items()}
        for row in INSTRUCTIONS
    ]
    folder = write_tables(tmp_path / "p", {"Instruction": rows}, dict.fromkeys(numbers, kind))
    assert spans(read(folder, tmp_path), SliceKind.KERNEL) == [(0, 40), (100, 50), (20, 40)]


def test_a_table_may_be_split_and_lack_columns(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    for part, row in ((0, INSTRUCTIONS[0]), (2, INSTRUCTIONS[2]), (10, INSTRUCTIONS[3])):
        write_tables(folder, {f"Instruction_{part}": [row]})
    bare = {"start_ts": 200, "duration_ns": 5}
    write_tables(folder, {"Instruction_11": [bare]})
    trace = read(folder, tmp_path)
    assert sorted(spans(trace, SliceKind.KERNEL)) == [(0, 40), (20, 40), (100, 50), (200, 5)]
    assert "(no opcode)" in names(trace, SliceKind.KERNEL)


def test_other_tables_stand_in_for_missing_ones(tmp_path: Path) -> None:
    active = {"start_ts": 5, "end_ts": 9, "engine": "scalar", "pcore_idx": 0}
    packet = {"start_ts": 1, "end_ts": 3, "queue_name": "q", "transfer_bytes": 4}
    folder = write_tables(tmp_path / "p", {"ActiveTime": [active], "DmaPacket": [packet]})
    trace = read(folder, tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(5, 4)]
    assert spans(trace, SliceKind.MEMCPY) == [(1, 2)]
    # With the tables themselves there, neither is counted besides.
    both = tables(tmp_path / "q", ActiveTime=[active], DmaPacket=[packet])
    assert summarize_devices(read(both, tmp_path))[0].sum_ns == 180


def test_executions_layers_and_throttling_are_no_work(tmp_path: Path) -> None:
    folder = tables(
        tmp_path / "p",
        ExecutionInfo=[{"neff_name": "a.neff", "execution_start_ts": 0, "execution_end_ts": 500}],
        FrameworkNode=[{"node_name": "layer", "start_ts": 0, "end_ts": 400}],
        Throttle=[{"type": "activity_0", "timestamp": 10, "duration": 20}],
    )
    trace = read(folder, tmp_path)
    assert sorted(names(trace, SliceKind.DEVICE_ANNOTATION)) == ["a.neff", "activity_0", "layer"]
    assert summarize_devices(trace)[0].busy_ns == 140


def test_collectives_tell_what_they_are(tmp_path: Path) -> None:
    row = {"start_ts": 150, "end_ts": 170, "operation": "AllReduce", "dtype": "bf16"}
    row |= {"num_elements": 64, "input_size": 128, "replica_group": "[[0, 1]]", "stream_index": 2}
    trace = read(tables(tmp_path / "p", CcOp=[row]), tmp_path)
    assert names(trace, SliceKind.COLLECTIVE) == ["AllReduce"]
    assert values(trace, "process_group_ranks", SliceKind.COLLECTIVE) == ["[[0, 1]]"]
    assert values(trace, "bytes", SliceKind.COLLECTIVE) == [128]
    assert values(trace, "in_nelems", SliceKind.COLLECTIVE) == [64]
    assert trace.attribute("out_nelems") is None
    assert summarize_devices(trace)[0].communication_ns == 20


def test_a_collective_s_sizes_are_what_this_rank_gives_and_gets(tmp_path: Path) -> None:
    row = {"start_ts": 150, "end_ts": 170, "operation": "AllGather", "num_elements": 64}
    rows = [
        row | {"dtype": "bfloat16", "input_size": 32, "output_size": 128},
        row | {"dtype": "float8_e4m3fn", "input_size": 16, "output_size": 64, "start_ts": 160},
        row | {"dtype": "opaque", "input_size": 16, "output_size": 64, "start_ts": 165},
    ]
    trace = read(tables(tmp_path / "p", CcOp=rows), tmp_path)
    assert values(trace, "in_nelems", SliceKind.COLLECTIVE) == [16, 16, None]
    assert values(trace, "out_nelems", SliceKind.COLLECTIVE) == [64, 64, None]


def test_dependencies_become_flows_by_exact_ids(tmp_path: Path) -> None:
    near = 2**53  # a float cannot tell it from its successor
    rows = [
        instruction(0, 10, "tensor", "A", id=near),
        instruction(10, 20, "tensor", "B", id=near + 1),
    ]
    flow = {"in_table": "instruction", "out_table": "dma_block", "dependency_type": "FLOW"}
    flows = [
        flow | {"in_id": near + 1, "out_id": 9},
        flow | {"in_id": 10, "out_id": near, "in_table": "dma_block", "out_table": "instruction"},
        flow | {"in_id": 4711, "out_id": 9},
        flow | {"in_id": near, "out_id": 9, "in_table": "nowhere"},
    ]
    folder = tables(tmp_path / "p", Instruction=rows, Flow=flows)
    trace = read(folder, tmp_path)
    starts = trace.slices.start_ns
    found = zip(starts[trace.flows.slice_out], starts[trace.flows.slice_in], strict=True)
    assert sorted((int(a), int(b)) for a, b in found) == [(10, 50), (70, 0)]
    assert warnings(trace)["unlinked-dependency"] == 2


def test_usage_becomes_counters(tmp_path: Path) -> None:
    folder = tables(
        tmp_path / "p",
        HbmUsage=[
            {"timestamp": t, "current_throughput": 1.5e9 * t, "pcore_idx": t % 2} for t in range(4)
        ],
        SbufUsage=[{"timestamp": 3, "avg_util_percent": 12.5}],
        CpuUsage=[{"timestamp": 1, "util_percent": 50.0, "cpu_id": "average"}],
        HostMemUsage=[{"timestamp": 1, "used_bytes": 2**40}],
        SystemProfileHbmUsage=[{"timestamp": 5, "total_bytes": 7, "device_idx": 0, "hbm_idx": 1}],
    )
    trace = read(folder, tmp_path)
    series = trace.counter_series
    samples = sorted(
        (series[s].name, series[s].key, int(t), float(v))
        for s, t, v in zip(
            trace.counters.series, trace.counters.ts_ns, trace.counters.value, strict=True
        )
    )
    assert samples == [
        ("HBM memory", "total_bytes", 5, 7.0),
        ("HbmUsage (core 0)", "current_throughput", 0, 0.0),
        ("HbmUsage (core 0)", "current_throughput", 2, 3.0e9),
        ("HbmUsage (core 1)", "current_throughput", 1, 1.5e9),
        ("HbmUsage (core 1)", "current_throughput", 3, 4.5e9),
        ("SbufUsage", "avg_util_percent", 3, 12.5),
        ("cpu average", "util_percent", 1, 50.0),
        ("host memory", "used_bytes", 1, float(2**40)),
    ]


def test_a_simulated_profile_says_so_everywhere(tmp_path: Path) -> None:
    metadata = {"is_simulation": True, "instance_type": "trn2.3xlarge", "explorer_version": "m v1"}
    trace = read(tables(tmp_path / "p", Metadata=[metadata | {"neuroncore_idx": 3}]), tmp_path)
    assert trace.source.simulated
    assert Profile((trace,)).simulated_by == "m v1"
    devices = {t.device for t in trace.tracks if t.device is not None}
    assert {(d.label, d.simulated, d.name) for d in devices} == {
        ("neuron:3", True, "AWS Trainium2")
    }
    measured = tables(tmp_path / "q", Metadata=[metadata | {"is_simulation": False}])
    assert not read(measured, tmp_path).source.simulated


def test_what_the_profiler_warns_of_is_in_health(tmp_path: Path) -> None:
    folder = tables(
        tmp_path / "p",
        Warning=[{"message": "re-compile", "category": "Missing Data"}],
        Error=[{"timestamp": 7, "description": "NaN"}],
    )
    trace = read(folder, tmp_path)
    assert warnings(trace) == {"profiler-warning": 1, "hardware-error": 1}
    assert trace.health.complete
    assert trace.strings.take(trace.instants.name) == ["NaN"]


@pytest.mark.parametrize(("version", "noted"), [("7.9.1", 0), ("12.0.1", 1), ("new", 0)])
def test_a_newer_schema_is_named(tmp_path: Path, version: str, noted: int) -> None:
    trace = read(tables(tmp_path / "p", Metadata=[{"profile_schema_version": version}]), tmp_path)
    assert warnings(trace).get("newer-schema", 0) == noted


def test_a_damaged_table_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = tables(tmp_path / "p")
    (folder / "CcOp.parquet").write_bytes(b"PAR1 nothing")
    trace = read(folder, tmp_path)
    assert not trace.health.complete
    assert "unreadable-table" in warnings(trace)
    assert len(trace.slices) == 6
    for path in folder.iterdir():
        path.write_bytes(b"PAR1 nothing")
    with pytest.raises(TraceFormatError, match="is a damaged Parquet table") as caught:
        read(folder, tmp_path / "again")
    assert "\n" not in str(caught.value)


def test_tables_without_rows_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    write_tables(folder, {"Instruction": [], "Summary": []})
    with pytest.raises(TraceFormatError, match="but no rows"):
        read(folder, tmp_path)


# Figures ---------------------------------------------------------------------------------


def figures(tmp_path: Path, summary: dict[str, Any]) -> dict[str, Any]:
    trace = read(tables(tmp_path / "p", Summary=[summary]), tmp_path)
    (block,) = reported_figures(Profile((trace,)))
    assert block.of == "neuron:0"
    return dict(block.figures)


@pytest.mark.parametrize(
    ("share", "mfu", "scale"), [(0.25, 0.004, 1), (25.0, 0.4, 100), (0.5, 0.5, 100)]
)
def test_percents_and_fractions_are_told_apart(
    tmp_path: Path, share: float, mfu: float, scale: int
) -> None:
    whole = 2e-3
    summary = {
        "total_time": whole,
        "tensor_engine_active_time": whole * share / scale,
        "tensor_engine_active_time_percent": share,
        "mfu_estimated_percent": mfu,
        "hbm_read_bytes": 2**60 + 1,
        "spill_save_bytes": None,
    }
    found = figures(tmp_path, summary)
    assert found["tensor_engine_active_time_ratio"] == pytest.approx(share / scale)
    assert found["mfu_estimated_ratio"] == pytest.approx(mfu / scale)
    assert found["total_time_ns"] == 2_000_000
    assert found["hbm_read_bytes"] == 2**60 + 1
    assert "spill_save_bytes" not in found


def test_without_times_a_value_above_one_tells(tmp_path: Path) -> None:
    assert figures(tmp_path, {"mfu_estimated_percent": 31.0})["mfu_estimated_ratio"] == 0.31


@pytest.mark.parametrize(
    ("document", "blocks"),
    [
        ({"n_0a1b2c": {"total_time": 1.0}, "s_ff00ff": {"total_duration_ns": 10**18}}, 2),
        ({"total_time": 1.0, "event_count": 4}, 1),
        ([{"total_time": 1.0}], 1),
        ({"summary": [{"total_time": 1.0}]}, 1),
    ],
)
def test_summaries_alone(tmp_path: Path, document: Any, blocks: int) -> None:
    trace = read(write_json(tmp_path / "s.json", document), tmp_path)
    found = reported_figures(Profile((trace,)))
    assert trace.source.format == "neuron-summary"
    assert len(found) == blocks
    assert dict(found[0].figures)["total_time_ns"] == 10**9
    # A time since 1970 in the place of a duration is no duration.
    assert all("total_duration_ns" not in dict(block.figures) for block in found)


def test_the_synthetic_device_profile(shared: Path, tmp_path: Path) -> None:
    trace = read(shared / "formats/synthetic/SYNTHETIC_device_profile.json", tmp_path)
    assert names(trace, SliceKind.KERNEL) == ["MATMUL"]
    assert values(trace, "hlo_name", SliceKind.KERNEL) == ["%add.1 = add(%dot, %custom-call.44)"]
    assert spans(trace, *WORK) == [(1000100, 148), (1000050, 300)]
    (row,) = summarize_devices(trace)
    assert (row.busy_ns, row.exposed_memcpy_ns) == (300, 152)
    (block,) = reported_figures(Profile((trace,)))
    assert dict(block.figures) == {
        "total_time_ns": 118000,
        "event_count": 11215,
        "tensor_engine_active_time_ratio": 0.41,
        "mfu_estimated_ratio": 0.22,
        "mbu_estimated_ratio": 0.12,
        "hardware_flops": 161563672576,
    }


# Beside a system profile -----------------------------------------------------------------


def both(folder: Path, shift: int, **run: Any) -> Path:
    """A system profile whose two executions run [1040, 1101] and [2040, 2101], and tables."""
    rows = [
        instruction(at + 10 + shift, at + 50 + shift, "tensor", "MATMUL", id=at)
        for at in (1040, 2040)
    ]
    system = [*chain(1000, SEQUENCE, 1, 10, **run), *chain(2000, SEQUENCE + 1, 2, 10)]
    info = [
        {"execution_start_ts": at + shift, "execution_end_ts": at + 60 + shift}
        for at in (1040, 2040)
    ]
    return write_tables(
        folder, {"SystemProfileEvents": system, "Instruction": rows, "ExecutionInfo": info}
    )


@pytest.mark.parametrize(
    ("shift", "run", "aligned"),
    [
        (0, {}, False),
        (-1040, {}, True),
        (5_000_000, {}, True),
        (700_000, {"nc_start_timestamp_ns": 701_040}, True),
    ],
)
def test_instructions_are_laid_on_the_host_s_clock(
    tmp_path: Path, shift: int, run: dict[str, Any], aligned: bool
) -> None:
    trace = read(both(tmp_path / "p", shift, **run), tmp_path)
    assert spans(trace, SliceKind.INSTRUCTION) == [(1050, 40), (2050, 40)]
    assert ("device-clock-aligned" in warnings(trace)) is aligned


def test_beside_a_system_profile_the_execution_counts_and_holds_its_instructions(
    tmp_path: Path,
) -> None:
    trace = read(both(tmp_path / "p", 0), tmp_path)
    (row,) = summarize_devices(trace)
    assert (row.num_kernels, row.sum_ns, row.unlinked_ns) == (2, 122, 0)
    with connect(Profile((trace,))) as session:
        rows = session.query(
            "SELECT i.op_name, o.start_ns, w.start_ns, i.start_ns, i.place, i.name "
            "FROM instructions i JOIN device_work w ON w.id = i.execution "
            "JOIN ops o ON o.id = i.op ORDER BY i.start_ns"
        ).rows
    assert rows == [
        ("aten::mm", 1000, 1040, 1050, "tensor", "MATMUL"),
        ("aten::mm", 2000, 2040, 2050, "tensor", "MATMUL"),
    ]
    (engine,) = engines(Profile((trace,)))
    assert (engine.busy_ns, engine.window_ns) == (80, 122)


def test_listed_device_profiles_are_read_from_beside(tmp_path: Path) -> None:
    home = tmp_path / "global"
    listed = [
        {"device_profile_name": f"i-0_pid_42_nc_{core}_session_0", "process_id": 42, "nc_id": core}
        for core in (0, 1, 2)
    ]
    second = [row | {"nc_idx": 1} for row in chain(1000, SEQUENCE + 5, 3, 11) if "nc_idx" in row]
    system = [*chain(1000, SEQUENCE, 1, 10), *second, event("nrt_load", "neuron_rt", 1, 5)]
    write_tables(home / "r@latest", {"SystemProfileEvents": system, "DeviceProfileList": listed})
    for core in (0, 1):
        rows = [instruction(1050, 1060 + core, "vector", "ADD", id=1)]
        write_tables(home / f"r_i-0_pid_42_nc_{core}_session_0@latest", {"Instruction": rows})
    trace = read(home / "r@latest", tmp_path)
    found = [(r.device.label, r.busy_ns) for r in engines(Profile((trace,)))]
    assert found == [("neuron:0", 10), ("neuron:1", 11)]


# Damaged times ---------------------------------------------------------------------------


def test_times_that_64_bits_cannot_add_up_are_kept_apart(tmp_path: Path) -> None:
    most = (1 << 63) - 1
    rows = [
        *INSTRUCTIONS,
        {"start_ts": 5, "duration_ns": most, "engine": "tensor", "opcode": "MATMUL"},
        {"start_ts": 6, "end_ts": most, "engine": "tensor", "opcode": "MATMUL"},
        {"start_ts": most - 1, "duration_ns": 1, "engine": "tensor", "opcode": "MATMUL"},
        {"start_ts": 1 << 61, "duration_ns": 1, "engine": "tensor", "opcode": "MATMUL"},
    ]
    folder = write_tables(tmp_path / "p", {"Instruction": rows, "DmaPacketAggregated": TRANSFERS})
    trace = read(folder, tmp_path)
    assert spans(trace, SliceKind.KERNEL) == [(0, 40), (100, 50), (20, 40)]
    assert sorted(trace.unfinished.start_ns.tolist()) == [5, 6]
    assert warnings(trace) == {"impossible-duration": 2, "unreadable-event": 2}
    assert not trace.health.complete
    assert summarize_devices(trace)[0].sum_ns == 180


def test_many_years_do_not_overflow_the_sum(tmp_path: Path) -> None:
    nine_years = (1 << 58) - 1
    rows = [instruction(n, n + nine_years, "tensor", "MATMUL") for n in range(40)]
    trace = read(write_tables(tmp_path / "p", {"Instruction": rows}), tmp_path)
    assert warnings(trace) == {"impossible-duration": 36}
    assert summarize_devices(trace)[0].sum_ns == 4 * nine_years


def test_a_sample_at_an_impossible_time_is_left_out(tmp_path: Path) -> None:
    usage = [{"timestamp": at, "avg_util_percent": 1.0} for at in (3, (1 << 63) - 1)]
    trace = read(tables(tmp_path / "p", SbufUsage=usage), tmp_path)
    assert trace.counters.ts_ns.tolist() == [3]


def test_an_impossible_first_start_does_not_move_the_device_s_clock(tmp_path: Path) -> None:
    folder = write_tables(
        tmp_path / "p",
        {
            "SystemProfileEvents": chain(10_000, SEQUENCE, 1, 10),
            "Instruction": [
                instruction(-(1 << 62), 10, "tensor", "MATMUL"),
                instruction(100, 110, "tensor", "MATMUL"),
            ],
        },
    )
    trace = read(folder, tmp_path)
    assert spans(trace, SliceKind.INSTRUCTION) == [(10_040, 10)]
    assert warnings(trace)["unreadable-event"] == 1
