"""Matrix products: mm, addmm, bmm, baddbmm, linear, their kin, and convolution as implicit GEMM.

Operands reach the matrix engine with the contracted dimension on the partitions. A tensor that is
contiguous along it is turned on the chip (a pass of the matrix engine against the identity).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from trnscope.sim.cost.engines import FLOAT32_PASSES
from trnscope.sim.cost.lowering.work import (
    Access,
    Lowered,
    MatmulStage,
    Pass,
    Stage,
    attribute,
    filled,
    numel,
    operand,
    read,
    result,
    turned,
    widest,
    write,
)
from trnscope.sim.signature import OpSignature, TensorSpec

OPERANDS = {
    "mm": (0, 1, None),
    "bmm": (0, 1, None),
    "matmul": (0, 1, None),
    "dot": (0, 1, None),
    "vdot": (0, 1, None),
    "mv": (0, 1, None),
    "addmm": (1, 2, 0),
    "addmv": (1, 2, 0),
    "addbmm": (1, 2, 0),
    "baddbmm": (1, 2, 0),
    "_addmm_activation": (1, 2, 0),
    "linear": (0, 1, 2),
    "addr": (1, 2, 0),
    "outer": (0, 1, None),
    "ger": (0, 1, None),
    "_int_mm": (0, 1, None),
    "_scaled_mm": (0, 1, None),
}
CONVOLUTIONS = (
    "convolution",
    "_convolution",
    "conv1d",
    "conv2d",
    "conv3d",
    "convolution_overrideable",
)
BACKWARD = ("convolution_backward", "convolution_backward_overrideable")
NAMES = frozenset([*OPERANDS, *CONVOLUTIONS, *BACKWARD, "linear_backward"])


def _row_major_k(spec: TensorSpec, k_last: bool) -> bool:
    """The contracted dimension is the contiguous one."""
    return k_last != turned(spec)


def product(op: OpSignature, lhs: int, rhs: int, bias: int | None, weight: bool) -> Lowered:
    """One product of two inputs; ``weight``: the right one is (n, k)."""
    left, right = operand(op, lhs, 1), operand(op, rhs, 1)
    out = result(op)
    a = left.shape if len(left.shape) > 1 else (1, *left.shape)
    b = (
        right.shape
        if len(right.shape) > 1
        else ((1, *right.shape) if weight else (*right.shape, 1))
    )
    k = a[-1]
    n = b[-2] if weight else b[-1]
    batch = prod(b[:-2]) if len(b) > 2 and not weight else 1
    m = prod(a[:-1]) // max(1, batch)
    dtype = _matrix_type(left.dtype, right.dtype)
    epilogue, loads = _bias(op, bias, out)
    stage = MatmulStage(
        batch,
        m,
        k,
        n,
        dtype,
        out.dtype,
        read(op, lhs),
        read(op, rhs),
        write(op),
        lhs_transpose=_row_major_k(left, True),
        rhs_transpose=_row_major_k(right, weight),
        epilogue=epilogue,
        loads=loads,
    )
    return Lowered((stage,))


def _matrix_type(left: str, right: str) -> str:
    return max((left, right), key=lambda dtype: FLOAT32_PASSES.get(dtype, 0))


def _bias(
    op: OpSignature, bias: int | None, out: TensorSpec
) -> tuple[tuple[Pass, ...], tuple[Access, ...]]:
    access = None if bias is None else read(op, bias, numel(out))
    if access is None:
        return (), ()
    return (Pass("TENSOR_TENSOR", "vector", numel(out), out.dtype),), (access,)


def lower(op: OpSignature, name: str) -> Lowered:
    """The product's stages; a product over an empty operand only fills its result."""
    found = _stages(op, name)
    stages: list[Stage] = []
    for stage in found.stages:
        if not isinstance(stage, MatmulStage) or stage.flops:
            stages.append(stage)
        elif stage.out is not None and stage.out.num_bytes:
            zeros = filled(op, stage.out.value)
            passes = zeros.passes + stage.epilogue
            stages.append(replace(zeros, passes=passes, loads=stage.loads))
    return replace(found, stages=tuple(stages))


def _stages(op: OpSignature, name: str) -> Lowered:
    if name in CONVOLUTIONS:
        return convolution(op)
    if name in BACKWARD:
        return convolution_backward(op)
    if name == "linear_backward":
        return linear_backward(op)
    lhs, rhs, bias = OPERANDS[name]
    return product(op, lhs, rhs, bias, weight=name == "linear")


def linear_backward(op: OpSignature) -> Lowered:
    """Gradients of a linear layer: inputs are (input, grad, weight)."""
    value, grad, weight = operand(op, 0, 1), operand(op, 1, 1), operand(op, 2, 2)
    rows = prod(value.shape[:-1])
    n, k = weight.shape[-2:]
    dtype = _matrix_type(grad.dtype, weight.dtype)
    to_input = MatmulStage(
        1, rows, n, k, dtype, grad.dtype, read(op, 1), read(op, 2), write(op, 0), lhs_transpose=True
    )
    to_weight = MatmulStage(
        1, n, rows, k, dtype, weight.dtype, read(op, 1), read(op, 0), write(op, 1)
    )
    return Lowered((to_input, to_weight))


def _kernel(weight: TensorSpec) -> tuple[int, int]:
    """Output channels and the contracted length of one group."""
    return weight.shape[0], prod(weight.shape[1:])


def convolution(op: OpSignature) -> Lowered:
    """Implicit GEMM: positions by (channels x window) by output channels; groups are a batch."""
    out, weight = result(op), operand(op, 1, 2)
    channels, window = _kernel(weight)
    groups = attribute(op, "groups", 1)
    count = groups if isinstance(groups, int) and groups > 0 else 1
    positions = numel(out) // max(1, channels)
    epilogue, loads = _bias(op, 2 if len(op.inputs) > 2 else None, out)
    stage = MatmulStage(
        count,
        positions,
        window,
        channels // count,
        widest(op),
        out.dtype,
        read(op, 0),
        read(op, 1),
        write(op),
        rhs_transpose=True,
        epilogue=epilogue,
        loads=loads,
    )
    return Lowered((stage,))


def convolution_backward(op: OpSignature) -> Lowered:
    """Gradients by input and by weight, each a GEMM of the forward's size."""
    grad, value, weight = operand(op, 0), operand(op, 1), operand(op, 2, 2)
    channels, window = _kernel(weight)
    positions = numel(grad) // max(1, channels)
    inputs = weight.shape[1]
    taps = max(1, window // max(1, inputs))
    dtype = widest(op)
    stages = []
    if op.outputs:
        stages.append(
            MatmulStage(
                1,
                positions,
                channels * taps,
                inputs,
                dtype,
                value.dtype,
                read(op, 0),
                read(op, 2),
                write(op, 0),
                lhs_transpose=True,
            )
        )
    if len(op.outputs) > 1:
        stages.append(
            MatmulStage(
                1,
                channels,
                positions,
                window,
                dtype,
                weight.dtype,
                read(op, 0),
                read(op, 1),
                write(op, 1),
                rhs_transpose=True,
            )
        )
    return Lowered(tuple(stages))
