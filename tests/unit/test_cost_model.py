"""Costs of ops, graphs, copies and collectives: closed forms, laws and documented facts."""

from __future__ import annotations

import hashlib

import pytest

from trnscope.sim.cost import CostModel
from trnscope.sim.cost.lowering import registry
from trnscope.sim.cost.program import DmaTransfer, Instruction, leaves
from trnscope.sim.signature import (
    CollectiveKind,
    CollectiveSpec,
    GraphNode,
    GraphSpec,
    OpSignature,
    TensorSpec,
)

MODEL = CostModel.for_instance("trn2.3xlarge", lnc=2)
ONE_CORE = CostModel.for_instance("trn2.3xlarge", lnc=1)
TRN1 = CostModel.for_instance("trn1.32xlarge")


def spec(*shape: int, dtype: str = "bfloat16") -> TensorSpec:
    return TensorSpec(shape, dtype)


def op(name: str, inputs: list[TensorSpec], *outputs: TensorSpec) -> OpSignature:
    return OpSignature(f"aten::{name}", tuple(inputs), outputs)


def mm(m: int, k: int, n: int, dtype: str = "bfloat16") -> OpSignature:
    return op("mm", [spec(m, k, dtype=dtype), spec(k, n, dtype=dtype)], spec(m, n, dtype=dtype))


def test_a_large_product_reaches_most_of_the_peak() -> None:
    cost = MODEL.op(mm(8192, 8192, 8192))
    rate = cost.flops / cost.device_ns / 1e3
    assert cost.flops == pytest.approx(2 * 8192**3, rel=0.01)
    assert 0.85 * 157.3 < rate < 157.3


def test_float32_takes_four_times_as_long() -> None:
    ratio = (
        ONE_CORE.op(mm(8192, 4096, 4096, "float32")).device_ns
        / ONE_CORE.op(mm(8192, 4096, 4096)).device_ns
    )
    assert ratio == pytest.approx(4, rel=0.1)


def test_two_physical_cores_halve_a_large_product() -> None:
    ratio = ONE_CORE.op(mm(8192, 4096, 4096)).device_ns / MODEL.op(mm(8192, 4096, 4096)).device_ns
    assert ratio == pytest.approx(2, rel=0.1)


def test_one_row_costs_the_reading_of_its_weights() -> None:
    cost = MODEL.op(mm(1, 8192, 8192))
    floor = 2 * 8192 * 8192 / (2 * MODEL.core.dma_bytes_per_ns)
    assert floor < cost.device_ns < 1.5 * floor
    assert cost.hbm_read_bytes == pytest.approx(2 * 8192 * 8192, rel=0.01)


def test_an_addition_moves_its_operands_once() -> None:
    tensor = spec(4096, 4096, dtype="float32")
    cost = MODEL.op(op("add", [tensor, tensor], tensor))
    assert cost.hbm_read_bytes == 2 * 4 * 4096 * 4096
    assert cost.hbm_write_bytes == 4 * 4096 * 4096
    floor = 3 * 4 * 4096 * 4096 / (2 * MODEL.core.dma_bytes_per_ns)
    assert floor < cost.device_ns < 1.3 * floor


def test_a_tiny_op_costs_a_neff_and_its_two_dma_latencies() -> None:
    tensor = spec(4)
    cost = MODEL.op(op("add", [tensor, tensor], tensor))
    assert MODEL.runtime.neff_fixed_ns + 2000 < cost.device_ns < MODEL.runtime.neff_fixed_ns + 8000
    assert cost.host_ns == MODEL.runtime.eager_dispatch_ns
    assert cost.compile_ns > 0


def test_a_turned_weight_is_laid_out_first() -> None:
    value, out = spec(512, 4096), spec(512, 4096)
    plain = MODEL.op(op("mm", [value, spec(4096, 4096)], out))
    turned = MODEL.op(op("mm", [value, TensorSpec((4096, 4096), "bfloat16", (1, 4096))], out))
    weight = 2 * 4096 * 4096
    assert turned.hbm_write_bytes == pytest.approx(plain.hbm_write_bytes + weight, rel=0.01)
    assert turned.device_ns > plain.device_ns


