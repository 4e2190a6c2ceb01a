"""Softmax, per element: maximum, subtract, ``exp``, sum, divide; backward 4."""

from __future__ import annotations

from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read
from trnscope.analysis.flops.call import OpCall, Tensor
from trnscope.analysis.flops.work import Family, Work

_FORWARD, _BACKWARD = 5, 4


def _work(flops: int, out: Tensor, *inputs: Tensor) -> Work:
    return Work(
        family=Family.SOFTMAX,
        flops=flops,
        read_bytes=read(*inputs),
        write_bytes=elements(out.numel, out.dtype),
        dtype=out.dtype,
    )


def _forward(call: OpCall) -> Work:
    """``_softmax(self, dim, half_to_float)``"""
    source = call.tensor(0)
    return _work(_FORWARD * source.numel, source, source)


def _backward(call: OpCall) -> Work:
    """``_softmax_backward_data(grad_output, output, dim, input_dtype)``"""
    grad, out = call.tensor(0), call.tensor(1)
    dtype = call.scalar_type(3) or grad.dtype
    return _work(_BACKWARD * grad.numel, Tensor(grad.shape, dtype), grad, out)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **dict.fromkeys(("_softmax", "_log_softmax"), _forward),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _backward),
}
