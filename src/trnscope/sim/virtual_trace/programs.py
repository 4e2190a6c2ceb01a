"""What a program of the device is called: a NEFF's cache key, made of what it computes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from trnscope.sim.signature import GraphSpec, OpSignature, TensorSpec

_MAX_TENSORS = 8
"""Shapes shown in a key; the hash tells the rest apart."""


def cache_key(spec: OpSignature | GraphSpec) -> str:
    """``mm--_[128,1024]:bfloat16_[1024,1024]:bfloat16:<sha256>``; equal work has equal keys."""
    digest = hashlib.sha256(repr(spec).encode()).hexdigest()
    return f"{_short_name(spec.name)}--{_shapes(_inputs(spec))}:{digest}"


def _short_name(name: str) -> str:
    return name.rpartition("::")[2]


def _inputs(spec: OpSignature | GraphSpec) -> Iterable[TensorSpec]:
    if isinstance(spec, OpSignature):
        return [tensor for tensor in spec.inputs if tensor is not None]
    wanted = set(spec.inputs)
    found: dict[int, TensorSpec] = {}
    for node in spec.nodes:
        for value, tensor in zip(node.inputs, node.op.inputs, strict=False):
            if value in wanted and tensor is not None:
                found.setdefault(value, tensor)
    return found.values()


def _shapes(tensors: Iterable[TensorSpec]) -> str:
    texts = [f"_[{','.join(map(str, one.shape))}]:{one.dtype}" for one in tensors]
    more = len(texts) - _MAX_TENSORS
    return "".join(texts[:_MAX_TENSORS]) + (f"_+{more}" if more > 0 else "")
