"""The simulator's tables: the schema's columns exactly, and the same figures when read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trnscope
from tests.unit.neuron_profiles import values
from trnscope.cli.main import run
from trnscope.model.kinds import SliceKind
from trnscope.sim.cost.model import CostModel
from trnscope.sim.explorer_tables import parquet
from trnscope.sim.explorer_tables.course import course_of, machine_of
from trnscope.sim.explorer_tables.from_recording import write_explorer_tables
from trnscope.sim.explorer_tables.parquet import TABLES
from trnscope.sim.explorer_tables.profile import ExplorerProfile
from trnscope.sim.explorer_tables.rows import Course
from trnscope.sim.signature import OpSignature, TensorSpec
from trnscope.sim.virtual_trace.host_samples import CpuSample, HostSamples, MemorySample
from trnscope.sim.virtual_trace.recording import (
    CollectiveInfo,
    HostKind,
    HostRow,
    Launch,
    LaunchKind,
    Message,
    Recording,
    Simulation,
)
from trnscope.sim.virtual_trace.system_events import system_events

ISSUE = {
    *("Instruction", "DmaPacketAggregated", "ActiveTime", "Flow", "OpcodeSummary"),
    *("FrameworkNode", "HbmUsage", "SbufUsage", "PsumUsage", "CcOp", "TensorInfo"),
    *("ExecutionInfo", "Summary", "SystemProfileEvents", "CpuUsage", "HostMemUsage"),
    *("Metadata", "SchemaFields", "Warning"),
}
TYPES = {
    "integer (int64)": pa.int64(),
    "integer (int32)": pa.int32(),
    "number (float)": pa.float64(),
    "boolean": pa.bool_(),
    "array of string": pa.list_(pa.string()),
}
BF16 = TensorSpec((512, 512), "bfloat16")
FP32 = TensorSpec((1024, 1024), "float32")
MM = OpSignature("aten::mm", (BF16, BF16), (BF16,))
ADD = OpSignature("aten::add", (FP32, FP32), (FP32,))
OPS = {0: MM, 1: ADD}
REPEATS = 6
SEQUENCE = (1 << 62) + 1


@pytest.fixture(scope="module")
def schema(shared: Path) -> dict[str, Any]:
    path = shared / "formats" / "neuron_explorer_parquet_schema_7.4.0.json"
    tables: dict[str, Any] = json.loads(path.read_text())["tables"]
    return tables


@pytest.fixture(scope="module")
def model() -> CostModel:
    return CostModel.for_instance("trn2.3xlarge", lnc=2)


def recording(model: CostModel, *, dropped: int = 0) -> Recording:
    """Ops in turn, then a collective over four ranks, one stream, no pause on the device."""
    host: list[HostRow] = []
    launches: list[Launch] = []
    now, free = 0, 5_000
    for number in range(REPEATS * len(OPS) + 1):
        op = OPS.get(number % 2) if number < REPEATS * len(OPS) else None
        name = "c10d::allreduce_" if op is None else op.name
        took = 20_000 if op is None else model.op(op).device_ns
        host.append(HostRow(number, HostKind.OP, name, 0, now, now + 900))
        launches.append(
            Launch(
                sequence_id=SEQUENCE + number,
                correlation=number + 1,
                kind=LaunchKind.KERNEL if op else LaunchKind.COLLECTIVE,
                name=name,
                core=0,
                stream=0,
                thread=0,
                host_start_ns=now + 100,
                host_end_ns=now + 800,
                device_start_ns=free,
                device_end_ns=free + took,
                op=number,
                cache_key=f"{name}_key",
                collective=None if op else CollectiveInfo("reduce_scatter", 1000, "bfloat16", 4),
                message=None
                if op
                else Message("_reduce_scatter_base", 1000, 250, "BFloat16", "2", (0, 2, 4, 6)),
                signature=number % 2 if op else None,
            )
        )
        now, free = now + 1000, free + took
    simulation = Simulation("trn2", "1", "trn2.3xlarge", "AWS Trainium2", 2, 4)
    lost = {0: dropped} if dropped else {}
    return Recording(simulation, 0, free, tuple(host), tuple(launches), dropped=lost)


SAMPLES = HostSamples((CpuSample(10, 5, 0, 0.5),), (MemorySample(10, 25, 100),))


def write(root: Path, model: CostModel, **options: Any) -> Path:
    dropped = options.pop("dropped", 0)
    recorded = recording(model, dropped=dropped)
    return write_explorer_tables(
        recorded,
        system_events(recorded),
        SAMPLES,
        model,
        OPS.get,
        root,
        "sim-trn2.3xlarge",
        **options,
    )


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{name}.parquet").to_pylist()
    return rows


def device_folder(folder: Path) -> Path:
    (found,) = (one for one in folder.parent.iterdir() if one != folder)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: CostModel) -> Path:
    return write(tmp_path_factory.mktemp("explorer"), model)


# Schema ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(TABLES))
def test_columns_are_the_schema_s(name: str, schema: dict[str, Any]) -> None:
    fields = schema[name]["fields"]
    ours = TABLES[name].columns
    assert [column.name for column in ours] == [field["name"] for field in fields]
    assert [column.required for column in ours] == [field["required"] == "Yes" for field in fields]
    assert [column.unit or "" for column in ours] == [field["unit"] for field in fields]
    assert all(column.text for column in ours)


def test_what_is_written_has_exactly_the_schema_s_names_and_types(
    folder: Path, schema: dict[str, Any]
) -> None:
    written = set()
    for path in (*folder.glob("*.parquet"), *device_folder(folder).glob("*.parquet")):
        written.add(path.stem)
        found = pq.read_schema(path)
        fields = schema[path.stem]["fields"]
        expected = [(field["name"], TYPES.get(field["type"], pa.string())) for field in fields]
        assert list(zip(found.names, found.types, strict=True)) == expected, path.stem
    assert written >= ISSUE


def test_schema_fields_describe_the_tables_beside_them(folder: Path) -> None:
    for place in (folder, device_folder(folder)):
        rows = table(place, "SchemaFields")
        assert {row["table_name"] for row in rows} == {p.stem for p in place.glob("*.parquet")}
        columns = [row["field_name"] for row in rows if row["table_name"] == "Metadata"]
        assert columns == pq.read_schema(place / "Metadata.parquet").names


# Content ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def courses(model: CostModel) -> list[Course]:
    return [course_of(model, op) for op in OPS.values()]


def test_summary_is_the_sum_of_the_model_s_figures(
    folder: Path, model: CostModel, courses: list[Course]
) -> None:
    (row,) = table(device_folder(folder), "Summary")
    exec_ns = REPEATS * sum(model.op(op).device_ns for op in OPS.values())
    assert row["total_exec_time"] == pytest.approx(exec_ns / 1e9, rel=1e-12)
    assert row["total_time"] == pytest.approx((exec_ns + 20_000) / 1e9, rel=1e-12)
    for engine in ("tensor", "vector"):
        busy = REPEATS * sum(course.totals.engine_ns.get(engine, 0) for course in courses)
        assert row[f"{engine}_engine_active_time"] == pytest.approx(busy / 1e9, rel=1e-12)
        share = row[f"{engine}_engine_active_time_percent"]
        assert share == pytest.approx(busy / exec_ns, rel=1e-12)
    flops = REPEATS * 2 * 512**3
    assert row["model_flops"] == flops
    peak = 2 * machine_of(model).peak_bf16_flops
    assert row["mfu_estimated_percent"] == pytest.approx(flops / (peak * exec_ns / 1e9))
    costs = [model.op(op) for op in OPS.values()]
    assert row["hbm_read_bytes"] == REPEATS * sum(cost.hbm_read_bytes for cost in costs)
    assert row["hbm_write_bytes"] == REPEATS * sum(cost.hbm_write_bytes for cost in costs)
    assert (row["cc_op_count"], row["cc_op_time"]) == (1, pytest.approx(20e-6))


def test_a_course_lists_what_its_totals_count(courses: list[Course]) -> None:
    for course in courses:
        listed: dict[str, int] = {}
        for row in course.instructions:
            listed[row.engine] = listed.get(row.engine, 0) + 1
        assert listed == dict(course.totals.instructions)
        assert len(course.transfers) == course.totals.transfers
        assert sum(row.flops for row in course.instructions) == course.totals.flops
        assert course.num_left_out == 0
        ends = [r.start_ns + r.duration_ns for r in (*course.instructions, *course.transfers)]
        assert max(ends) <= course.duration_ns


def test_dependencies_lead_forward_in_time(courses: list[Course]) -> None:
    (mm, _) = courses
    assert mm.dependencies
    for one in mm.dependencies:
        before = (mm.transfers if one.before_is_transfer else mm.instructions)[one.before]
        after = (mm.transfers if one.after_is_transfer else mm.instructions)[one.after]
        assert after.start_ns - (before.start_ns + before.duration_ns) == one.gap_ns


def test_a_collective_s_bandwidths_follow_from_its_size(folder: Path) -> None:
    (row,) = table(device_folder(folder), "CcOp")
    assert (row["operation"], row["num_elements"], row["dtype"]) == (
        "ReduceScatter", 1000, "bfloat16",
    )  # fmt: skip
    assert (row["input_size"], row["output_size"]) == (2000, 500)
    assert row["algorithm_bandwidth"] == pytest.approx(2000 / 20e-6)
    assert row["bus_bandwidth"] == pytest.approx(2000 / 20e-6 * 3 / 4)
    assert (row["replica_group_id"], row["replica_group"]) == (0, "[[0, 2, 4, 6]]")


def test_a_collective_of_an_unknown_group_invents_none(tmp_path: Path, model: CostModel) -> None:
    whole = recording(model)
    bare = tuple(replace(launch, message=None) for launch in whole.launches)
    folder = write_explorer_tables(
        replace(whole, launches=bare), (), SAMPLES, model, OPS.get, tmp_path, "sim-trn2.3xlarge"
    )
    (row,) = table(device_folder(folder), "CcOp")
    unknown = ("input_size", "output_size", "replica_group", "replica_group_id")
    assert [row[name] for name in unknown] == [None] * 4
    assert row["bus_bandwidth"] == pytest.approx(2000 / 20e-6 * 3 / 4)


def test_a_collective_s_message_reads_back(folder: Path) -> None:
    (trace,) = trnscope.open(folder).traces
    found = {
        key: [
            value
            for value in values(trace, key, SliceKind.COLLECTIVE, SliceKind.INSTRUCTION)
            if value is not None
        ]
        for key in ("collective_name", "in_nelems", "out_nelems", "process_group_ranks")
    }
    assert found == {
        "collective_name": ["ReduceScatter"],
        "in_nelems": [1000],
        "out_nelems": [250],
        "process_group_ranks": ["[[0, 2, 4, 6]]"],
    }


def test_the_times_are_those_of_the_launches(folder: Path, model: CostModel) -> None:
    launches = recording(model).launches[:-1]
    info = table(device_folder(folder), "ExecutionInfo")
    assert [(r["execution_start_ts"], r["execution_end_ts"]) for r in info] == [
        (launch.device_start_ns, launch.device_end_ns) for launch in launches
    ]
    rows = table(device_folder(folder), "Instruction")
    for row in rows:
        start, end = (info[row["raw_framework_id"]][f"execution_{s}_ts"] for s in ("start", "end"))
        assert start <= row["start_ts"] <= row["end_ts"] <= end
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["pcore_idx"] for row in rows} == {0, 1}


def test_the_same_recording_gives_the_same_files(
    tmp_path: Path, folder: Path, model: CostModel
) -> None:
    again = write(tmp_path, model)
    for one, other in ((folder, again), (device_folder(folder), device_folder(again))):
        assert {p.name: p.read_bytes() for p in one.iterdir()} == {
            p.name: p.read_bytes() for p in other.iterdir()
        }


# Round trip ------------------------------------------------------------------------------


def test_what_was_written_reads_back_to_the_same_summary(
    folder: Path, model: CostModel, courses: list[Course]
) -> None:
    profile = trnscope.open(folder)
    summary = profile.summary()
    costs = [model.op(op).device_ns for op in OPS.values()]
    (device,) = summary.devices
    assert device.device.simulated
    assert device.num_kernels == REPEATS * len(OPS) + 1
    assert device.compute_ns == REPEATS * sum(costs)
    assert device.communication_ns == device.exposed_communication_ns == 20_000
    assert (device.unlinked_ns, device.idle_ns) == (0, 0)
    busy = {row.name: row.busy_ns for row in summary.engines if row.unit == "engine"}
    for core in (0, 1):
        for engine in ("tensor", "vector"):
            parts = [r.duration_ns for c in courses for r in c.instructions if r.engine == engine]
            assert busy[f"{engine} (core {core})"] == REPEATS * sum(parts)
            # The model's own sum is rounded once, each instruction by itself.
            exact = sum(c.totals.engine_ns.get(engine, 0) for c in courses)
            assert abs(exact - sum(parts)) <= len(parts)
    (written,) = table(device_folder(folder), "Summary")
    (block,) = summary.reported
    read = dict(block.figures)
    for name, value in written.items():
        if value is None:
            continue
        if name.endswith("_percent"):
            assert read[name.removesuffix("_percent") + "_ratio"] == pytest.approx(value)
        elif name.endswith("_time"):
            assert read[f"{name}_ns"] == round(value * 1e9)
        else:
            assert read[name] == value


def test_each_op_leads_to_its_instructions(folder: Path, courses: list[Course]) -> None:
    profile = trnscope.open(folder)
    rows = profile.sql(
        "SELECT op_name, count(DISTINCT execution), count(*), count(*) FILTER (op IS NULL) "
        "FROM instructions GROUP BY 1 ORDER BY 1"
    ).rows
    parts = [2 * REPEATS * (len(c.instructions) + len(c.transfers)) for c in courses]
    assert rows == [("aten::add", REPEATS, parts[1], 0), ("aten::mm", REPEATS, parts[0], 0)]
    table_of_ops = {row.name: row.self_device_ns for row in profile.ops().rows}
    assert (
        table_of_ops["aten::mm"]
        == REPEATS * CostModel.for_instance("trn2.3xlarge", lnc=2).op(MM).device_ns
    )
    trace = profile.traces[0]
    assert "unlinked-dependency" not in {w.code for w in trace.health.warnings}
    kinds = set(trace.strings.take(trace.flows.kind))
    assert kinds == {"EXECUTION", "FLOW_DEPENDENCE", "neuron_flow"}


def test_an_export_as_chrome_json_says_the_same(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert run(["export", str(folder), "--to", "chrome", "--out", str(path)]) == 0
    profiles = [trnscope.open(source) for source in (folder, path)]
    first, second = ([row.to_json() for row in p.summary().devices] for p in profiles)
    assert first == second
    for p in profiles:
        rows = {row.name: (row.calls, row.self_device_ns) for row in p.ops().rows}
        assert rows["aten::mm"] == (
            REPEATS,
            REPEATS * CostModel.for_instance("trn2.3xlarge", lnc=2).op(MM).device_ns,
        )
    before, after = (len(p.traces[0].slices.of_kind(SliceKind.INSTRUCTION)) for p in profiles)
    assert before == after > 0


def test_rows_beyond_the_limit_are_counted_and_the_figures_stay(
    tmp_path: Path, folder: Path, model: CostModel, courses: list[Course]
) -> None:
    per_op = [2 * (len(c.instructions) + len(c.transfers)) for c in courses]
    limited = write(tmp_path, model, max_rows=sum(per_op))
    left = (REPEATS - 1) * sum(per_op)
    (warning,) = table(device_folder(limited), "Warning")
    assert warning["message"].startswith(f"{left} instructions and transfers were left out")
    (full,), (cut,) = (table(device_folder(one), "Summary") for one in (folder, limited))
    counts = {"event_count", "total_row_count"}
    assert {k: v for k, v in full.items() if k not in counts} == {
        k: v for k, v in cut.items() if k not in counts
    }
    profile = trnscope.open(limited)
    assert not profile.health().complete
    assert len(profile.traces[0].slices.of_kind(SliceKind.INSTRUCTION)) == sum(per_op) + 1


def test_dropped_events_are_in_the_tables_too(tmp_path: Path, model: CostModel) -> None:
    folder = write(tmp_path, model, dropped=7)
    found = {w.code: w.count for w in trnscope.open(folder).health().warnings}
    assert found["events-dropped"] == 7


def test_long_tables_are_written_group_by_group(
    tmp_path: Path, model: CostModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 16)
    monkeypatch.setattr(parquet, "_ROWS_AT_ONCE", 4)
    folder = write(tmp_path, model)
    events = pq.ParquetFile(folder / "SystemProfileEvents.parquet")
    assert events.num_row_groups > 2
    ids = [row["id"] for row in table(folder, "SystemProfileEvents")]
    assert ids == list(range(1, len(ids) + 1))


def test_a_failed_profile_leaves_nothing(tmp_path: Path, model: CostModel) -> None:
    profile = ExplorerProfile(tmp_path, "p", machine_of(model), instance_id="sim", process_id=1)
    with pytest.raises(RuntimeError, match="stop"), profile:
        profile.device(0)
        raise RuntimeError("stop")
    assert list((tmp_path / "profiles/global").iterdir()) == []
