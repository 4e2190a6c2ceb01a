"""Element-wise ops: one pass or a few over every element.

Binary ops of tensors run on the Vector engine (``TENSOR_TENSOR``), those with a scalar too
(``TENSOR_SCALAR``); functions run on the Scalar engine (``ACTIVATE``, a table look-up with a scale
and a bias). Composite ops are written as the passes that they need.
"""

from __future__ import annotations

from trnscope.sim.cost.lowering.opcodes import ACT, REC, SEL, STT, TS, TT, Opcodes
from trnscope.sim.cost.lowering.work import (
    Lowered,
    RowStage,
    names,
    numel,
    passes_of,
    reads,
    widest,
    writes,
)
from trnscope.sim.signature import OpSignature

FUNCTIONS = names(
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh erf"
    " erfc sigmoid gelu silu mish softplus elu selu celu hardswish hardsigmoid logsigmoid"
    " log_sigmoid_forward square round floor ceil trunc frac sign asinh acosh atanh erfinv"
)
"""One ACTIVATE each."""
WITH_SCALAR = names(
    "neg abs relu relu6 hardtanh clamp clamp_min clamp_max leaky_relu threshold logical_not"
    " bitwise_not isnan isinf isfinite isneginf isposinf bitwise_left_shift bitwise_right_shift"
    " nan_to_num positive sgn"
)
"""One TENSOR_SCALAR each."""
BINARY = names(
    "add sub rsub mul maximum minimum fmax fmin eq ne lt le gt ge bitwise_and bitwise_or"
    " bitwise_xor logical_and logical_or logical_xor __and__ __or__ __xor__ threshold_backward"
    " relu_backward copysign hardtanh_backward leaky_relu_backward"
)
"""One TENSOR_TENSOR, or TENSOR_SCALAR where only one operand is a tensor."""
COMPOSITE: dict[str, Opcodes] = {
    "div": (REC, TT),
    "true_divide": (REC, TT),
    "floor_divide": (REC, TT, ACT),
    "remainder": (REC, TT, ACT, STT),
    "fmod": (REC, TT, ACT, STT),
    "pow": (ACT, TT, ACT),
    "atan2": (REC, TT, ACT, SEL),
    "hypot": (TT, STT, ACT),
    "reciprocal": (REC,),
    "where": (SEL,),
    "masked_fill": (SEL,),
    "addcmul": (TT, STT),
    "addcdiv": (REC, TT, STT),
    "lerp": (TT, STT),
    "sigmoid_backward": (STT, TT),
    "tanh_backward": (STT, TT),
    "gelu_backward": (ACT, TT),
    "silu_backward": (ACT, STT, TT, TT),
    "elu_backward": (ACT, TT, SEL),
    "softplus_backward": (ACT, TT),
    "hardswish_backward": (TS, TT),
    "hardsigmoid_backward": (TS, TT),
    "log_sigmoid_backward": (ACT, TT),
    "logit": (TS, REC, TT, ACT),
    "xlogy": (ACT, TT),
    "logaddexp": (TT, ACT, ACT, TT),
    "glu": (ACT, TT),
    "glu_backward": (ACT, TT, STT, TT),
    "_prelu_kernel": (TS, SEL),
    "mse_loss": (TT, ACT),
    "mse_loss_backward": (TT, TT),
    "smooth_l1_loss": (TT, ACT, SEL),
    "huber_loss": (TT, ACT, SEL),
    "binary_cross_entropy": (ACT, ACT, TT, TT),
    "binary_cross_entropy_with_logits": (ACT, ACT, TT, TT),
    "tril": (("AFFINE_SELECT", "gpsimd"),),
    "triu": (("AFFINE_SELECT", "gpsimd"),),
    "native_dropout_backward": (STT,),
    "_fused_dropout_backward": (STT,),
}
CONSTANT = names(
    "fill zero zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full"
)
"""Outputs that need no input: one MEMSET."""


def _scalar_of_a_row(op: OpSignature) -> bool:
    """One operand has one element a row: a scalar of its partition."""
    out = op.outputs[0].shape if op.outputs else ()
    last = [spec.shape[-1] for spec in op.inputs if spec is not None and spec.shape]
    return len(last) == 2 and bool(out) and out[-1] > 1 and min(last) == 1


def _passes(op: OpSignature, name: str) -> Opcodes:
    tensors = sum(1 for spec in op.inputs if spec is not None and spec.shape != ())
    if name in FUNCTIONS:
        return (ACT,)
    if name in WITH_SCALAR:
        return (TS,)
    if name in BINARY:
        return (TT,) if tensors > 1 and not _scalar_of_a_row(op) else (TS,)
    if name in CONSTANT:
        return (("MEMSET", "vector"),)
    if tensors < 2 and name in ("div", "true_divide"):
        return (TS,)
    if tensors < 2 and name == "pow":
        return (ACT,)
    return COMPOSITE[name]


def lower(op: OpSignature, name: str) -> Lowered:
    """Passes over the output's elements."""
    elements = max((numel(spec) for spec in op.outputs), default=1)
    dtype = widest(op)
    passes = passes_of(_passes(op, name), elements, dtype)
    loads = () if name in CONSTANT else reads(op, elements)
    return Lowered((RowStage(elements, dtype, passes, loads, writes(op)),))


NAMES = frozenset([*FUNCTIONS, *WITH_SCALAR, *BINARY, *COMPOSITE, *CONSTANT])
