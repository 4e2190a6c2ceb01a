"""Names of programs: what the cache key of a simulated NEFF tells."""

from __future__ import annotations

from trnscope.sim.signature import (
    CollectiveSpec,
    ExecutionCost,
    GraphNode,
    GraphSpec,
    OpSignature,
    TensorSpec,
)
from trnscope.sim.virtual_trace.programs import cache_key, program_of
from trnscope.sim.virtual_trace.recording import Work

X = TensorSpec((128, 1024), "bfloat16")
COST = ExecutionCost(
    host_ns=1, device_ns=2, on_cpu=True, flops=7, hbm_read_bytes=512, hbm_write_bytes=2
)
LOSS = OpSignature("aten::mse_loss", (X, None, X), (TensorSpec((), "bfloat16"),))


def test_a_key_names_the_op_and_its_shapes() -> None:
    name, _, digest = cache_key(LOSS).rpartition(":")
    assert name == "mse_loss--_[128,1024]:bfloat16_[128,1024]:bfloat16"
    assert len(digest) == 64


def test_equal_work_has_equal_keys_and_other_work_others() -> None:
    scaled = OpSignature(LOSS.name, LOSS.inputs, LOSS.outputs, (("reduction", 1),))
    assert cache_key(LOSS) == cache_key(OpSignature(LOSS.name, LOSS.inputs, LOSS.outputs))
    assert cache_key(LOSS) != cache_key(scaled)


def test_a_graph_is_named_by_what_it_reads() -> None:
    node = GraphNode(LOSS, (1, None, 2), (3,))
    graph = GraphSpec("model_default", (node,), inputs=(2,), outputs=(3,))
    assert cache_key(graph).startswith("model_default--_[128,1024]:bfloat16:")


def test_long_lists_are_cut() -> None:
    many = OpSignature("aten::cat", (X,) * 10, (X,))
    assert "_+2:" in cache_key(many)


def test_copies_and_collectives_run_no_program_of_the_cache() -> None:
    copy = program_of("Memcpy h2d", None, COST)
    assert (copy.cache_key, copy.work) == (None, None)
    reduce = program_of("all_reduce", CollectiveSpec("all_reduce", 4096, 2), COST)
    assert reduce.cache_key is None
    assert reduce.collective is not None
    assert (reduce.collective.num_elements, reduce.collective.group_size) == (2048, 2)


def test_a_program_knows_its_work() -> None:
    fallback = program_of("aten::mse_loss", LOSS, COST)
    assert (fallback.on_cpu, fallback.cache_key) == (True, cache_key(LOSS))
    assert fallback.work == Work(flops=7, hbm_read_bytes=512, hbm_write_bytes=2)
