"""Reductions, per element of the input: one FLOP for a sum or an extreme, more where stated."""

from __future__ import annotations

import math
from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor, is_floating
from trnscope.analysis.flops.elementwise import FORMULAS as ELEMENTWISE
from trnscope.analysis.flops.work import CannotCount, Family, Work

_PER_ELEMENT = {
    **dict.fromkeys(("sum", "nansum", "mean", "prod", "amax", "amin"), 1),
    **dict.fromkeys(("max", "min", "argmax", "argmin", "all", "any"), 1),
    **dict.fromkeys(("norm", "linalg_vector_norm"), 2),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), 4),
    "logsumexp": 4,
}
_DIM_AT = dict.fromkeys(("norm", "linalg_vector_norm"), 2)
"""Where the dimensions stand; second elsewhere."""
_WITH_INDEX = frozenset({"max", "min"})
_TO_INDEX = frozenset({"argmax", "argmin"})
_TWO_RESULTS = frozenset({"var_mean", "std_mean"})
_PAIRWISE = {"max": "maximum", "min": "minimum"}


def _reduced(call: OpCall, source: Tensor, at: int) -> tuple[int, bool]:
    """Elements of the result, and whether dimensions were named."""
    try:
        dims = call.ints(at)
    except CannotCount:
        return 1, False
    try:
        removed = math.prod(source.shape[dim] for dim in dims)
    except IndexError:
        return 1, False
    return (source.numel // removed if removed else 0), True


def _formula(name: str, per_element: int) -> Callable[[OpCall], Work]:
    def count(call: OpCall) -> Work:
        source = call.tensor(0)
        if name in _PAIRWISE and call.optional(1) is not None:
            return ELEMENTWISE[_PAIRWISE[name]](call)
        size, by_dim = _reduced(call, source, _DIM_AT.get(name, 1))
        return Work(
            family=Family.REDUCTION,
            flops=source.numel * per_element if is_floating(source.dtype) else 0,
            read_bytes=read(source),
            write_bytes=_written(name, size, source.dtype, by_dim=by_dim),
            dtype=source.dtype,
        )

    return count


def _written(name: str, size: int, dtype: str | None, *, by_dim: bool) -> int | None:
    if name in _TO_INDEX:
        return elements(size, "int64")
    if name in ("all", "any"):
        return elements(size, "bool")
    index = elements(size, "int64") if name in _WITH_INDEX and by_dim else 0
    return total([elements(size * (2 if name in _TWO_RESULTS else 1), dtype), index])


def _running(call: OpCall) -> Work:
    """``cumsum``, ``cumprod``: a result for each element."""
    source = call.tensor(0)
    flops = source.numel if is_floating(source.dtype) else 0
    return Work(
        Family.REDUCTION,
        flops,
        read(source),
        elements(source.numel, source.dtype),
        source.dtype,
    )


def _nll_loss(call: OpCall) -> Work:
    """``nll_loss_forward(self, target, weight, reduction, ignore_index)``: one element a row."""
    source, target = call.tensor(0), call.tensor(1)
    picked = elements(target.numel, source.dtype)
    size = target.numel if call.value(3) == "0" else 1
    return Work(
        family=Family.REDUCTION,
        flops=2 * target.numel,
        read_bytes=total([picked, target.num_bytes]),
        write_bytes=elements(size, source.dtype),
        dtype=source.dtype,
    )


def _nll_loss_backward(call: OpCall) -> Work:
    """``(grad_output, self, target, ...)``: zeros but for one element a row."""
    source, target = call.tensor(1), call.tensor(2)
    return Work(
        family=Family.REDUCTION,
        flops=2 * target.numel,
        read_bytes=read(call.tensor(0), target),
        write_bytes=elements(source.numel, source.dtype),
        dtype=source.dtype,
    )


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **{name: _formula(name, per_element) for name, per_element in _PER_ELEMENT.items()},
    **dict.fromkeys(("cumsum", "cumprod"), _running),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _nll_loss),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), _nll_loss_backward),
}