def test_a_view_costs_nothing() -> None:
    cost = MODEL.op(op("view", [spec(8, 8)], spec(64)))
    assert (cost.host_ns, cost.device_ns) == (0, 0)


def test_an_unknown_op_is_costed_by_its_bytes_and_says_so() -> None:
    tensor = spec(1024, 1024)
    unknown = op("no_such_op", [tensor], tensor)
    assert not registry.has_lowering("aten::no_such_op")
    assert "no lowering of its own" in MODEL.lower(unknown).notes[0]
    cost = MODEL.op(unknown)
    assert cost.hbm_read_bytes == 2 * 1024 * 1024
    assert cost.device_ns > MODEL.runtime.neff_fixed_ns


def test_an_op_without_the_device_falls_back_with_its_copies() -> None:
    cost = MODEL.op(op("nonzero", [spec(1024, 1024)], spec(1024, 2, dtype="int64")))
    assert cost.on_cpu and cost.device_ns == 0
    copies = MODEL.copy("d2h", 2 << 20).device_ns + MODEL.copy("h2d", 16384).device_ns
    assert cost.host_ns > copies


@pytest.mark.parametrize("name", ["add_", "add.Tensor", "add"])
def test_in_place_and_overloaded_names_are_the_same_op(name: str) -> None:
    tensor = spec(512, 512)
    assert MODEL.op(op(name, [tensor, tensor], tensor)) == MODEL.op(
        op("add", [tensor, tensor], tensor)
    )


@pytest.mark.parametrize(
    ("name", "lists", "attributes"),
    [
        ("_foreach_add_", 2, (("alpha", 1),)),
        ("_foreach_mul_", 1, (("scalar", 0.9),)),
        ("_foreach_sqrt", 1, ()),
        ("_foreach_addcdiv_", 3, (("scalars", (1.0, 1.0)),)),
    ],
)
def test_an_op_over_lists_reads_each_list_once(
    name: str, lists: int, attributes: tuple[tuple[str, object], ...]
) -> None:
    tensors = [spec(1024, 1024), spec(2048, 1024)] * lists
    one_list = 2 * 3 * 1024 * 1024
    cost = MODEL.op(OpSignature(f"aten::{name}", tuple(tensors), (), attributes))  # type: ignore[arg-type]
    assert cost.hbm_read_bytes == pytest.approx(lists * one_list, rel=0.01)
    assert cost.hbm_write_bytes == pytest.approx(one_list, rel=0.01)


def test_programs_name_instructions_as_the_explorer_does() -> None:
    steps = [step for step, _ in leaves(MODEL.lower(mm(512, 512, 512)).steps)]
    opcodes = {step.opcode for step in steps if isinstance(step, Instruction)}
    assert "MATMUL" in opcodes
    directions = {step.direction for step in steps if isinstance(step, DmaTransfer)}
    assert directions == {"load", "store"}


def test_convolution_counts_its_products() -> None:
    image, weight = spec(8, 64, 56, 56), spec(128, 64, 3, 3)
    cost = MODEL.op(op("convolution", [image, weight], spec(8, 128, 56, 56)))
    assert cost.flops == pytest.approx(2 * 8 * 56 * 56 * 128 * 64 * 9, rel=0.01)


def test_attention_never_writes_its_scores() -> None:
    heads = spec(1, 32, 2048, 128)
    cost = MODEL.op(op("scaled_dot_product_attention", [heads] * 3, heads))
    assert cost.hbm_write_bytes == pytest.approx(2 * 32 * 2048 * 128, rel=0.01)
    assert cost.flops == pytest.approx(4 * 32 * 2048 * 2048 * 128, rel=0.01)


def chain(length: int, size: int) -> GraphSpec:
    tensor = spec(size, size)
    add = op("add", [tensor, tensor], tensor)
    nodes = tuple(GraphNode(add, (0, number), (number + 1,)) for number in range(length))
    return GraphSpec("chain", nodes, (0,), (length,))


def test_a_compiled_chain_reads_its_input_and_writes_its_output_only() -> None:
    cost = MODEL.graph(chain(8, 1024))
    assert cost.hbm_write_bytes == 2 * 1024 * 1024
    assert cost.hbm_read_bytes == 2 * 1024 * 1024


