"""Normalisations, per element of the input.

Layer, group and batch norm: mean 1, variance 3 (subtract, square, add), normalising 2
(subtract, multiply), weight 1, bias 1. RMS norm: mean square 2, multiplying 1, weight 1.
Batch norm that uses running statistics has only the last three. Backward: twice the forward
pass, plus the sums for weight and bias (2 and 1) where they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor
from trnscope.analysis.flops.work import Family, Work

_STATISTICS, _RMS_STATISTICS, _SCALING, _RMS_SCALING = 4, 2, 2, 1


def _forward(source: Tensor, per_element: int, *others: Tensor | None) -> Work:
    return Work(
        family=Family.NORMALISATION,
        flops=source.numel * per_element,
        read_bytes=read(source, *others),
        write_bytes=elements(source.numel, source.dtype),
        dtype=source.dtype,
    )


def _affine(*parameters: Tensor | None) -> int:
    return sum(parameter is not None for parameter in parameters)


def _layer_norm(call: OpCall) -> Work:
    """``native_layer_norm(input, normalized_shape, weight, bias, eps)``"""
    weight, bias = call.optional(2), call.optional(3)
    return _forward(call.tensor(0), _STATISTICS + _SCALING + _affine(weight, bias), weight, bias)


def _group_norm(call: OpCall) -> Work:
    """``native_group_norm(input, weight, bias, ...)``"""
    weight, bias = call.optional(1), call.optional(2)
    return _forward(call.tensor(0), _STATISTICS + _SCALING + _affine(weight, bias), weight, bias)


def _batch_norm(call: OpCall) -> Work:
    """``native_batch_norm(input, weight, bias, mean, variance, training, ...)``"""
    weight, bias = call.optional(1), call.optional(2)
    per_element = _SCALING + _affine(weight, bias)
    if call.flag(5):
        return _forward(call.tensor(0), _STATISTICS + per_element, weight, bias)
    return _forward(call.tensor(0), per_element, weight, bias, call.optional(3), call.optional(4))


def _batch_norm_training(call: OpCall) -> Work:
    """``_batch_norm_with_update(input, weight, bias, ...)``"""
    return _group_norm(call)


def _rms_norm(call: OpCall) -> Work:
    """``_fused_rms_norm(input, normalized_shape, weight, eps)``"""
    weight = call.optional(2)
    per_element = _RMS_STATISTICS + _RMS_SCALING + _affine(weight)
    return _forward(call.tensor(0), per_element, weight)


def _backward(
    grad: Tensor, source: Tensor, forward: int, *parameters: Tensor | None, wants: int
) -> Work:
    per_element = 2 * forward + _affine(*parameters) + wants
    written = [elements(source.numel, source.dtype)]
    written += [elements(each.numel, each.dtype) for each in parameters if each is not None]
    return Work(
        family=Family.NORMALISATION,
        flops=source.numel * per_element,
        read_bytes=read(grad, source, *parameters),
        write_bytes=total(written),
        dtype=source.dtype,
    )


def _layer_norm_backward(call: OpCall) -> Work:
    """``(grad, input, normalized_shape, mean, rstd, weight, bias, output_mask)``"""
    _, weight, bias = call.flags(7)
    forward = _STATISTICS + _SCALING
    return _backward(
        call.tensor(0), call.tensor(1), forward, call.optional(5), wants=2 * weight + bias
    )


def _group_norm_backward(call: OpCall) -> Work:
    """``(grad, input, mean, rstd, weight, N, C, HxW, group, output_mask)``"""
    _, weight, bias = call.flags(9)
    forward = _STATISTICS + _SCALING
    return _backward(
        call.tensor(0), call.tensor(1), forward, call.optional(4), wants=2 * weight + bias
    )


def _batch_norm_backward(call: OpCall) -> Work:
    """``(grad, input, weight, ..., output_mask)``: the mask follows ``eps``."""
    _, weight, bias = call.flags(9)
    forward = _STATISTICS + _SCALING
    return _backward(
        call.tensor(0), call.tensor(1), forward, call.optional(2), wants=2 * weight + bias
    )


def _library_backward(call: OpCall) -> Work:
    """``cudnn_batch_norm_backward(input, grad, weight, ...)``: makes all three gradients."""
    forward = _STATISTICS + _SCALING
    return _backward(call.tensor(1), call.tensor(0), forward, call.optional(2), wants=3)


def _rms_norm_backward(call: OpCall) -> Work:
    """``(grad, input, normalized_shape, rstd, weight, output_mask)``"""
    _, weight = call.flags(5)
    forward = _RMS_STATISTICS + _RMS_SCALING
    return _backward(call.tensor(0), call.tensor(1), forward, call.optional(4), wants=2 * weight)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    **dict.fromkeys(
        (
            "native_batch_norm",
            "cudnn_batch_norm",
            "miopen_batch_norm",
            "_native_batch_norm_legit",
        ),
        _batch_norm,
    ),
    "_batch_norm_with_update": _batch_norm_training,
    "_fused_rms_norm": _rms_norm,
    "native_layer_norm_backward": _layer_norm_backward,
    "native_group_norm_backward": _group_norm_backward,
    **dict.fromkeys(("native_batch_norm_backward", "batch_norm_backward"), _batch_norm_backward),
    **dict.fromkeys(("cudnn_batch_norm_backward", "miopen_batch_norm_backward"), _library_backward),
    "_fused_rms_norm_backward": _rms_norm_backward,
}
