"""Copies and fills: bytes only. A cast is a copy whose two sides have unlike types."""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read
from trnscope.analysis.flops.call import OpCall, Tensor
from trnscope.analysis.flops.work import Family, Work


def _work(size: int, dtype: str | None, *inputs: Tensor) -> Work:
    return Work(Family.COPY, 0, read(*inputs), elements(size, dtype), dtype)


def _copy(call: OpCall) -> Work:
    """``copy_(self, src)``: writes the first."""
    target = call.tensor(0)
    return _work(target.numel, target.dtype, call.tensor(1))


def _copy_from(call: OpCall) -> Work:
    """``_copy_from(self, dst)``: writes the second."""
    target = call.tensor(1)
    return _work(target.numel, target.dtype, call.tensor(0))


def _same_size(call: OpCall) -> Work:
    """``flip``, ``roll``: the elements in another order."""
    source = call.tensor(0)
    return _work(source.numel, source.dtype, source)


def _fill(call: OpCall) -> Work:
    """``fill_``, ``zero_``"""
    target = call.tensor(0)
    return _work(target.numel, target.dtype)


def _cat(call: OpCall) -> Work:
    """``cat(tensors, dim)``: the types of tensors in a list are not recorded."""
    call.tensor_list(0)
    return Work(Family.COPY, 0, None, None, None)


def _pad(call: OpCall) -> Work:
    """``constant_pad_nd(self, pad, value)``: pairs of widths, last dimension first."""
    source, widths = call.tensor(0), call.ints(1)
    shape = list(source.shape)
    for at in range(len(widths) // 2):
        shape[-1 - at] += widths[2 * at] + widths[2 * at + 1]
    return _work(math.prod(shape), source.dtype, source)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    "copy_": _copy,
    **dict.fromkeys(("_copy_from", "_copy_from_and_resize"), _copy_from),
    **dict.fromkeys(("flip", "roll"), _same_size),
    **dict.fromkeys(("fill_", "zero_"), _fill),
    "cat": _cat,
    "constant_pad_nd": _pad,
}