def test_compiled_is_faster_than_op_by_op() -> None:
    tensor = spec(1024, 1024)
    eager = 8 * MODEL.op(op("add", [tensor, tensor], tensor)).device_ns
    assert MODEL.graph(chain(8, 1024)).device_ns < eager / 3


def activated(reduction: str, **attributes: int) -> GraphSpec:
    """A function whose result is reduced along rows."""
    tensor, row = spec(1024, 1024), spec(1024)
    reduce = OpSignature(f"aten::{reduction}", (tensor,), (row,), tuple(attributes.items()))
    nodes = (
        GraphNode(op("exp", [tensor], tensor), (0,), (1,)),
        GraphNode(reduce, (1,), (2,)),
    )
    return GraphSpec(reduction, nodes, (0,), (2,))


def opcodes_of(graph: GraphSpec) -> set[str]:
    steps = [step for step, _ in leaves(MODEL.lower(graph).steps)]
    return {step.opcode for step in steps if isinstance(step, Instruction)}


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_sum_is_taken_as_the_function_goes(reduction: str) -> None:
    assert opcodes_of(activated(reduction)) == {"ACTIVATE_REDUCE"}


@pytest.mark.parametrize("reduction", ["amax", "amin", "prod", "any", "_softmax"])
def test_other_reductions_need_a_pass_of_their_own(reduction: str) -> None:
    assert {"ACTIVATE", "TENSOR_REDUCE"} <= opcodes_of(activated(reduction))


def test_a_product_of_mixed_types_runs_in_the_wider_one() -> None:
    mixed = op("mm", [spec(512, 512), spec(512, 512, dtype="int64")], spec(512, 512))
    steps = [step for step, _ in leaves(MODEL.lower(mixed).steps)]
    products = {s.dtype for s in steps if isinstance(s, Instruction) and s.opcode == "MATMUL"}
    assert products == {"int64"}


def two_products(size: int) -> GraphSpec:
    product = mm(size, size, size)
    nodes = (GraphNode(product, (0, 1), (2,)), GraphNode(product, (2, 1), (3,)))
    return GraphSpec("two", nodes, (0, 1), (3,))


def test_a_value_stays_on_the_chip_where_it_fits_and_is_spilled_where_not() -> None:
    kept, spilled = MODEL.graph(two_products(1024)), MODEL.graph(two_products(8192))
    assert kept.hbm_write_bytes == 2 * 1024 * 1024
    assert spilled.hbm_write_bytes == 2 * 2 * 8192 * 8192


def test_copies_slow_down_beyond_the_staging_buffer() -> None:
    small, large = MODEL.copy("h2d", 16 << 20), MODEL.copy("h2d", 1 << 30)
    assert (16 << 20) / small.device_ns == pytest.approx(11.55, rel=0.03)
    assert (1 << 30) / large.device_ns == pytest.approx(3.68, rel=0.03)


@pytest.mark.parametrize(
    ("ranks", "size", "measured_us"),
    [
        (2, 1 << 10, 2.1),
        (2, 1 << 30, 18995.9),
        (8, 1 << 20, 70.3),
        (8, 1 << 31, 56035.3),
        (16, 1 << 30, 29283.5),
        (32, 64 << 10, 12.5),
        (32, 1 << 30, 16218.4),
    ],
)
def test_all_reduce_in_a_graph_at_published_points(
    ranks: int, size: int, measured_us: float
) -> None:
    time = TRN1.collectives.in_graph_ns(CollectiveSpec("all_reduce", size, ranks))
    assert time / 1e3 == pytest.approx(measured_us, rel=0.08)


@pytest.mark.parametrize(
    ("instance", "ranks", "measured_ms"),
    [
        ("trn1.32xlarge", 8, 2.45),
        ("trn1.32xlarge", 32, 5.1),
        ("trn2.48xlarge", 4, 1.04),
        ("trn2.48xlarge", 64, 2.973),
    ],
)
def test_the_barrier_of_a_graph_with_a_collective(
    instance: str, ranks: int, measured_ms: float
) -> None:
    model = CostModel.for_instance(instance)
    assert model.collectives.barrier_ns(ranks) / 1e6 == pytest.approx(measured_ms, rel=0.03)


