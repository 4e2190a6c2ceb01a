"""Each op against the two ceilings: its rates, its attainable time, and what limits it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trnscope.analysis.ceilings import Ceilings
from trnscope.analysis.flops import MATRIX_FAMILIES, Family, Uncounted, Work
from trnscope.analysis.grouping import group_sum
from trnscope.analysis.op_work import OpWork, Signature

NEAR_ROOF = 0.6
"""From this share of a ceiling on, the ceiling is what binds. Nsight Compute's speed-of-light
rule draws the line between a bound and latency at the same 60 %."""


class Bound(str, Enum):
    """What limits an op."""

    COMPUTE = "compute"
    MEMORY = "memory"
    NEITHER = "neither"
    """Far from both ceilings: launch, latency, or a kernel that uses the device badly."""
    CACHE = "cache"
    """Faster than main memory: its data was still in a cache."""
    INCONSISTENT = "inconsistent"
    """Faster than the device can be: the FLOPs, the type or the time are not this op's."""


@dataclass(frozen=True)
class RooflineRow:
    """All calls of one op with the same shapes and types."""

    name: str
    input_shapes: str | None
    """JSON; absent where not recorded."""
    dtype: str | None
    """The type computed in; ``tfloat32`` where the kernels' names say so."""
    family: Family | None
    calls: int
    time_ns: int
    """Device time, or host time without a device; see ``Roofline.basis``."""
    flops: int | None
    """Of all calls; absent where no formula gives them."""
    num_bytes: int | None
    """Compulsory traffic of all calls; a lower bound."""
    compute_ratio: float | None
    """Achieved FLOP/s over the peak of the type."""
    memory_ratio: float | None
    """Achieved bytes/s, at least, over the peak bandwidth."""
    attainable_ns: int | None
    """The least time that the ceilings allow."""
    bound: Bound | None
    reason: str | None
    """Why something is absent, or what contradicts."""

    @property
    def flops_per_s(self) -> float | None:
        """Achieved FLOP/s."""
        return _rate(self.flops, self.time_ns)

    @property
    def bytes_per_s(self) -> float | None:
        """Achieved bytes/s, at least."""
        return _rate(self.num_bytes, self.time_ns)

    @property
    def arithmetic_intensity(self) -> float | None:
        """FLOPs a byte, at most: the bytes are a lower bound."""
        if self.flops is None or not self.num_bytes:
            return None
        return self.flops / self.num_bytes

    @property
    def attainable_ratio(self) -> float | None:
        """Attainable over measured time: 1 is at the roof."""
        ratios = [each for each in (self.compute_ratio, self.memory_ratio) if each is not None]
        return max(ratios) if ratios else None

    @property
    def is_matrix(self) -> bool:
        """Whether its FLOPs count for MFU."""
        return self.family in MATRIX_FAMILIES

    def to_json(self) -> dict[str, object]:
        """Its fields; see docs/reference/json.md."""
        return {
            "name": self.name,
            "input_shapes": None if self.input_shapes is None else json.loads(self.input_shapes),
            "dtype": self.dtype,
            "family": None if self.family is None else self.family.value,
            "calls": self.calls,
            "time_ns": self.time_ns,
            "flops": self.flops,
            "bytes": self.num_bytes,
            "flops_per_s": self.flops_per_s,
            "bytes_per_s": self.bytes_per_s,
            "arithmetic_intensity": self.arithmetic_intensity,
            "attainable_ns": self.attainable_ns,
            "attainable_ratio": self.attainable_ratio,
            "compute_ratio": self.compute_ratio,
            "memory_ratio": self.memory_ratio,
            "bound": None if self.bound is None else self.bound.value,
            "reason": self.reason,
        }


@dataclass
class _Sum:
    """Calls of one row while they are added up."""

    calls: int = 0
    time_ns: int = 0
    flops: int = 0
    num_bytes: int = 0


@dataclass(frozen=True)
class _Key:
    """What makes calls one row."""

    name: str
    input_shapes: str | None
    dtype: str | None
    family: Family | None
    has_flops: bool
    has_bytes: bool
    reason: str | None


def rows_of(works: Iterable[OpWork], ceilings: Ceilings | None) -> tuple[RooflineRow, ...]:
    """The ops of some traces, calls of one name, shapes and type added; longest first."""
    sums: dict[_Key, _Sum] = {}
    for work in works:
        for signature, reduced, calls, time_ns in _by_signature(work):
            _add(sums.setdefault(_key(signature, reduced), _Sum()), signature, calls, time_ns)
    rows = [_row(key, total, ceilings) for key, total in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.time_ns, row.name, row.input_shapes or "")))


