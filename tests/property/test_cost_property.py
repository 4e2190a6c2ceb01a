"""Laws of the cost model: engines, dependencies, bounds, monotony and repeatability."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from trnscope.hardware.neuroncore import load_core
from trnscope.sim.cost import CostModel
from trnscope.sim.cost.lowering import coverage, registry
from trnscope.sim.cost.program import DmaTransfer, Instruction, Loop, Program, Tile
from trnscope.sim.cost.schedule import Execution, Scheduler
from trnscope.sim.signature import GraphNode, GraphSpec, OpSignature, TensorSpec

TILES = ("a", "b", "c")
tiles = st.lists(st.sampled_from(TILES), max_size=2, unique=True).map(tuple)
instructions = st.builds(
    Instruction,
    opcode=st.just("WORK"),
    engine=st.sampled_from(["tensor", "vector", "scalar", "gpsimd"]),
    elements=st.integers(1, 2048),
    reads=tiles,
    writes=tiles,
    repeat=st.integers(1, 3),
)
transfers = st.builds(
    DmaTransfer,
    name=st.just("x"),
    direction=st.sampled_from(["load", "store"]),
    num_bytes=st.integers(512, 1 << 20),
    descriptor_bytes=st.sampled_from([64, 2048, 65536]),
    reads=tiles,
    writes=tiles,
)
bodies = st.lists(instructions | transfers, min_size=1, max_size=5).map(tuple)
buffers = st.tuples(*(st.integers(1, 3) for _ in TILES))


def program(body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...], n: int) -> Program:
    named = tuple(Tile(name, 64, size) for name, size in zip(TILES, sizes, strict=True))
    return Program("p", named, (Loop(body, n),))


@given(bodies, buffers, st.sampled_from(["trn1", "trn2"]))
@settings(deadline=None, max_examples=60)
def test_an_engine_does_one_thing_at_a_time(
    body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...], chip: str
) -> None:
    """Instructions of an engine do not overlap and are apart by what keeps it busy."""
    core = load_core(chip)
    scheduler = Scheduler(core)
    schedule = scheduler.run(program(body, sizes, 12), 10_000)
    by_engine: dict[str, list[Execution]] = defaultdict(list)
    for execution in schedule.executions:
        by_engine[execution.engine].append(execution)
    by_engine.pop("dma", None)
    for executions in by_engine.values():
        executions.sort(key=lambda execution: execution.start_ns)
        for first, second in pairwise(executions):
            step = first.step
            assert isinstance(step, Instruction)
            busy = scheduler.engine_model.time(step).busy_ns * step.repeat
            assert second.start_ns >= first.start_ns + busy - 1
            assert second.start_ns >= first.start_ns + first.duration_ns


def result_ns(scheduler: Scheduler, execution: Execution) -> float:
    """Until a dependent instruction may start."""
    step = execution.step
    if isinstance(step, DmaTransfer):
        return execution.duration_ns
    time = scheduler.engine_model.time(step)
    return time.result_ns + time.busy_ns * (step.repeat - 1)


@given(bodies, buffers)
@settings(deadline=None, max_examples=60)
def test_readers_wait_for_the_last_writer(
    body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...]
) -> None:
    scheduler = Scheduler(load_core("trn2"))
    schedule = scheduler.run(program(body, sizes, 8), 10_000)
    ready: dict[str, float] = {}
    for execution in schedule.executions:
        for name in execution.step.reads:
            assert execution.start_ns >= ready.get(name, 0) - 1
        for name in execution.step.writes:
            ready[name] = execution.start_ns + result_ns(scheduler, execution)


@given(bodies, buffers, st.integers(1, 60))
@settings(deadline=None, max_examples=60)
def test_total_lies_between_the_busiest_engine_and_the_sum_of_all(
    body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...], count: int
) -> None:
    core = load_core("trn2")
    scheduler = Scheduler(core)
    schedule = scheduler.run(program(body, sizes, count))
    moves = [step for step in body if isinstance(step, DmaTransfer)]
    data = sum(scheduler.dma_model.time(step).data_ns for step in moves) * count
    busiest = max(schedule.engine_ns.values(), default=0)
    latency = core.dma.trigger_ns + core.dma.completion_ns + core.dma.done_to_engine_ns
    waits = (latency + core.dma.engine_to_trigger_ns) * count * len(body)
    assert busiest <= schedule.total_ns + 1
    assert schedule.total_ns <= sum(schedule.engine_ns.values()) + data + waits + 1000


@example(
    (Instruction("WORK", "tensor", 1, repeat=2), Instruction("WORK", "scalar", 187)), (1, 1, 1), 40
)  # the engine that ends first in the beginning is the slower one
@example(
    (
        Instruction("WORK", "tensor", 1, writes=("a",)),
        Instruction("WORK", "tensor", 1),
        DmaTransfer("x", "load", 512, 64, reads=("a",)),
    ),
    (3, 1, 1),
    40,
)  # repeats itself every six iterations
@example(
    (
        Instruction("WORK", "tensor", 1),
        Instruction("WORK", "vector", 1),
        Instruction("WORK", "tensor", 401, reads=("a",)),
        DmaTransfer("x", "load", 512, 64, writes=("a",)),
    ),
    (3, 1, 1),
    40,
)  # the transfers run ahead until the buffers are full
@given(bodies, buffers, st.integers(40, 300))
@settings(deadline=None, max_examples=60)
def test_a_loop_in_closed_form_is_the_loop_unrolled(
    body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...], count: int
) -> None:
    scheduler = Scheduler(load_core("trn2"))
    closed = scheduler.run(program(body, sizes, count))
    unrolled = scheduler.run(program(body, sizes, count), 100_000)
    assert abs(closed.total_ns - unrolled.total_ns) <= 0.03 * unrolled.total_ns + 5


@given(bodies, buffers, st.integers(1, 40))
@settings(deadline=None, max_examples=40)
def test_the_same_program_has_the_same_schedule(
    body: tuple[Instruction | DmaTransfer, ...], sizes: tuple[int, ...], count: int
) -> None:
    made = program(body, sizes, count)
    core = load_core("trn1")
    assert Scheduler(core).run(made, 500) == Scheduler(core).run(made, 500)


shapes = st.lists(st.sampled_from([0, 1, 3, 64, 500]), max_size=4).map(tuple)
specs = st.builds(
    TensorSpec, shapes, st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64"])
)
KNOWN = sorted({*registry.BY_NAME, *coverage.ON_CPU, "no_such_op", "_foreach_add", "_foreach_sqrt"})
any_op = st.builds(
    OpSignature,
    st.sampled_from(KNOWN).map("aten::{}".format),
    st.lists(st.none() | specs, max_size=4).map(tuple),
    st.lists(specs, max_size=2).map(tuple),
)


@given(any_op)
@settings(deadline=None, max_examples=400)
def test_any_operands_have_a_cost(op: OpSignature) -> None:
    """Empty tensors, missing arguments and shapes that make no sense are costed, never refused."""
    cost = MODEL.op(op)
    assert cost.on_cpu or cost.device_ns >= MODEL.runtime.neff_fixed_ns or not cost.host_ns
    assert cost.host_ns >= 0 and cost.device_ns >= 0


@given(st.lists(any_op.filter(lambda op: op.outputs), min_size=1, max_size=8), st.data())
@settings(deadline=None, max_examples=100)
def test_any_graph_has_a_cost(ops: list[OpSignature], data: st.DataObject) -> None:
    nodes: list[GraphNode] = []
    values = 4
    for op in ops:
        read = tuple(data.draw(st.none() | st.integers(0, values - 1)) for _ in op.inputs)
        made = tuple(range(values, values + len(op.outputs)))
        values += len(made)
        nodes.append(GraphNode(op, read, made))
    graph = GraphSpec("any", tuple(nodes), (0, 1, 2), (values - 1,))
    assert MODEL.graph(graph).device_ns >= MODEL.runtime.neff_fixed_ns


MODEL = CostModel.for_instance("trn2.3xlarge", 2)


def add(rows: int, columns: int) -> OpSignature:
    tensor = TensorSpec((rows, columns), "bfloat16")
    return OpSignature("aten::add", (tensor, tensor), (tensor,))


def mm(m: int, k: int, n: int) -> OpSignature:
    inputs = (TensorSpec((m, k), "bfloat16"), TensorSpec((k, n), "bfloat16"))
    return OpSignature("aten::mm", inputs, (TensorSpec((m, n), "bfloat16"),))


@given(st.integers(1, 64), st.integers(1, 64), st.integers(2, 8))
@settings(deadline=None, max_examples=40)
def test_more_bytes_are_never_faster(rows: int, columns: int, factor: int) -> None:
    small = MODEL.op(add(rows * 128, columns * 32)).device_ns
    large = MODEL.op(add(rows * 128 * factor, columns * 32)).device_ns
    assert large >= 0.98 * small


@given(st.integers(1, 16), st.integers(1, 16), st.integers(1, 16), st.integers(0, 2))
@settings(deadline=None, max_examples=30)
def test_a_product_twice_as_large_takes_longer(m: int, k: int, n: int, axis: int) -> None:
    shape = [m * 128, k * 128, n * 128]
    small = MODEL.op(mm(*shape)).device_ns
    shape[axis] *= 2
    assert MODEL.op(mm(*shape)).device_ns >= 0.98 * small


@given(st.integers(1, 16), st.integers(1, 16), st.integers(1, 16))
@settings(deadline=None, max_examples=30)
def test_no_product_beats_the_peak_or_the_bandwidth(m: int, k: int, n: int) -> None:
    cost = MODEL.op(mm(m * 128, k * 128, n * 128))
    assert cost.flops / cost.device_ns <= 157.3e3
    moved = cost.hbm_read_bytes + cost.hbm_write_bytes
    assert moved / cost.device_ns <= 2 * MODEL.core.dma_bytes_per_ns
    operands = 2 * 128 * 128 * (m * k + k * n)
    assert cost.hbm_read_bytes >= 0.99 * operands


loops = st.builds(Loop, bodies, st.integers(2, 9))
nested = st.lists(loops | instructions | transfers, min_size=1, max_size=3).map(tuple)


@given(nested, buffers, st.sampled_from([3, 40, 150]))
@settings(deadline=None, max_examples=40)
def test_nested_loops_in_closed_form_are_the_loops_unrolled(
    body: tuple[Instruction | DmaTransfer | Loop, ...], sizes: tuple[int, ...], count: int
) -> None:
    named = tuple(Tile(name, 64, size) for name, size in zip(TILES, sizes, strict=True))
    made = Program("p", named, (Loop(body, count),))
    scheduler = Scheduler(load_core("trn1"))
    closed, unrolled = scheduler.run(made), scheduler.run(made, 100_000)
    assert abs(closed.total_ns - unrolled.total_ns) <= 0.03 * unrolled.total_ns + 5