def test_more_bytes_never_take_less_where_a_regime_ends() -> None:
    """At 1 MiB the law for small sizes of 8 ranks gives 74 us, that for large ones 57."""
    sizes = [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 19, 2 << 20]
    times = [TRN1.collectives.in_graph_ns(CollectiveSpec("all_reduce", n, 8)) for n in sizes]
    assert times == sorted(times)
    assert times[2] == pytest.approx(6500 + (1 << 20) / 15.5)
    assert times[-1] == pytest.approx(30_000 + (2 << 20) / 38.7)


def test_groups_beyond_the_tables_send_as_many_bytes_as_their_ranks_do() -> None:
    """64 ranks: 63/64 of the buffer for 31/32 of it, and the latency of one more doubling."""
    laws = CostModel.for_instance("trn2.48xlarge", 2).collectives
    time = laws.in_graph_ns(CollectiveSpec("all_reduce", 1 << 30, 64))
    assert time == pytest.approx(159_000 + (1 << 30) * (63 / 64) / (31 / 32) / 69.9 + 1700)


def test_operands_of_a_collective_are_handed_over_in_memory() -> None:
    spec_of = CollectiveSpec("all_reduce", 32 << 10, 2)
    laws = TRN1.collectives
    added = laws.time_ns(spec_of, "handed_over") - laws.time_ns(spec_of)
    assert added == pytest.approx((880 + 730 + 580) + (730 + 580 + 290))
    assert laws.time_ns(CollectiveSpec("all_reduce", 1 << 20, 1), "old_runtime") == 0


@pytest.mark.parametrize(
    ("instance", "borrowed_from", "num_borrowed"),
    [
        ("trn1.32xlarge", None, 1),  # what each collective of a compiled model costs: trn2's
        ("trn2.48xlarge", "trn1", 2),
        ("trn3.48xlarge", "trn1", 4),
        ("inf2.48xlarge", "trn1", 4),
    ],
)
def test_laws_that_were_measured_on_another_chip_say_so(
    instance: str, borrowed_from: str | None, num_borrowed: int
) -> None:
    model = CostModel.for_instance(instance)
    assert model.collectives.borrowed_from == borrowed_from
    assert len(model.notes) == num_borrowed
    assert all(": borrowed from trn" in note for note in model.notes)


def test_one_rank_needs_no_collective() -> None:
    assert TRN1.collectives.in_graph_ns(CollectiveSpec("all_reduce", 1 << 20, 1)) == 0
    assert TRN1.collectives.barrier_ns(1) == 0


def test_memory_and_names_of_a_logical_core() -> None:
    assert MODEL.hbm_bytes_per_core == 24 << 30
    assert MODEL.num_logical_cores == 4
    assert "trn2.3xlarge" in MODEL.name
    assert CostModel.for_instance("trn1").hbm_bytes_per_core == 16 << 30


def in_the_middle(op_: OpSignature, out: TensorSpec) -> GraphSpec:
    """A function, the op, and a function of its result."""
    tensor = spec(1024, 1024)
    nodes = (
        GraphNode(op("exp", [tensor], tensor), (0,), (1,)),
        GraphNode(op_, (1,), (2,)),
        GraphNode(op("exp", [out], out), (2,), (3,)),
    )
    return GraphSpec("middle", nodes, (0,), (3,))


def test_a_graph_with_an_op_of_the_host_pays_the_fallback_of_eager_mode() -> None:
    out = spec(1024, 2, dtype="int64")
    fallback = op("nonzero", [spec(1024, 1024)], out)
    cost, alone = MODEL.graph(in_the_middle(fallback, out)), MODEL.op(fallback)
    assert cost.on_cpu
    launch = MODEL.runtime.graph_launch_ns + MODEL.runtime.graph_input_ns
    assert cost.host_ns == launch + alone.host_ns
    # Two functions read and write their tensors; the copies read and write the op's.
    tensor, result = 2 << 20, 16384
    assert cost.hbm_read_bytes == 2 * tensor + result
    assert cost.hbm_write_bytes == tensor + 2 * result
    assert not MODEL.graph(chain(2, 1024)).on_cpu


