"""The arithmetic of an estimate, against values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.errors import CaptureError, UsageError
from trnscope.estimate.communication import (
    BUCKET_BYTES,
    Communication,
    Phases,
    Transfer,
    communication,
    layout_time,
    sharded_optimizer_ns,
)
from trnscope.estimate.estimate import MEMORY_CAPACITY, Estimate, Utilisation, estimate_of
from trnscope.estimate.layout import Layout
from trnscope.estimate.lines import estimate_lines
from trnscope.estimate.memory import (
    KnownBlocks,
    MemoryEvent,
    MemoryPoint,
    Use,
    frontier,
    memory_points,
    peak,
)
from trnscope.estimate.options import EstimateOptions
from trnscope.estimate.parts import Span, execution_spans, split, take_off
from trnscope.estimate.recorded import (
    Batch,
    OptimizerWork,
    Recorded,
    TensorCollective,
    Unit,
)
from trnscope.estimate.run import check_used
from trnscope.report.view import View
from trnscope.sim.cost import CostModel
from trnscope.sim.signature import CollectiveSpec, ExecutionCost

UNITS = (Unit("(outside of layers)", 100, 100), Unit("layers.0", 40, 40), Unit("layers.1", 60, 60))


class OneNsAByte:
    """Collectives that take a nanosecond a byte, and five of the host."""

    def collective(self, spec: CollectiveSpec) -> ExecutionCost:
        return ExecutionCost(host_ns=5, device_ns=spec.num_bytes)


def gather(time_ns: int) -> Transfer:
    return Transfer("all_gather", time_ns, 2, time_ns, 0)


def reduction(time_ns: int) -> Transfer:
    return Transfer("reduce_scatter", time_ns, 2, time_ns, 0)


# ---- layouts


def test_a_layout_needs_as_many_cores_as_its_product() -> None:
    assert Layout(dp=4, fsdp=16).num_cores == 64
    Layout(4, 16).check_fits("trn2.48xlarge", 64, 2)
    with pytest.raises(UsageError, match="8 x 16 cores are more than the 64 of"):
        Layout(8, 16).check_fits("trn2.48xlarge", 64, 2)
    with pytest.raises(UsageError, match="--fsdp 0"):
        Layout(fsdp=0)
    with pytest.raises(UsageError, match="--tp 0"):
        Layout(tp=0)
    assert Layout(2, 4, 8).num_cores == 64
    assert Layout(2, 4, 8).num_batches == 8
    with pytest.raises(UsageError, match=r"2 x 4 x 16 cores are more than the 64 of .*--tp"):
        Layout(2, 4, 16).check_fits("trn2.48xlarge", 64, 2)


# ---- parts of the step


def test_parts_add_up_and_the_rest_is_the_hosts() -> None:
    spans = [Span(10, 30, "tensor"), Span(25, 40, "memory"), Span(60, 130, "tensor")]
    assert split(spans, 0, 100) == {"host": 30, "tensor": 60, "memory": 10}
    assert split(spans, 0, 100, paused_ns=20) == {"host": 10, "tensor": 60, "memory": 10}


def test_an_execution_is_its_fixed_time_and_what_binds_the_rest() -> None:
    cost = ExecutionCost(500, 100, engine_ns={"tensor": 30, "dma": 80})
    assert execution_spans(0, 100, cost, 20) == (Span(0, 20, "program"), Span(20, 100, "memory"))
    idle = ExecutionCost(500, 100, engine_ns={"tensor": 30, "dma": 39})
    assert execution_spans(0, 100, idle, 20)[1].part == "latency"
    assert execution_spans(0, 15, cost, 20) == (Span(0, 15, "program"),)


def test_what_is_taken_off_is_all_taken_off() -> None:
    parts = {"host": 100, "vector": 50, "memory": 50}
    assert take_off(parts, {"vector": 30, "memory": 10}, 40) == {
        "host": 100,
        "vector": 20,
        "memory": 40,
    }
    assert sum(take_off(parts, {"vector": 1}, 70).values()) == 130
    assert take_off(parts, {}, 0) == parts


# ---- collectives


def test_fully_sharded_gathers_twice_and_reduces_once() -> None:
    sent = communication(UNITS, Layout(fsdp=4), OneNsAByte())
    assert [(one.kind, one.num_bytes) for one in sent.forward] == [
        ("all_gather", 100),
        ("all_gather", 40),
        ("all_gather", 60),
    ]
    assert [(one.kind, one.num_bytes) for one in sent.backward] == [
        ("all_gather", 60),
        ("all_gather", 40),
        ("all_gather", 100),
        ("reduce_scatter", 60),
        ("reduce_scatter", 40),
        ("reduce_scatter", 100),
    ]
    assert sent.time_ns == 600
    assert sent.host_ns == 45


def test_copies_of_a_shard_are_averaged_by_unit() -> None:
    sent = communication(UNITS, Layout(dp=2, fsdp=4), OneNsAByte())
    reduced = [(one.kind, one.num_bytes, one.num_ranks) for one in sent.backward[-3:]]
    assert reduced == [("all_reduce", 15, 2), ("all_reduce", 10, 2), ("all_reduce", 25, 2)]


def test_data_parallel_reduces_buckets() -> None:
    units = (Unit("all", 1, 2 * BUCKET_BYTES + 7),)
    sent = communication(units, Layout(dp=2), OneNsAByte())
    assert sent.forward == ()
    assert [one.num_bytes for one in sent.backward] == [BUCKET_BYTES, BUCKET_BYTES, 7]


def test_inference_reduces_nothing() -> None:
    units = (Unit("all", 100, 0),)
    assert communication(units, Layout(dp=8), OneNsAByte()).all == ()
    sent = communication(units, Layout(fsdp=8), OneNsAByte(), num_calls=3)
    assert [one.kind for one in sent.all] == ["all_gather"] * 3


def test_collectives_hide_behind_the_work_of_their_phase() -> None:
    phases = Phases(forward_ns=100, backward_ns=200, optimizer_ns=50)
    sent = Communication(
        (gather(30), gather(60), gather(20)),
        (gather(20), gather(60), gather(30), reduction(40), reduction(90), reduction(10)),
    )
    time = layout_time(phases, sent, optimizer_ns=20)
    # forward: 30 + max(0, 80 - 100); backward: 20 + 10 + max(0, 60 + 30 + 40 + 90 - 200)
    assert time.exposed_ns == 30 + 50
    assert time.step_ns == 100 + 200 + 20 + 80
    assert time.serial_ns == 320 + 110 + 250


def test_without_collectives_the_step_stays() -> None:
    phases = Phases(1, 2, 3)
    time = layout_time(phases, Communication((), ()), 3)
    assert (time.step_ns, time.serial_ns, time.exposed_ns) == (6, 6, 0)


def test_a_sharded_optimizer_saves_bytes_but_no_dispatch() -> None:
    work = [OptimizerWork(host_ns=10, fixed_ns=20, device_ns=100), OptimizerWork(10, 5, 5, 2)]
    # whole: 100 + 2 x 10; a quarter: 20 + 80 / 4 + 2 x 10
    assert sharded_optimizer_ns(240, work, 4) == 240 * 60 // 120
    assert sharded_optimizer_ns(240, work, 1) == 240
    assert sharded_optimizer_ns(0, [], 4) == 0


def test_what_is_sent_within_layers_hides_behind_nothing() -> None:
    within = (TensorCollective("all_reduce", 7, 2), TensorCollective("all_gather", 5, 1))
    sent = communication(UNITS, Layout(tp=4), OneNsAByte(), within=within)
    assert [(one.kind, one.num_bytes, one.num_ranks) for one in sent.all] == [
        ("all_reduce", 7, 4),
        ("all_reduce", 7, 4),
        ("all_gather", 5, 4),
    ]
    time = layout_time(Phases(100, 200, 50), sent, optimizer_ns=50)
    assert time.exposed_ns == 7 + 7 + 5 + 3 * 5
    assert time.step_ns == time.serial_ns == 350 + 19 + 15


# ---- memory


def test_memory_by_use() -> None:
    known = KnownBlocks(
        {1: Use.PARAMETERS, 2: Use.GRADIENTS, 3: Use.OPTIMIZER_STATE},
        {1: 100, 2: 100, 3: 200},
        ((50, 60),),
    )
    events = [
        MemoryEvent(10, 7, 30),  # an activation
        MemoryEvent(20, 2, 100),  # the gradient is made in the step
        MemoryEvent(30, 7, -30),
        MemoryEvent(55, 8, 40),  # while the optimizer steps
        MemoryEvent(70, 9, -5),  # it was there before
    ]
    points = memory_points(310, events, known)
    before = MemoryPoint(parameters=100, optimizer_state=200, before=10)
    assert points[0] == before
    assert points[1].activations == 30
    assert points[2].total == 440
    assert points[4] == MemoryPoint(100, 100, 200, 40, 0, 10, in_optimizer=True)
    assert points[5].before == 5


def test_only_moments_that_can_be_the_peak_are_kept() -> None:
    low, wide = MemoryPoint(parameters=10, activations=50), MemoryPoint(parameters=100)
    inner = MemoryPoint(parameters=9, activations=49)
    points = frontier([inner, low, wide])
    assert set(points) == {low, wide}
    assert peak(points, 1, 0).point == wide
    assert peak(points, 2, 0).total == 55
    assert peak(points, 2, 8).total == 63


def test_no_layer_is_gathered_while_the_optimizer_steps() -> None:
    stepping = MemoryPoint(parameters=100, in_optimizer=True)
    forward = MemoryPoint(parameters=50, activations=10)
    assert peak(frontier([stepping, forward]), 2, 20).total == 55
    assert peak(frontier([stepping, forward]), 2, 10).total == 50


# ---- all of it

GIB = 1 << 30


def recorded(**changes: object) -> Recorded:
    values: dict[str, object] = {
        "hardware_model": "trn2 model v1",
        "instance": "trn2.48xlarge",
        "lnc": 2,
        "capacity_bytes": 24 * GIB,
        "num_steps": 2,
        "first_step": 1,
        "steps_by": "optimizer",
        "duration_ns": 2_000,
        "parts_ns": {"host": 1_200, "tensor": 800},
        "optimizer_parts_ns": {"tensor": 100},
        "backward_ns": 800,
        "optimizer_ns": 400,
        "num_executions": 20,
        "num_on_cpu": 0,
        "num_programs": 5,
        "compile_ns": 7,
        "optimizer_work": (),
        "memory": (MemoryPoint(parameters=40 * GIB, activations=2 * GIB),),
        "units": (Unit("(outside of layers)", 4 * GIB, 4 * GIB),),
        "batch": Batch("Llama", (2, 64), 1, 2, 128),
        "num_cores_used": 1,
        "trace": "t.json",
    }
    return Recorded(**{**values, **changes})  # type: ignore[arg-type]


def test_steps_that_ran_nothing_on_the_device_are_refused() -> None:
    with pytest.raises(CaptureError, match=r'train.py ran nothing .* \.to\("neuron"\)'):
        check_used(recorded(num_executions=0), "train.py")
    check_used(recorded(num_executions=1), "train.py")


def estimated(tmp_path: Path, layout: Layout, **changes: object) -> Estimate:
    script = tmp_path / "train.py"
    script.touch()
    used = Utilisation(4_000, mfu=0.5, of_ns=2_000, peaks=(("bfloat16", 4e9),))
    model = CostModel.for_instance("trn2.48xlarge")
    return estimate_of(
        recorded(**changes), EstimateOptions(str(script), layout=layout), model, used
    )


def test_an_estimate_on_one_core(tmp_path: Path) -> None:
    result = estimated(tmp_path, Layout(), memory=(MemoryPoint(parameters=GIB),))
    assert result.one_core == result.placed
    assert result.placed.time.step_ns == 1_000
    assert result.placed.parts_ns == {"host": 600, "tensor": 400}
    assert result.placed.binding == "host"
    assert result.placed.mfu == pytest.approx(0.5)
    assert result.placed.tokens_per_s == pytest.approx(128 / 1_000e-9)
    assert result.remedies == ()
    assert result.to_json()["fits"] is True
    assert result.to_json()["borrowed_laws"] == [], "it has no collectives"


def test_what_does_not_fit_says_what_would(tmp_path: Path) -> None:
    result = estimated(tmp_path, Layout())
    assert result.placed.missing_bytes == 18 * GIB
    assert result.placed.binding == MEMORY_CAPACITY
    # 40 / 2 + 2 + 4 + 4 gathered is too much; 40 / 4 + 10 is not
    assert [(one.change[:8], one.peak_bytes) for one in result.remedies] == [("--fsdp 4", 20 * GIB)]
    text = "\n".join(line.plain for line in estimate_lines(result, View(simulated="trn2 model v1")))
    assert "It does not fit: a core needs 18.00 GiB more HBM than its 24.00 GiB (simulated)" in text


def test_a_layout_multiplies_the_batch_and_adds_collectives(tmp_path: Path) -> None:
    result = estimated(tmp_path, Layout(dp=2, fsdp=4))
    placed = result.placed
    model = CostModel.for_instance("trn2.48xlarge")
    gathers = model.collective(CollectiveSpec("all_gather", 4 * GIB, 4)).device_ns
    reduce = model.collective(CollectiveSpec("reduce_scatter", 4 * GIB, 4)).device_ns
    average = model.collective(CollectiveSpec("all_reduce", GIB, 2)).device_ns
    assert placed.sent.time_ns == 2 * gathers + reduce + average
    # the first gathers and the last reduction stand alone; the other reduction has 400 ns beside it
    launches = 4 * model.runtime.graph_launch_ns
    assert placed.time.exposed_ns == 2 * gathers + average + (reduce - 400) + launches
    assert sum(placed.parts_ns.values()) == placed.time.step_ns
    assert placed.tokens_per_s == pytest.approx(8 * 128 / placed.time.step_ns * 1e9)
    assert placed.mfu == pytest.approx(0.5 * 1_000 / placed.time.step_ns)


def test_cores_that_share_a_layer_share_a_batch_and_what_they_send(tmp_path: Path) -> None:
    within = (TensorCollective("all_reduce", 1 << 20, 6),)  # of two steps
    result = estimated(tmp_path, Layout(dp=2, tp=4), tp=4, tensor_collectives=within)
    model = CostModel.for_instance("trn2.48xlarge")
    each = model.collective(CollectiveSpec("all_reduce", 1 << 20, 4))
    group = result.one_core
    assert group.layout == Layout(tp=4)
    assert group.time.step_ns == 1_000 + 3 * (each.device_ns + each.host_ns)
    assert group.parts_ns["collective"] == 3 * (each.device_ns + each.host_ns)
    assert group.tokens_per_s == pytest.approx(128 / group.time.step_ns * 1e9)
    assert result.placed.tokens_per_s == pytest.approx(2 * 128 / result.placed.time.step_ns * 1e9)
    document = result.to_json()
    assert document["borrowed_laws"] == [
        "time of a collective within a graph: borrowed from trn1, none of trn2 is public"
    ]
    text = "\n".join(line.plain for line in estimate_lines(result, View(simulated="m")))
    assert "dp 2 x tp 4" in text
    assert "borrowed from trn1" in text


def test_what_was_recorded_survives_its_file(tmp_path: Path) -> None:
    before = recorded(
        optimizer_work=(OptimizerWork(1, 2, 3, 4),),
        tp=2,
        tensor_collectives=(TensorCollective("all_reduce", 8, 4),),
    )
    before.write(tmp_path / "r.json")
    assert Recorded.read(tmp_path / "r.json") == before


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no such script"):
        EstimateOptions("/nowhere/train.py")
