"""Element-wise ops: a fixed number of FLOPs for each element of the result.

The tables hold that number by the formula of the op, a function value (``exp``, ``erf``)
counting one: ``sigmoid`` is negate, ``exp``, add, divide: 4. Selecting and logical ops do no
arithmetic: 0. In whole numbers nothing is a FLOP. An op whose name ends in ``_`` writes to its
first argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor, is_floating, promoted
from trnscope.analysis.flops.work import CannotCount, Family, Work

_ONE_INPUT = """
0  bitwise_not logical_not conj_physical tril triu
1  abs neg sqrt rsqrt reciprocal exp exp2 expm1 log log2 log10 log1p
1  sin cos tan asin acos atan sinh cosh tanh erf erfc erfinv
1  ceil floor round trunc frac sign relu clamp_min clamp_max isnan isinf isfinite
2  clamp leaky_relu hardtanh hardsigmoid
3  elu softplus log_sigmoid_forward
4  sigmoid hardswish logit
5  silu
6  mish
"""
_TWO_INPUTS = """
0  bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor
0  __and__ __or__ __xor__ __lshift__ __rshift__
1  add sub rsub mul div true_divide floor_divide remainder fmod pow atan2
1  maximum minimum fmax fmin eq ne lt le gt ge
1  threshold_backward hardtanh_backward _masked_scale
2  native_dropout_backward leaky_relu_backward hardswish_backward
3  tanh_backward sigmoid_backward softplus_backward elu_backward
9  silu_backward
11 gelu_backward
"""
_THREE_INPUTS = """
3  addcmul addcdiv lerp
"""


def _table(num_inputs: int, text: str) -> dict[str, tuple[int, int]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {name: (num_inputs, int(flops)) for flops, *names in rows for name in names}


PER_ELEMENT = {
    **_table(1, _ONE_INPUT),
    **_table(2, _TWO_INPUTS),
    **_table(3, _THREE_INPUTS),
}
"""Tensor inputs and FLOPs an element, by name; the ops over lists of tensors do the same."""

_TO_BOOL = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite"}
    | {"logical_not", "logical_and", "logical_or", "logical_xor"}
)
_GELU = 5
_TANH_GELU = 9


def _result(
    call: OpCall,
    inputs: list[Tensor],
    per_element: int,
    *,
    dtype: str | None,
    is_bool: bool = False,
) -> Work:
    size = math.prod(_broadcast(inputs))
    in_place = call.name.endswith("_")
    out_dtype = "bool" if is_bool else (inputs[0].dtype if in_place else dtype)
    return Work(
        family=Family.ELEMENTWISE,
        flops=size * per_element if is_floating(dtype) or dtype is None else 0,
        read_bytes=read(*inputs),
        write_bytes=elements(size, out_dtype),
        dtype=dtype,
    )


def _broadcast(inputs: list[Tensor]) -> list[int]:
    """The shape of the result; inputs that do not fit each other raise."""
    width = max(len(tensor.shape) for tensor in inputs)
    shape = [1] * width
    for tensor in inputs:
        for at, length in enumerate(tensor.shape, width - len(tensor.shape)):
            if length != 1 and shape[at] not in (1, length):
                raise CannotCount("the shapes do not broadcast")
            shape[at] = length if shape[at] == 1 else shape[at]
    return shape


def _formula(name: str, num_inputs: int, per_element: int) -> Callable[[OpCall], Work]:
    def count(call: OpCall) -> Work:
        first = call.tensor(0)
        rest = (call.optional(at) for at in range(1, num_inputs))
        inputs = [first, *(tensor for tensor in rest if tensor is not None)]
        return _result(call, inputs, per_element, dtype=promoted(inputs), is_bool=name in _TO_BOOL)

    return count


def _gelu(call: OpCall) -> Work:
    """``gelu(self, approximate)``: by ``erf``, or longer by ``tanh``."""
    by_tanh = call.values is not None and any("tanh" in text for text in call.values)
    source = call.tensor(0)
    return _result(call, [source], _TANH_GELU if by_tanh else _GELU, dtype=source.dtype)


def _where(call: OpCall) -> Work:
    """``where(condition, self, other)``: selects."""
    chosen = [tensor for at in (1, 2) if (tensor := call.optional(at)) is not None]
    if not chosen:
        raise CannotCount("the positions that are true were not recorded")
    return _result(call, [call.tensor(0), *chosen], 0, dtype=promoted(chosen))


def _masked_fill(call: OpCall) -> Work:
    """``masked_fill(self, mask, value)``: the mask has no say in the type."""
    source = call.tensor(0)
    return _result(call, [source, call.tensor(1)], 0, dtype=source.dtype)


def _dropout(call: OpCall) -> Work:
    """``native_dropout(input, p, train)``: scales what it keeps, and writes its mask."""
    source = call.tensor(0)
    written = (elements(source.numel, source.dtype), elements(source.numel, "bool"))
    return Work(Family.ELEMENTWISE, 2 * source.numel, read(source), total(written), source.dtype)


def _mse_loss(call: OpCall) -> Work:
    """``mse_loss(self, target, reduction)``: subtract, square, add up; 0 is no reduction."""
    source, target = call.tensor(0), call.tensor(1)
    size = source.numel if call.value(2) == "0" else 1
    return Work(
        Family.REDUCTION if size == 1 else Family.ELEMENTWISE,
        3 * source.numel,
        read(source, target),
        elements(size, source.dtype),
        source.dtype,
    )


def _mse_loss_backward(call: OpCall) -> Work:
    """``mse_loss_backward(grad_output, self, target, reduction)``"""
    inputs = [call.tensor(1), call.tensor(2), call.tensor(0)]
    return _result(call, inputs, 3, dtype=inputs[0].dtype)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **{name: _formula(name, *numbers) for name, numbers in PER_ELEMENT.items()},
    "gelu": _gelu,
    "where": _where,
    "masked_fill": _masked_fill,
    "native_dropout": _dropout,
    "mse_loss": _mse_loss,
    "mse_loss_backward": _mse_loss_backward,
}
