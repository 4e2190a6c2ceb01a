"""Ops that move data: copies, casts, transposes, concatenation, gather, scatter, embedding."""

from __future__ import annotations

from dataclasses import replace

from trnscope.sim.cost.lowering.work import (
    Access,
    Lowered,
    MoveStage,
    Pass,
    RowStage,
    names,
    numel,
    read,
    reads,
    result,
    size_bytes,
    turned,
    write,
    writes,
)
from trnscope.sim.cost.program import item_bytes
from trnscope.sim.signature import OpSignature, TensorSpec

COPIES = names(
    "clone contiguous copy _to_copy to _copy_from _copy_from_and_resize repeat expand_copy"
    " view_copy permute_copy transpose_copy as_strided_copy resolve_conj resolve_neg lift_fresh"
    " alias_copy tile repeat_interleave detach_copy slice_copy select_copy"
)
JOINS = names(
    "cat stack concat hstack vstack constant_pad_nd roll flip unfold_copy im2col slice_scatter"
    " select_scatter"
)
GATHERS = names(
    "embedding index_select gather index take take_along_dim _unsafe_index _embedding_bag"
)
SCATTERS = names(
    "embedding_dense_backward index_put _index_put_impl _unsafe_index_put index_add index_copy"
    " scatter scatter_add scatter_reduce index_fill masked_scatter"
    " _embedding_bag_dense_backward select_backward slice_backward"
)
RANGES = names("arange linspace eye")
NAMES = frozenset([*COPIES, *JOINS, *GATHERS, *SCATTERS, *RANGES])


def lower(op: OpSignature, name: str) -> Lowered:
    """The op's movement."""
    if name in RANGES:
        return _range(op)
    if name in GATHERS:
        return _gather(op)
    if name in SCATTERS:
        return _scatter(op)
    if name in JOINS:
        return Lowered((MoveStage(reads(op), writes(op)),))
    return _copy(op)


def _source(op: OpSignature) -> TensorSpec | None:
    return max((s for s in op.inputs if s is not None), key=size_bytes, default=None)


def _copy(op: OpSignature) -> Lowered:
    source = _source(op)
    out = op.outputs[0] if op.outputs else source
    if source is None or out is None:
        return Lowered(())
    elements = numel(out)
    if turned(source) != turned(out):
        passes: tuple[Pass, ...] = (
            Pass("TRANSPOSE", "tensor", elements, out.dtype),
            Pass("TENSOR_COPY", "vector", elements, out.dtype),
        )
    elif source.dtype != out.dtype:
        wide = max(source.dtype, out.dtype, key=item_bytes)
        passes = (Pass("CAST", "vector", elements, wide),)
    else:
        return Lowered((MoveStage(reads(op), writes(op)),))
    return Lowered((RowStage(elements, out.dtype, passes, reads(op, elements), writes(op)),))


def _range(op: OpSignature) -> Lowered:
    elements = numel(result(op))
    dtype = result(op).dtype
    made = (Pass("IOTA", "gpsimd", elements, dtype),)
    return Lowered((RowStage(elements, dtype, made, (), writes(op)),))


def _row(spec: TensorSpec) -> int:
    """Bytes of one row, the unit that an index selects."""
    return (spec.shape[-1] if len(spec.shape) > 1 else 1) * item_bytes(spec.dtype)


def _gather(op: OpSignature) -> Lowered:
    """As many bytes are read from the table as are written, a row a descriptor."""
    source, out = _source(op), result(op)
    if source is None:
        return Lowered(())
    number = op.inputs.index(source)
    size = size_bytes(out)
    table = Access(number, size, max(1, min(size, _row(source))), indirect=True)
    others = [a for i in range(len(op.inputs)) if i != number and (a := read(op, i)) is not None]
    return Lowered((MoveStage((table, *others), (write(op),)),))


def _scatter(op: OpSignature) -> Lowered:
    """The target is written whole, then the rows are added or placed."""
    target = result(op)
    loads = reads(op)
    stores = tuple(
        replace(access, run_bytes=min(access.run_bytes, max(1, _row(op.outputs[access.value]))))
        for access in writes(op)
    )
    values = max(loads, key=lambda a: a.num_bytes, default=None)
    elements = 0 if values is None else values.num_bytes // 4
    if not elements:
        return Lowered((MoveStage(loads, stores),))
    added = (Pass("TENSOR_TENSOR", "vector", elements, target.dtype),)
    return Lowered((RowStage(elements, target.dtype, added, loads, stores),))
