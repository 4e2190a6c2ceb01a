"""Pooling: one FLOP for each element of each window, and a division for an average."""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor
from trnscope.analysis.flops.work import CannotCount, Family, Work


def _windows(
    source: Tensor,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    *,
    ceil: bool,
) -> int:
    """Positions of the window in one channel of one image."""
    num_dims = len(kernel)
    lengths = source.shape[len(source.shape) - num_dims :]
    each = [value * num_dims if len(value) == 1 else value for value in (stride, padding, dilation)]
    positions = 1
    for length, size, step, pad, spread in zip(lengths, kernel, *each, strict=True):
        span = length + 2 * pad - spread * (size - 1) - 1
        steps = -(-span // step) if ceil else span // step
        if ceil and steps * step >= length + pad:
            steps -= 1
        positions *= steps + 1
    return positions


def _channels(source: Tensor, num_dims: int) -> int:
    return math.prod(source.shape[: len(source.shape) - num_dims])


def _strides(call: OpCall, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """The stride, which is the kernel's size where none was given."""
    try:
        return call.ints(2)
    except CannotCount:
        return kernel


def _max_pool(call: OpCall) -> Work:
    """``max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil)``"""
    source, kernel = call.tensor(0), call.ints(1)
    if len(kernel) == 1:
        kernel *= 2
    positions = _windows(
        source,
        kernel,
        _strides(call, kernel),
        call.ints(3),
        call.ints(4),
        ceil=call.flag(5),
    )
    size = positions * _channels(source, len(kernel))
    return Work(
        family=Family.POOLING,
        flops=size * math.prod(kernel),
        read_bytes=read(source),
        write_bytes=total([elements(size, source.dtype), elements(size, "int64")]),
        dtype=source.dtype,
    )


def _max_pool_backward(call: OpCall) -> Work:
    """``(grad_output, self, ..., indices)``: each gradient is added to one element."""
    grad, source = call.tensor(0), call.tensor(1)
    return Work(
        family=Family.POOLING,
        flops=grad.numel,
        read_bytes=total([grad.num_bytes, elements(grad.numel, "int64")]),
        write_bytes=elements(source.numel, source.dtype),
        dtype=source.dtype,
    )


def _avg_pool(call: OpCall) -> Work:
    """``avg_pool2d(self, kernel, stride, padding, ceil, ...)``"""
    source, kernel = call.tensor(0), call.ints(1)
    if len(kernel) == 1:
        kernel *= 2
    positions = _windows(
        source, kernel, _strides(call, kernel), call.ints(3), (1,), ceil=call.flag(4)
    )
    size = positions * _channels(source, len(kernel))
    return Work(
        family=Family.POOLING,
        flops=size * (math.prod(kernel) + 1),
        read_bytes=read(source),
        write_bytes=elements(size, source.dtype),
        dtype=source.dtype,
    )


def _adaptive_avg_pool(call: OpCall) -> Work:
    """``_adaptive_avg_pool2d(self, output_size)``: every element counts in one window at least."""
    source, out = call.tensor(0), call.ints(1)
    size = math.prod(out) * _channels(source, len(out))
    return Work(
        family=Family.POOLING,
        flops=source.numel + size,
        read_bytes=read(source),
        write_bytes=elements(size, source.dtype),
        dtype=source.dtype,
    )


def _avg_pool_backward(call: OpCall) -> Work:
    """``(grad_output, self, ...)``: a division and an addition for each element."""
    grad, source = call.tensor(0), call.tensor(1)
    return Work(
        family=Family.POOLING,
        flops=2 * source.numel,
        read_bytes=read(grad),
        write_bytes=elements(source.numel, source.dtype),
        dtype=source.dtype,
    )


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    "max_pool2d_with_indices": _max_pool,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "avg_pool2d": _avg_pool,
    "_adaptive_avg_pool2d": _adaptive_avg_pool,
    **dict.fromkeys(("avg_pool2d_backward", "_adaptive_avg_pool2d_backward"), _avg_pool_backward),
}
