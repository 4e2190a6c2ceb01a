"""Look-ups and their gradients: no arithmetic but the additions of what is summed up.

A look-up reads the rows that it names, each once at most; how many of them are the same is not
recorded, so that the table's size bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, total
from trnscope.analysis.flops.call import OpCall, Tensor, is_floating
from trnscope.analysis.flops.work import CannotCount, Family, Work


def _work(
    flops: int | None, reads: list[int | None], writes: list[int | None], dtype: str | None
) -> Work:
    return Work(Family.INDEXING, flops, total(reads), total(writes), dtype)


def _picked(table: Tensor, size: int) -> int | None:
    """Bytes read of a table for ``size`` elements."""
    return elements(min(size, table.numel), table.dtype)


def _embedding(call: OpCall) -> Work:
    """``embedding(weight, indices, ...)``"""
    table, index = call.tensor(0), call.tensor(1)
    size = index.numel * math.prod(table.shape[1:])
    return _work(
        0, [_picked(table, size), index.num_bytes], [elements(size, table.dtype)], table.dtype
    )


def _embedding_backward(call: OpCall) -> Work:
    """``embedding_dense_backward(grad_output, indices, num_weights, ...)``: adds rows up."""
    grad, index = call.tensor(0), call.tensor(1)
    row = grad.numel // max(index.numel, 1)
    return _work(
        grad.numel,
        [grad.num_bytes, index.num_bytes],
        [elements(call.int_value(2) * row, grad.dtype)],
        grad.dtype,
    )


def _index_select(call: OpCall) -> Work:
    """``index_select(self, dim, index)``"""
    table, index = call.tensor(0), call.tensor(2)
    dim = call.int_value(1)
    if not -len(table.shape) <= dim < len(table.shape) or table.shape[dim] == 0:
        raise CannotCount("the dimension is none of the table's")
    size = table.numel // table.shape[dim] * index.numel
    return _work(
        0, [_picked(table, size), index.num_bytes], [elements(size, table.dtype)], table.dtype
    )


def _gather(call: OpCall) -> Work:
    """``gather(self, dim, index)``: an element for each index."""
    table, index = call.tensor(0), call.tensor(2)
    return _work(
        0,
        [_picked(table, index.numel), index.num_bytes],
        [elements(index.numel, table.dtype)],
        table.dtype,
    )


def _scatter(call: OpCall, *, adds: bool) -> Work:
    """``scatter(self, dim, index, src)``: into a copy of ``self`` unless in place."""
    target, index, source = call.tensor(0), call.tensor(2), call.optional(3)
    size = index.numel if source is None else min(source.numel, index.numel)
    values = None if source is None else elements(size, source.dtype)
    return _into(call, target, size, [index.num_bytes, *([values] if source else [])], adds=adds)


def _into(call: OpCall, target: Tensor, size: int, reads: list[int | None], *, adds: bool) -> Work:
    if call.name.endswith("_"):
        written = elements(min(size, target.numel), target.dtype)
        reads = [*reads, written] if adds else reads
    else:
        written = elements(target.numel, target.dtype)
        reads = [*reads, target.num_bytes]
    flops = size if adds and is_floating(target.dtype) else 0
    return _work(flops, reads, [written], target.dtype)


def _scatter_plain(call: OpCall) -> Work:
    return _scatter(call, adds=False)


def _scatter_add(call: OpCall) -> Work:
    return _scatter(call, adds=True)


def _index_add(call: OpCall) -> Work:
    """``index_add(self, dim, index, source)``"""
    index, source = call.tensor(2), call.tensor(3)
    reads = [index.num_bytes, source.num_bytes]
    return _into(call, call.tensor(0), source.numel, reads, adds=True)


def _index_put(call: OpCall) -> Work:
    """``index_put(self, indices, values, accumulate)``: which indices is not recorded."""
    values = call.tensor(2)
    return _into(call, call.tensor(0), values.numel, [values.num_bytes], adds=call.flag(3))


def _sort(call: OpCall) -> Work:
    """``sort``: the comparisons depend on the values; positions are written too."""
    source = call.tensor(0)
    written = [elements(source.numel, source.dtype), elements(source.numel, "int64")]
    return _work(None, [source.num_bytes], written, source.dtype)


def _topk(call: OpCall) -> Work:
    """``topk(self, k, dim, ...)``"""
    source, dim = call.tensor(0), call.int_value(2)
    if not -len(source.shape) <= dim < len(source.shape) or source.shape[dim] == 0:
        raise CannotCount("the dimension is none of the input's")
    size = source.numel // source.shape[dim] * call.int_value(1)
    written = [elements(size, source.dtype), elements(size, "int64")]
    return _work(None, [source.num_bytes], written, source.dtype)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "index_select": _index_select,
    "gather": _gather,
    "scatter": _scatter_plain,
    "scatter_add": _scatter_add,
    "index_add": _index_add,
    **dict.fromkeys(("index_put", "_index_put_impl_"), _index_put),
    "sort": _sort,
    "topk": _topk,
}