def functional(name: str, out: TensorSpec, **attributes: int) -> OpSignature:
    return OpSignature(
        f"_c10d_functional::{name}", (spec(1024, 1024),), (out,), tuple(attributes.items())
    )


@pytest.mark.parametrize(
    ("name", "kind", "rows", "ranks"),
    [
        ("all_reduce", "all_reduce", 1024, None),
        ("all_gather_into_tensor", "all_gather", 2048, 2),
        ("reduce_scatter_tensor", "reduce_scatter", 512, 2),
    ],
)
def test_a_collective_in_a_graph_takes_the_time_of_the_collective_model(
    name: str, kind: CollectiveKind, rows: int, ranks: int | None
) -> None:
    out = spec(rows, 1024)
    attributes = {} if ranks is None else {"group_size": ranks}
    reduce = functional(name, out, **attributes)
    plain = GraphSpec(
        "plain",
        tuple(
            GraphNode(op("exp", [tensor], tensor), (2 * n,), (2 * n + 1,))
            for n, tensor in enumerate((spec(1024, 1024), out))
        ),
        (0, 2),
        (1, 3),
    )
    law = CollectiveSpec(kind, 2 * 1024 * max(1024, rows), ranks or MODEL.num_logical_cores)
    added = MODEL.collectives.of_a_graph_ns([law])
    cost = MODEL.graph(in_the_middle(reduce, out))
    assert cost.device_ns == pytest.approx(MODEL.graph(plain).device_ns + added, abs=1)
    assert MODEL.op(reduce) == MODEL.collective(law)


def test_waiting_for_a_collective_is_free() -> None:
    tensor = spec(1024, 1024)
    wait = functional("wait_tensor", tensor)
    waited, plain = MODEL.graph(in_the_middle(wait, tensor)), MODEL.graph(chain_of_functions())
    assert (waited.device_ns, waited.engine_ns) == (plain.device_ns, plain.engine_ns)
    assert registry.has_lowering("_c10d_functional::all_reduce_")
    assert not registry.has_lowering("other::all_reduce")


def chain_of_functions() -> GraphSpec:
    tensor = spec(1024, 1024)
    exp = op("exp", [tensor], tensor)
    return GraphSpec("middle", (GraphNode(exp, (0,), (1,)), GraphNode(exp, (1,), (3,))), (0,), (3,))


def test_a_graph_pays_one_barrier_for_all_its_collectives() -> None:
    spec_ = CollectiveSpec("all_reduce", 1 << 20, 8)
    laws = TRN1.collectives
    one, two = laws.of_a_graph_ns([spec_]), laws.of_a_graph_ns([spec_, spec_])
    assert two - one == pytest.approx(laws.in_graph_ns(spec_) + laws.compiled_ns)
    assert laws.of_a_graph_ns([CollectiveSpec("all_reduce", 1 << 20, 1)]) == 0


def topk(rows: int, length: int, kept: int, lnc: CostModel = ONE_CORE) -> float:
    out = spec(rows, kept, dtype="float32")
    top = op("topk", [spec(rows, length, dtype="float32")], out, spec(rows, kept, dtype="int64"))
    return lnc.op(top).engine_ns["gpsimd"]


@pytest.mark.parametrize(("rows", "in_turn"), [(1, 1), (100, 1), (128, 1), (256, 2)])
def test_topk_takes_the_documented_cycles_for_each_row_of_a_partition(
    rows: int, in_turn: int
) -> None:
    cycles = in_turn * (4 * 65536 + 64)
    assert topk(rows, 65536, 64) == pytest.approx(cycles / 1.2, rel=0.02)


def test_one_row_is_not_shared_between_two_cores() -> None:
    assert topk(1, 65536, 64, MODEL) == pytest.approx(topk(1, 65536, 64), rel=0.02)
    assert topk(256, 65536, 64, MODEL) == pytest.approx(topk(256, 65536, 64) / 2, rel=0.02)


def test_topk_and_sort_go_along_the_axis_that_they_name() -> None:
    tensor = spec(4096, 128, dtype="float32")
    along = OpSignature("aten::sort", (tensor,), (tensor,), (("dim", 0),))
    turned = op("sort", [spec(128, 4096, dtype="float32")], spec(128, 4096, dtype="float32"))
    assert ONE_CORE.op(along).engine_ns["gpsimd"] == ONE_CORE.op(turned).engine_ns["gpsimd"]


