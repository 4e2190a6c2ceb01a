"""Convolutions: ``2 x batch x output positions x output channels x weights of one of them``.

The weights of one output channel are ``input channels / groups x kernel size``. A transposed
convolution visits each input position instead. The gradients towards input and weights cost
as much as the forward pass each; the one towards the bias is left out, as the bias is.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor, promoted
from trnscope.analysis.flops.work import CannotCount, Family, Work


def _macs(source: Tensor, weight: Tensor, out: tuple[int, ...], *, transposed: bool) -> int:
    """Multiply-adds: each position of the one side meets every weight of its group."""
    positions = math.prod((source.shape if transposed else out)[2:])
    return source.shape[0] * positions * weight.numel


def _out_shape(
    source: Tensor, weight: Tensor, geometry: _Geometry, *, transposed: bool
) -> tuple[int, ...]:
    kernel = weight.shape[2:]
    if len(source.shape) != len(weight.shape) or not kernel:
        raise CannotCount("input and weight have unlike dimensions")
    lengths = zip(source.shape[2:], kernel, *geometry.each(len(kernel)), strict=True)
    if transposed:
        spatial = [
            (length - 1) * stride - 2 * padding + dilation * (size - 1) + extra + 1
            for length, size, stride, padding, dilation, extra in lengths
        ]
        return (source.shape[0], weight.shape[1] * geometry.groups, *spatial)
    spatial = [
        (length + 2 * padding - dilation * (size - 1) - 1) // stride + 1
        for length, size, stride, padding, dilation, _ in lengths
    ]
    return (source.shape[0], weight.shape[0], *spatial)


class _Geometry:
    """Strides, paddings, dilations and extra output of each spatial dimension."""

    def __init__(
        self,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        extra: tuple[int, ...],
        groups: int,
    ) -> None:
        self._each = (stride, padding, dilation, extra)
        self.groups = groups

    def each(self, num_dims: int) -> list[tuple[int, ...]]:
        """Each of them for every dimension; one number stands for all."""
        return [value * num_dims if len(value) == 1 else value for value in self._each]


def _forward(
    source: Tensor, weight: Tensor, bias: Tensor | None, geometry: _Geometry, *, transposed: bool
) -> Work:
    out = _out_shape(source, weight, geometry, transposed=transposed)
    dtype = promoted((source, weight))
    return Work(
        family=Family.CONVOLUTION,
        flops=2 * _macs(source, weight, out, transposed=transposed),
        read_bytes=read(source, weight, bias),
        write_bytes=elements(math.prod(out), dtype),
        dtype=dtype,
    )


def _convolution(call: OpCall) -> Work:
    """``convolution(input, weight, bias, stride, padding, dilation, transposed, extra, groups)``"""
    geometry = _Geometry(call.ints(3), call.ints(4), call.ints(5), call.ints(7), call.int_value(8))
    return _forward(
        call.tensor(0), call.tensor(1), call.optional(2), geometry, transposed=call.flag(6)
    )


def _library(call: OpCall, *, bias_at: int | None) -> Work:
    """A library's own: ``(input, weight[, bias], padding, stride, dilation, groups)``."""
    at = 2 if bias_at is None else bias_at + 1
    geometry = _Geometry(
        call.ints(at + 1), call.ints(at), call.ints(at + 2), (0,), call.int_value(at + 3)
    )
    bias = None if bias_at is None else call.optional(bias_at)
    return _forward(call.tensor(0), call.tensor(1), bias, geometry, transposed=False)


def _cudnn(call: OpCall) -> Work:
    return _library(call, bias_at=None)


def _with_bias(call: OpCall) -> Work:
    return _library(call, bias_at=2)


def _backward(call: OpCall, *, mask_at: int) -> Work:
    """``(grad_output, input, weight, ..., output_mask)``: input, weight and bias wanted or not."""
    grad, source, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    wants_source, wants_weight, *_ = call.flags(mask_at)
    transposed = call.flag(mask_at - 3)
    macs = _macs(source, weight, grad.shape, transposed=transposed)
    reads = [grad]
    writes = []
    if wants_source:
        reads.append(weight)
        writes.append(elements(source.numel, source.dtype))
    if wants_weight:
        reads.append(source)
        writes.append(elements(weight.numel, weight.dtype))
    return Work(
        family=Family.CONVOLUTION,
        flops=2 * macs * (wants_source + wants_weight),
        read_bytes=read(*reads),
        write_bytes=total(writes),
        dtype=promoted((grad, source, weight)),
    )


def _convolution_backward(call: OpCall) -> Work:
    return _backward(call, mask_at=10)


def _backward_overrideable(call: OpCall) -> Work:
    return _backward(call, mask_at=9)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"), _convolution),
    "cudnn_convolution": _cudnn,
    **dict.fromkeys(("miopen_convolution", "mkldnn_convolution"), _with_bias),
    "convolution_backward": _convolution_backward,
    "convolution_backward_overrideable": _backward_overrideable,
}
