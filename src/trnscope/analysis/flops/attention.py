"""Fused attention: two matrix products forward, five backward (the scores are made again).

``q [b, h, sq, d]``, ``k [b, h, sk, d]``, ``v [b, h, sk, dv]``: ``2 b h p (d + dv)`` FLOPs
forward and ``2 b h p (3 d + 2 dv)`` backward, where ``p`` is the number of (query, key) pairs:
``sq x sk``, or only those at or below the diagonal where the call is causal, because fused
kernels skip the rest. (torch's counters take all pairs in both cases.) A window of keys is
not counted. The softmax is left out. Heads of keys that serve several heads of queries are
read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trnscope.analysis.flops.bytes_moved import elements, read, total
from trnscope.analysis.flops.call import OpCall, Tensor, promoted
from trnscope.analysis.flops.work import CannotCount, Family, Work


@dataclass(frozen=True)
class _Layout:
    """Where an op keeps its arguments."""

    query: int
    """Position of the query; key and value follow."""
    causal: int
    """Position of ``is_causal``, or of a mask type that is 0 for none."""
    bias: int | None = None
    heads_before_sequence: bool = True
    """``[b, h, s, d]``; else ``[b, s, h, d]``."""
    lengths: int | None = None
    """Position of cumulative lengths: where given, sequences are packed one after the other."""
    out: int | None = None
    """Position of the forward result; given for a backward op."""
    window: int | None = None
    """Position of how many keys before its own a query sees; -1 for all."""
    last_query_sees_all: bool = False
    """Whether the diagonal ends in the last key rather than begins at the first."""


def num_pairs(queries: int, keys: int, *, causal: bool, last_sees_all: bool = False) -> int:
    """(query, key) pairs that count.

    A causal query ``i`` sees the keys up to ``i``, or, counted from the end, all but as many as
    queries follow it.
    """
    if not causal:
        return queries * keys
    if last_sees_all:
        seen = min(queries, keys)
        return seen * (keys - seen) + seen * (seen + 1) // 2
    full = max(queries - keys, 0)
    part = queries - full
    return part * (part + 1) // 2 + full * keys


def _count(call: OpCall, at: _Layout) -> Work:
    if at.lengths is not None and call.optional(at.lengths) is not None:
        raise CannotCount("the lengths of packed sequences are not recorded")
    if at.window is not None and _text(call, at.window) not in ("", "-1"):
        raise CannotCount("a window limits what each query sees")
    query, key, value = (call.tensor(at.query + i) for i in range(3))
    pairs, per_pair = _pairs(call, at, query, key), (key.shape[-1], value.shape[-1])
    dtype = promoted((query, key, value))
    bias = None if at.bias is None else call.optional(at.bias)
    if at.out is None:
        size = query.numel // max(query.shape[-1], 1) * value.shape[-1]
        return Work(
            family=Family.ATTENTION,
            flops=2 * pairs * sum(per_pair),
            read_bytes=read(query, key, value, bias),
            write_bytes=elements(size, dtype),
            dtype=dtype,
        )
    written = (elements(tensor.numel, tensor.dtype) for tensor in (query, key, value))
    return Work(
        family=Family.ATTENTION,
        flops=2 * pairs * (3 * per_pair[0] + 2 * per_pair[1]),
        read_bytes=read(call.optional(0), query, key, value, call.optional(at.out), bias),
        write_bytes=total(written),
        dtype=dtype,
    )


def _pairs(call: OpCall, at: _Layout, query: Tensor, key: Tensor) -> int:
    """Pairs over all batches and heads of queries."""
    if len(query.shape) < 3 or len(key.shape) < 3:
        raise CannotCount("query and key have too few dimensions")
    sequence = -2 if at.heads_before_sequence else -3
    batch = query.numel // max(query.shape[-1] * query.shape[sequence], 1)
    causal = call.value(at.causal) not in ("False", "0")
    return batch * num_pairs(
        query.shape[sequence],
        key.shape[sequence],
        causal=causal,
        last_sees_all=at.last_query_sees_all,
    )


def _text(call: OpCall, position: int) -> str:
    """An argument as text; empty where it was left out or the schema ends before it."""
    values = call.values or ()
    return values[position] if position < len(values) else ""


def _formula(layout: _Layout) -> Callable[[OpCall], Work]:
    return lambda call: _count(call, layout)


LAYOUTS = {
    "_scaled_dot_product_flash_attention": _Layout(0, 4),
    "_scaled_dot_product_flash_attention_for_cpu": _Layout(0, 4, bias=5),
    "_scaled_dot_product_efficient_attention": _Layout(0, 6, bias=3),
    "_scaled_dot_product_cudnn_attention": _Layout(0, 6, bias=3),
    "_scaled_dot_product_fused_attention_overrideable": _Layout(0, 5, bias=3),
    "_flash_attention_forward": _Layout(0, 8, heads_before_sequence=False, lengths=3, window=11),
    "_efficient_attention_forward": _Layout(
        0, 9, bias=3, heads_before_sequence=False, lengths=4, window=13
    ),
    "_scaled_dot_product_flash_attention_backward": _Layout(1, 11, out=4, lengths=6),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _Layout(1, 7, bias=8, out=4),
    "_scaled_dot_product_efficient_attention_backward": _Layout(1, 11, bias=4, out=5),
    "_scaled_dot_product_cudnn_attention_backward": _Layout(1, 14, bias=8, out=4, lengths=9),
    "_scaled_dot_product_fused_attention_overrideable_backward": _Layout(
        1, 13, bias=4, out=6, lengths=8
    ),
    "_flash_attention_backward": _Layout(
        1, 11, heads_before_sequence=False, out=4, lengths=6, window=15
    ),
    "_efficient_attention_backward": _Layout(
        1, 14, bias=4, heads_before_sequence=False, out=5, lengths=6
    ),
}
"""Where torch's ops keep their arguments; tested against its schemas."""

_LIBRARY_LAYOUTS = {
    # Arguments as in flash_attn 2.6 and later (flash_attn/flash_attn_interface.py).
    "flash_attn::_flash_attn_forward": _Layout(
        0, 5, heads_before_sequence=False, window=6, last_query_sees_all=True
    ),
    "flash_attn::_flash_attn_backward": _Layout(
        1, 11, heads_before_sequence=False, out=4, window=12, last_query_sees_all=True
    ),
}

FORMULAS = {name: _formula(layout) for name, layout in LAYOUTS.items()}
LIBRARY_FORMULAS = {name: _formula(layout) for name, layout in _LIBRARY_LAYOUTS.items()}
"""By full name: ops of packages beside torch."""
