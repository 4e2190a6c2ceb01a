"""Scaled dot product attention as one op: tiles of scores stay on the chip."""

from __future__ import annotations

from math import prod

from trnscope.sim.cost.lowering.work import (
    AttentionStage,
    Lowered,
    attribute,
    filled,
    numel,
    operand,
    reads,
    writes,
)
from trnscope.sim.signature import OpSignature

FORWARD = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_attention_math_for_mps",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward",
    "_efficient_attention_forward",
)
BACKWARD = (
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
    "_flash_attention_backward",
    "_efficient_attention_backward",
)
NAMES = frozenset([*FORWARD, *BACKWARD])


def lower(op: OpSignature, name: str) -> Lowered:
    """One stage; the backward reads the gradient first."""
    backward = name in BACKWARD
    first = 1 if backward else 0
    query, key, value = (operand(op, first + i, 2) for i in range(3))
    stage = AttentionStage(
        batch=prod(query.shape[:-2]),
        query=query.shape[-2],
        key=key.shape[-2],
        head=query.shape[-1],
        value_head=value.shape[-1],
        dtype=query.dtype,
        causal=bool(attribute(op, "is_causal", False)),
        loads=reads(op),
        stores=writes(op),
        products=5 if backward else 2,
    )
    if not stage.flops:
        made = (index for index, spec in enumerate(op.outputs) if numel(spec))
        return Lowered(tuple(filled(op, index) for index in made))
    return Lowered((stage,))
