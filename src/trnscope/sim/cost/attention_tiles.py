"""Attention in tiles of 128 queries by up to 512 keys, whose scores never leave the chip.

The matrix engine works on the next tile's scores while the other engines are at this tile's
softmax: a loop's body names the products of earlier iterations first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trnscope.sim.cost.lowering.work import AttentionStage
from trnscope.sim.cost.program import DmaTransfer, Engine, Instruction, Loop, item_bytes

if TYPE_CHECKING:
    from trnscope.sim.cost.tiling import Step, TileBuilder

QUERIES = 128
KEYS = 512


def _parts(total: int, size: int) -> int:
    return max(1, -(-total // size))


def emit(builder: TileBuilder, stage: AttentionStage) -> None:
    """Appends a loop over the heads of one physical core."""
    stage = replace(stage, query=max(1, stage.query), key=max(1, stage.key))
    heads = _parts(stage.batch, builder.shards)
    share = builder.shards * heads
    width = item_bytes(stage.dtype)
    inputs: list[str] = []
    body: list[Step] = []
    for access in stage.loads:
        size = _parts(access.num_bytes, share)
        run = max(1, min(access.run_bytes, stage.head * width * 16))
        inputs.append(builder.tile("qkv", _parts(size, QUERIES)))
        body.append(DmaTransfer("qkv", "load", size, run, writes=(inputs[-1],)))
    result = builder.tile("attention", stage.value_head * 4)
    body.append(_tiles(builder, stage, tuple(inputs), result))
    for access in stage.stores:
        size = _parts(access.num_bytes, share)
        run = max(1, min(access.run_bytes, stage.value_head * width))
        body.append(DmaTransfer("output", "store", size, run, "store", reads=(result,)))
    builder.steps.append(Loop(tuple(body), heads))


def _tiles(
    builder: TileBuilder, stage: AttentionStage, inputs: tuple[str, ...], result: str
) -> Loop:
    keys = min(KEYS, stage.key)
    count = _parts(stage.query, QUERIES) * _parts(stage.key, keys)
    if stage.causal and count > 1:
        count = (count + 1) // 2
    scores = _scores(builder, stage, keys, inputs + builder.resident_in)
    weights = builder.tiles[-1].name
    values = _values(builder, stage, keys, weights, (result, *builder.resident_out))
    return Loop((*values, *scores) if count > 1 else (*scores, *values), count)


def _scores(
    builder: TileBuilder, stage: AttentionStage, keys: int, inputs: tuple[str, ...]
) -> list[Step]:
    """Products of queries and keys, and their softmax."""
    queries = min(QUERIES, stage.query)
    products = (stage.products + 1) // 3
    scores = builder.tile("scores", keys * 4, psum=True)
    peak = builder.tile("max", 4)
    weights = builder.tile("weights", keys * item_bytes(stage.dtype))
    return [
        Instruction(
            "MATMUL",
            "tensor",
            keys,
            stage.dtype,
            queries,
            inputs,
            (scores,),
            repeat=_parts(stage.head, QUERIES) * products,
            flops=2 * queries * keys * stage.head * products,
        ),
        _from_psum("TENSOR_REDUCE", "vector", keys, queries, (scores,), (peak,)),
        _from_psum("ACTIVATE_REDUCE", "scalar", keys, queries, (scores, peak), (weights,)),
    ]


def _values(
    builder: TileBuilder, stage: AttentionStage, keys: int, weights: str, out: tuple[str, ...]
) -> list[Step]:
    """The softmax turned, its products with the values, and their sum over the keys."""
    queries = min(QUERIES, stage.query)
    depth = _parts(keys, QUERIES)
    products = stage.products - (stage.products + 1) // 3
    dtype = stage.dtype
    turned_psum = builder.tile("turned", keys * 4, psum=True)
    turned = builder.tile("turned", keys * item_bytes(dtype))
    product = builder.tile("product", stage.value_head * 4, psum=True)
    return [
        Instruction(
            "MATMUL",
            "tensor",
            stage.value_head,
            dtype,
            queries,
            (turned,),
            (product,),
            repeat=depth * products,
            flops=2 * queries * keys * stage.value_head * products,
        ),
        replace(
            _from_psum(
                "SCALAR_TENSOR_TENSOR", "vector", stage.value_head, queries, (product,), out
            ),
            dtype=dtype,
            repeat=products,
        ),
        Instruction(
            "TRANSPOSE",
            "tensor",
            min(QUERIES, keys),
            dtype,
            queries,
            (weights,),
            (turned_psum,),
            repeat=depth,
        ),
        replace(
            _from_psum("TENSOR_COPY", "vector", keys, queries, (turned_psum,), (turned,)),
            dtype=dtype,
        ),
    ]


def _from_psum(
    opcode: str,
    engine: Engine,
    elements: int,
    queries: int,
    reads: tuple[str, ...],
    writes: tuple[str, ...],
) -> Instruction:
    return Instruction(opcode, engine, elements, "float32", queries, reads, writes, from_psum=True)
