"""What a program of the device is called: a NEFF's cache key, made of what it computes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from trnscope.sim.cost.program import item_bytes
from trnscope.sim.signature import (
    CollectiveSpec,
    ExecutionCost,
    GraphSpec,
    OpSignature,
    TensorSpec,
)
from trnscope.sim.virtual_trace.observed import Program
from trnscope.sim.virtual_trace.recording import CollectiveInfo, Work

_MAX_TENSORS = 8
"""Shapes shown in a key; the hash tells the rest apart."""


def program_of(
    name: str, signature: OpSignature | GraphSpec | CollectiveSpec | None, cost: ExecutionCost
) -> Program:
    """What is known of a row of the device's table; without a signature it is a copy."""
    if signature is None:
        return Program(name)
    if isinstance(signature, CollectiveSpec):
        return Program(name, collective=_collective(signature))
    work = Work(cost.flops, cost.hbm_read_bytes, cost.hbm_write_bytes)
    nothing_on_device = cost.on_cpu and isinstance(signature, OpSignature)
    return Program(name, cache_key(signature), nothing_on_device, work=work)


def _collective(spec: CollectiveSpec) -> CollectiveInfo:
    elements = spec.num_bytes // item_bytes(spec.dtype)
    return CollectiveInfo(spec.kind, elements, spec.dtype, spec.num_ranks)


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
