"""Softmax, layer norm, RMS norm, batch and group norm, forward and backward.

Each is a chain of passes over rows: statistics on the Vector engine (``BN_STATS``) or on the Scalar
engine with its accumulator (``ACTIVATE_REDUCE``), then a scale and a shift.
"""

from __future__ import annotations

from trnscope.sim.cost.lowering.opcodes import ACT, ACTR, RED, STATS, STT, TS, TT, Opcodes
from trnscope.sim.cost.lowering.work import Lowered, over_largest
from trnscope.sim.signature import OpSignature

PASSES: dict[str, Opcodes] = {
    "_softmax": (RED, ACTR, TS),
    "softmax": (RED, ACTR, TS),
    "_log_softmax": (RED, ACTR, TS),
    "log_softmax": (RED, ACTR, TS),
    "_safe_softmax": (RED, ACTR, TS),
    "_softmax_backward_data": (TT, RED, STT),
    "_log_softmax_backward_data": (RED, ACT, STT),
    "native_layer_norm": (STATS, TS, TT, TT),
    "layer_norm": (STATS, TS, TT, TT),
    "native_layer_norm_backward": (TS, TT, RED, TT, RED, STT, STT, TT),
    "rms_norm": (ACTR, TS, TT),
    "_fused_rms_norm": (ACTR, TS, TT),
    "_fused_rms_norm_backward": (TS, TT, TT, RED, STT, TT),
    "native_batch_norm": (STATS, TS),
    "batch_norm": (STATS, TS),
    "_native_batch_norm_legit": (STATS, TS),
    "_native_batch_norm_legit_no_training": (TS,),
    "_native_batch_norm_legit_functional": (STATS, TS),
    "cudnn_batch_norm": (STATS, TS),
    "native_batch_norm_backward": (TS, TT, RED, RED, STT, STT),
    "native_group_norm": (STATS, TS, TT, TT),
    "group_norm": (STATS, TS, TT, TT),
    "native_group_norm_backward": (TS, TT, RED, TT, RED, STT, STT, TT),
    "_batch_norm_with_update": (STATS, TS),
    "nll_loss_forward": (("IOTA", "gpsimd"),),
    "nll_loss_backward": (("IOTA", "gpsimd"), TS),
    "nll_loss2d_forward": (("IOTA", "gpsimd"),),
    "nll_loss2d_backward": (("IOTA", "gpsimd"), TS),
}
NAMES = frozenset(PASSES)
WITH_MAXIMUM = ("_softmax", "softmax", "_log_softmax", "log_softmax", "_safe_softmax")
"""Their ``TENSOR_REDUCE`` finds the maximum of a row."""


def lower(op: OpSignature, name: str) -> Lowered:
    """Passes over the largest tensor's elements."""
    return over_largest(op, PASSES[name], sums=name not in WITH_MAXIMUM)
