"""Matrix products. ``[m, k] @ [k, n]``: ``2 m k n`` FLOPs.

A bias that is added costs ``m n`` more; it is left out, as torch's own counters do, so that a
linear layer costs the same with and without one.
"""

from __future__ import annotations

import math

from trnscope.analysis.flops.bytes_moved import elements, read
from trnscope.analysis.flops.call import OpCall, Tensor, promoted
from trnscope.analysis.flops.work import CannotCount, Family, Work


def _product(
    left: Tensor, right: Tensor, *added: Tensor | None, out_dtype: str | None = None
) -> Work:
    """A matrix by a matrix, or two stacks of them; vectors are matrices with one row or column."""
    *batch, rows, inner = _as_matrices(left, is_left=True)
    *other_batch, inner_too, columns = _as_matrices(right, is_left=False)
    if inner != inner_too:
        raise CannotCount("the shapes do not multiply")
    size = math.prod(_broadcast(batch, other_batch)) * rows * columns
    dtype = promoted((left, right))
    return Work(
        family=Family.MATMUL,
        flops=2 * size * inner,
        read_bytes=read(left, right, *added),
        write_bytes=elements(size, out_dtype or dtype),
        dtype=dtype,
    )


def _as_matrices(tensor: Tensor, *, is_left: bool) -> tuple[int, ...]:
    if not tensor.shape:
        raise CannotCount("a factor has no dimensions")
    if len(tensor.shape) == 1:
        return (1, tensor.shape[0]) if is_left else (tensor.shape[0], 1)
    return tensor.shape


def _broadcast(left: list[int], right: list[int]) -> list[int]:
    width = max(len(left), len(right))
    pairs = zip([1] * (width - len(left)) + left, [1] * (width - len(right)) + right, strict=True)
    return [max(pair) if min(pair) else 0 for pair in pairs]


def _plain(call: OpCall) -> Work:
    """``mm``, ``bmm``, ``mv``, ``dot``, ``matmul``: the two factors come first."""
    return _product(call.tensor(0), call.tensor(1))


def _with_addend(call: OpCall) -> Work:
    """``addmm`` and its kin: the addend first, read unless ``beta`` is 0."""
    is_read = call.values is None or len(call.values) < 4 or call.values[3] not in ("0", "0.")
    return _product(call.tensor(1), call.tensor(2), call.optional(0) if is_read else None)


def _summed_batches(call: OpCall) -> Work:
    """``addbmm``: products of a stack, added up into one matrix."""
    left, right = call.tensor(1), call.tensor(2)
    stacked = _product(left, right, call.optional(0))
    size = left.shape[-2] * right.shape[-1]
    return Work(
        stacked.family,
        stacked.flops,
        stacked.read_bytes,
        elements(size, stacked.dtype),
        stacked.dtype,
    )


def _linear(call: OpCall) -> Work:
    """``linear(input, weight, bias)``: the weight is ``[out, in]``."""
    weight = call.tensor(1)
    if len(weight.shape) != 2:
        raise CannotCount("the weight is no matrix")
    strides = None if weight.strides is None else weight.strides[::-1]
    turned = Tensor(weight.shape[::-1], weight.dtype, strides)
    return _product(call.tensor(0), turned, call.optional(2))


def _scaled(call: OpCall) -> Work:
    """``_scaled_mm``: the scales are read too; the result may have a type of its own."""
    added = (call.optional(2), call.optional(3), call.optional(4))
    return _product(call.tensor(0), call.tensor(1), *added, out_dtype=call.scalar_type(6))


def _integers(call: OpCall) -> Work:
    """``_int_mm``: int8 factors, int32 result."""
    return _product(call.tensor(0), call.tensor(1), out_dtype="int32")


def _grouped(call: OpCall) -> Work:
    """``_grouped_mm``: rows are divided over groups, so that each row meets one matrix."""
    left, right = call.tensor(0), call.tensor(1)
    if len(left.shape) == 2 and len(right.shape) == 3:
        rows, inner = left.shape
        size = rows * right.shape[2]
        dtype = promoted((left, right))
        return Work(
            Family.MATMUL,
            2 * size * inner,
            read(left, right),
            elements(size, call.scalar_type(4) or dtype),
            dtype,
        )
    if len(left.shape) == len(right.shape) == 3:
        return _product(left, right, out_dtype=call.scalar_type(4))
    raise CannotCount("how the groups divide its inner dimension was not recorded")


def _outer(call: OpCall) -> Work:
    """``addr(self, vec1, vec2)``: a multiply-add an element."""
    left, right = call.tensor(1), call.tensor(2)
    size = left.numel * right.numel
    dtype = promoted((left, right))
    return Work(
        Family.MATMUL, 2 * size, read(call.optional(0), left, right), elements(size, dtype), dtype
    )


FORMULAS = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "matmul"), _plain),
    **dict.fromkeys(("addmm", "baddbmm", "addmv", "_addmm_activation"), _with_addend),
    "addbmm": _summed_batches,
    "linear": _linear,
    "mkldnn_linear": _linear,
    "_scaled_mm": _scaled,
    "_int_mm": _integers,
    "_grouped_mm": _grouped,
    "addr": _outer,
}

WRAPPERS = frozenset({"matmul", "linear"})
"""They call one of the others, except on devices that have a kernel of their own for them."""