def _by_signature(work: OpWork) -> Iterable[tuple[Signature, bool, int, int]]:
    """(signature, whether float32 was reduced, calls, time) of what has any time or FLOPs."""
    number = 2 * work.signature + work.reduced_float32
    calls, time_ns = group_sum(number, work.time_ns, 2 * len(work.signatures))
    for at in np.flatnonzero(calls).tolist():
        yield work.signatures[at // 2], bool(at % 2), int(calls[at]), int(time_ns[at])


def _key(signature: Signature, reduced: bool) -> _Key:
    shapes = _compact(signature.input_shapes)
    done = signature.work
    if isinstance(done, Uncounted):
        return _Key(signature.name, shapes, None, None, False, False, done.reason)
    dtype = dtype_of(done, reduced)
    has_flops, has_bytes = done.flops is not None, done.num_bytes is not None
    reason: str | None = None
    if not has_bytes:
        reason = "the types of its tensors were not recorded, so its bytes are not known"
    elif not has_flops:
        reason = "its arithmetic has no formula"
    return _Key(signature.name, shapes, dtype, done.family, has_flops, has_bytes, reason)


def dtype_of(work: Work, reduced_float32: bool) -> str | None:
    """The type whose peak counts; ``tfloat32`` for float32 at reduced precision."""
    return "tfloat32" if reduced_float32 and work.dtype == "float32" else work.dtype


def _compact(shapes: str | None) -> str | None:
    """The shapes as JSON without spaces; what is no JSON counts as not recorded."""
    try:
        return None if shapes is None else json.dumps(json.loads(shapes))
    except (ValueError, RecursionError):
        return None


def _add(total: _Sum, signature: Signature, calls: int, time_ns: int) -> None:
    total.calls += calls
    total.time_ns += time_ns
    if isinstance(signature.work, Work):
        total.flops += calls * (signature.work.flops or 0)
        total.num_bytes += calls * (signature.work.num_bytes or 0)


def _row(key: _Key, total: _Sum, ceilings: Ceilings | None) -> RooflineRow:
    flops = total.flops if key.has_flops else None
    num_bytes = total.num_bytes if key.has_bytes else None
    found = _judge(key, flops, num_bytes, total.time_ns, ceilings)
    return RooflineRow(
        name=key.name,
        input_shapes=key.input_shapes,
        dtype=key.dtype,
        family=key.family,
        calls=total.calls,
        time_ns=total.time_ns,
        flops=flops,
        num_bytes=num_bytes,
        compute_ratio=found.compute_ratio,
        memory_ratio=found.memory_ratio,
        attainable_ns=found.attainable_ns,
        bound=found.bound,
        reason=found.reason or key.reason,
    )


@dataclass(frozen=True)
class _Verdict:
    compute_ratio: float | None = None
    memory_ratio: float | None = None
    attainable_ns: int | None = None
    bound: Bound | None = None
    reason: str | None = None


def _judge(
    key: _Key, flops: int | None, num_bytes: int | None, time_ns: int, ceilings: Ceilings | None
) -> _Verdict:
    if ceilings is None or time_ns == 0:
        return _Verdict()
    peak = ceilings.flops(key.dtype)
    compute_ns = 0.0 if flops == 0 else _least_ns(flops, None if peak is None else peak.value)
    bandwidth = ceilings.bandwidth
    memory_ns = _least_ns(num_bytes, None if bandwidth is None else bandwidth.value)
    compute, memory = _over(compute_ns, time_ns), _over(memory_ns, time_ns)
    if compute is not None and compute > 1:
        return _Verdict(bound=Bound.INCONSISTENT, reason=_contradiction(compute, key.dtype))
    known = [each for each in (compute_ns, memory_ns) if each is not None]
    attainable_ns = round(max(known)) if len(known) == 2 else None
    if memory is not None and memory > 1:
        in_cache = f"{memory:.2f} times as fast as the memory: its data was in a cache"
        return _Verdict(compute, None, None, Bound.CACHE, in_cache)
    no_peak = compute is None and flops and key.dtype is not None
    reason = f"no peak is known for {key.dtype}" if no_peak else None
    return _Verdict(compute, memory, attainable_ns, _bound(compute, memory), reason)


def _contradiction(ratio: float, dtype: str | None) -> str:
    text = f"{ratio:.2f} times the peak for {dtype}"
    if dtype == "float32":
        return f"{text}: it ran at a lower precision, or the time is not all of its work's"
    return f"{text}: the time is not all of its work's, or it skipped work"


def _bound(compute: float | None, memory: float | None) -> Bound | None:
    """The nearer of the two ceilings, where it is near enough to bind."""
    if compute is not None and compute >= max(NEAR_ROOF, memory or 0.0):
        return Bound.COMPUTE
    if memory is not None and memory >= max(NEAR_ROOF, compute or 0.0):
        return Bound.MEMORY
    return None if compute is None or memory is None else Bound.NEITHER


def _least_ns(amount: int | None, per_s: float | None) -> float | None:
    return None if amount is None or per_s is None else 1e9 * amount / per_s


def _over(least_ns: float | None, time_ns: int) -> float | None:
    return None if least_ns is None else least_ns / time_ns


def _rate(amount: int | None, time_ns: int) -> float | None:
    return None if amount is None or time_ns == 0 else 1e9 * amount / time_ns