def test_sorting_a_long_row_is_not_quadratic() -> None:
    def sort(length: int) -> int:
        tensor = spec(128, length, dtype="float32")
        return ONE_CORE.op(op("sort", [tensor], tensor)).device_ns

    assert sort(1 << 16) < 2.5 * sort(1 << 15)
    assert sort(1 << 20) < 45 * sort(1 << 15)
    assert sort(8) < sort(64) < sort(1024)


@pytest.mark.parametrize(
    ("empty", "written"),
    [
        (mm(0, 512, 512), 0),
        (mm(512, 512, 0), 0),
        (mm(512, 0, 512), 512 * 512 * 2),
        (op("bmm", [spec(0, 8, 8), spec(0, 8, 8)], spec(0, 8, 8)), 0),
        (op("add", [spec(0, 8), spec(0, 8)], spec(0, 8)), 0),
        (op("sum", [spec(0, 8)], spec(8)), 16),
        (op("cat", [spec(0, 8), spec(0, 8)], spec(0, 8)), 0),
        (op("nonzero", [spec(0)], spec(0, 1, dtype="int64")), 0),
        (op("no_such_op", [spec(4, 0)], spec(4, 0)), 0),
        (op("convolution", [spec(0, 3, 8, 8), spec(4, 3, 1, 1)], spec(0, 4, 8, 8)), 0),
    ],
)
def test_an_empty_tensor_has_neither_work_nor_bytes(empty: OpSignature, written: int) -> None:
    cost = MODEL.op(empty)
    assert (cost.flops, cost.hbm_read_bytes) == (0, 0)
    assert cost.hbm_write_bytes == written
    opcodes = {s.opcode for s, _ in leaves(MODEL.lower(empty).steps) if isinstance(s, Instruction)}
    assert opcodes <= {"MEMSET", "ACTIVATE"}


def test_an_empty_operand_among_others_adds_nothing() -> None:
    tensor = spec(1024, 1024)
    with_empty = op("cat", [spec(0, 1024), tensor, tensor], spec(2048, 1024))
    assert MODEL.op(with_empty) == MODEL.op(op("cat", [tensor, tensor], spec(2048, 1024)))
    biased = op("addmm", [spec(512), spec(512, 0), spec(0, 512)], spec(512, 512))
    cost = MODEL.op(biased)
    assert (cost.flops, cost.hbm_read_bytes) == (0, 1024 * MODEL.instance.lnc)


def test_attention_over_no_keys_only_fills_its_result() -> None:
    query, key = spec(1, 8, 128, 64), spec(1, 8, 0, 64)
    cost = MODEL.op(op("scaled_dot_product_attention", [query, key, key], query))
    assert (cost.flops, cost.hbm_read_bytes) == (0, 0)
    assert cost.hbm_write_bytes == 2 * 8 * 128 * 64


COSTS_OF_VERSION = ("3.1.1", "d9492a9591a32f69")
"""The version, and a digest of what it costs: see the test below."""


def test_a_time_that_moves_raises_the_version() -> None:
    """If this fails, raise VERSION in model.py and note both here: users compare times by it."""
    costs = [MODEL.copy(kind, 1 << 26) for kind in ("h2d", "d2h", "d2d")]
    costs += [MODEL.collective(CollectiveSpec("all_reduce", 1 << 20, n)) for n in (2, 4)]
    costs += [MODEL.graph(graph) for graph in (chain(8, 1024), two_products(1024))]
    for dtype in ("float32", "bfloat16", "int64"):
        tensor = spec(1000, 1024, dtype=dtype)
        costs.append(MODEL.op(mm(1024, 512, 2048, dtype)))
        costs += [
            MODEL.op(op(name, [tensor, tensor], tensor))
            for name in (
                "add",
                "exp",
                "sum",
                "_softmax",
                "native_layer_norm",
                "cat",
                "topk",
                "sort",
            )
        ]
    digest = hashlib.sha256(repr(costs).encode()).hexdigest()[:16]
    assert (MODEL.version, digest) == COSTS_OF_VERSION
