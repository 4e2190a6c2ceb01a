"""How close each op comes to what the device can do, and which limit it meets.

The roofline model: an op of ``F`` FLOPs and ``B`` bytes cannot take less than ``F / peak`` nor
less than ``B / bandwidth``. The longer of the two is its attainable time; attainable over
measured time says how near the roof it runs. ``B`` is compulsory traffic, a lower bound, so
that a memory ratio is one too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trnscope.analysis.ceilings import Ceilings, Request, ceilings_of
from trnscope.analysis.devices import device_work
from trnscope.analysis.flops import MATRIX_FAMILIES, Family, Uncounted, Work
from trnscope.analysis.grouping import I64
from trnscope.analysis.op_work import NO_SHAPES, OpWork, Signature, op_work
from trnscope.analysis.step_finder import StepList, find_steps
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

NEAR_ROOF = 0.6
"""From this share of a ceiling on, the ceiling is what binds. Nsight Compute's speed-of-light
rule draws the line between a bound and latency at the same 60 %."""


class Basis(str, Enum):
    """Whose time the ops are measured by."""

    DEVICE = "device"
    HOST = "host"


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


@dataclass(frozen=True)
class StepFlops:
    """Work of the ops that began inside one step, on any thread."""

    source: int
    rank: int | None
    name: str
    duration_ns: int
    flops: int
    """Of the ops that have a formula."""
    matrix_flops: int
    """The part of matrix products, convolutions and attention."""
    mfu: float | None
    """Matrix FLOPs over what the rank's devices could have done in ``duration_ns``."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "rank": self.rank,
            "name": self.name,
            "duration_ns": self.duration_ns,
            "flops": self.flops,
            "matrix_flops": self.matrix_flops,
            "mfu": self.mfu,
        }


@dataclass(frozen=True)
class Roofline:
    """The ops of a profile against the ceilings of its device; rows by time, longest first.

    The times of all rows, ``communication_ns``, ``host_copy_ns``, ``unattributed_ns`` and
    ``overhead_ns`` add up to ``sum_ns``.
    """

    basis: Basis
    ceilings: Ceilings | None
    no_ceilings: str | None
    """Why there are no ceilings."""
    abstained: str | None
    """Why nothing can be said about any op."""
    simulated: str | None
    """The hardware model behind simulated times."""
    rows: tuple[RooflineRow, ...]
    steps: tuple[StepFlops, ...]
    num_devices: int
    """Devices of all ranks that did work; 0 without a device."""
    sum_ns: int
    busy_ns: int
    """Union of the work of each device, added up; without a device equal to ``sum_ns``."""
    communication_ns: int
    host_copy_ns: int
    unattributed_ns: int
    """Device work that no op can be given."""
    overhead_ns: int
    """Host time of ops that only call others, make views or allocate; 0 with a device."""
    mfu_step: float | None
    mfu_device: float | None
    mbu_device: float | None
    """Compulsory bytes over what the memory could have moved in ``busy_ns``; a lower bound."""

    @property
    def counted_ns(self) -> int:
        """Time of ops whose FLOPs are known."""
        return sum(row.time_ns for row in self.rows if row.flops is not None)

    @property
    def uncounted_ns(self) -> int:
        """Compute time whose FLOPs are not known, with and without an op."""
        return self.unattributed_ns + sum(row.time_ns for row in self.rows if row.flops is None)

    @property
    def uncounted_ratio(self) -> float | None:
        """``uncounted_ns`` over the time of compute: both add up to it with ``counted_ns``."""
        compute_ns = self.counted_ns + self.uncounted_ns
        return self.uncounted_ns / compute_ns if compute_ns else None

    @property
    def flops(self) -> int:
        """Of all ops with a formula."""
        return sum(row.flops or 0 for row in self.rows)

    @property
    def matrix_flops(self) -> int:
        """The part of matrix products, convolutions and attention."""
        return sum(row.flops or 0 for row in self.rows if row.is_matrix)

    def time_bound_by(self, bound: Bound | None) -> int:
        """Time of the ops with that bound, ns; None: of those without an answer."""
        return sum(row.time_ns for row in self.rows if row.bound is bound)

    def to_json(self) -> dict[str, object]:
        """See docs/reference/json.md."""
        return {
            "schema": 1,
            "basis": self.basis.value,
            "simulated": self.simulated,
            "hardware": None if self.ceilings is None else self.ceilings.to_json(),
            "no_hardware": self.no_ceilings,
            "abstained": self.abstained is not None,
            "reason": self.abstained,
            "num_devices": self.num_devices,
            "sum_ns": self.sum_ns,
            "busy_ns": self.busy_ns,
            "counted_ns": self.counted_ns,
            "uncounted_ns": self.uncounted_ns,
            "uncounted_ratio": self.uncounted_ratio,
            "communication_ns": self.communication_ns,
            "host_copy_ns": self.host_copy_ns,
            "unattributed_ns": self.unattributed_ns,
            "overhead_ns": self.overhead_ns,
            "flops": self.flops,
            "matrix_flops": self.matrix_flops,
            "mfu_step": self.mfu_step,
            "mfu_device": self.mfu_device,
            "mbu_device": self.mbu_device,
            "steps": [step.to_json() for step in self.steps],
            "ops": [row.to_json() for row in self.rows],
        }


def roofline(
    profile: Profile,
    hardware: str | None = None,
    *,
    peak_flops: float | None = None,
    peak_bandwidth: float | None = None,
) -> Roofline:
    """Each op of a profile against the peaks of its device.

    ``hardware`` names a chip where the trace does not, or to ask what another chip's ceilings
    would be; ``peak_flops`` (FLOP/s, for every type) and ``peak_bandwidth`` (bytes/s) stand in
    for its figures. Raises :class:`UnknownHardwareError` and :class:`UsageError`.
    """
    ceilings, no_ceilings = ceilings_of(profile, Request(hardware, peak_flops, peak_bandwidth))
    works = [op_work(trace) for trace in profile.traces]
    if any(work.has_device for work in works):
        parts = [
            (source, profile.traces[source], work)
            for source, work in enumerate(works)
            if work.has_device
        ]
    else:
        parts = [(source, profile.traces[source], work) for source, work in enumerate(works)]
    return _summarize(parts, ceilings, no_ceilings)


_Part = tuple[int, Trace, OpWork]


def _summarize(parts: list[_Part], ceilings: Ceilings | None, no_ceilings: str | None) -> Roofline:
    rows = _rows([work for _, _, work in parts], ceilings)
    steps, mfu_step = _steps(parts, ceilings)
    works = [device_work(trace) for _, trace, _ in parts]
    spent_ns = sum(row.time_ns for row in rows)
    others = [sum(values) for values in zip(*(_others(work) for _, _, work in parts), strict=True)]
    communication_ns, host_copy_ns, unattributed_ns, overhead_ns = others or (0, 0, 0, 0)
    sum_ns = spent_ns + communication_ns + host_copy_ns + unattributed_ns + overhead_ns
    has_device = any(work.has_device for _, _, work in parts)
    busy_ns = sum(each.busy.total for work in works for each in work) if has_device else sum_ns
    return Roofline(
        basis=Basis.DEVICE if has_device else Basis.HOST,
        ceilings=ceilings,
        no_ceilings=no_ceilings,
        abstained=_abstained(parts, sum_ns),
        simulated=_simulated(parts),
        rows=rows,
        steps=steps,
        num_devices=sum(len(work) for work in works),
        sum_ns=sum_ns,
        busy_ns=busy_ns,
        communication_ns=communication_ns,
        host_copy_ns=host_copy_ns,
        unattributed_ns=unattributed_ns,
        overhead_ns=overhead_ns,
        mfu_step=mfu_step,
        mfu_device=_mfu(rows, ceilings, busy_ns),
        mbu_device=_mbu(rows, ceilings, busy_ns),
    )


def _others(work: OpWork) -> tuple[int, ...]:
    return (
        work.communication_ns,
        work.host_copy_ns,
        work.unattributed_ns,
        work.overhead_ns,
    )


def _abstained(parts: list[_Part], sum_ns: int) -> str | None:
    if sum_ns == 0:
        return "the trace holds no ops and no device work"
    if not any(work.has_shapes for _, _, work in parts):
        return (
            "no shapes were recorded, so that no op's FLOPs are known; record with "
            "`trnscope run --shapes`, or with record_shapes=True in torch.profiler"
        )
    return None


def _simulated(parts: list[_Part]) -> str | None:
    for _, trace, _ in parts:
        if trace.source.simulated:
            return trace.source.simulated_by or "model not named"
    return None


# Rows --------------------------------------------------------------------------------------


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


def _rows(works: Iterable[OpWork], ceilings: Ceilings | None) -> tuple[RooflineRow, ...]:
    sums: dict[_Key, _Sum] = {}
    for work in works:
        for signature, reduced, calls, time_ns in _by_signature(work):
            _add(sums.setdefault(_key(signature, reduced), _Sum()), signature, calls, time_ns)
    rows = [_row(key, total, ceilings) for key, total in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.time_ns, row.name, row.input_shapes or "")))


def _by_signature(work: OpWork) -> Iterable[tuple[Signature, bool, int, int]]:
    """(signature, whether float32 was reduced, calls, time) of what has any time or FLOPs."""
    number = 2 * work.signature + work.reduced_float32
    calls = np.bincount(number, minlength=2 * len(work.signatures))
    time_ns = np.zeros(calls.size, np.int64)
    np.add.at(time_ns, number, work.time_ns)
    for at in np.flatnonzero(calls).tolist():
        yield work.signatures[at // 2], bool(at % 2), int(calls[at]), int(time_ns[at])


def _key(signature: Signature, reduced: bool) -> _Key:
    shapes = _compact(signature.input_shapes)
    done = signature.work
    if isinstance(done, Uncounted):
        return _Key(signature.name, shapes, None, None, False, False, done.reason)
    dtype = "tfloat32" if reduced and done.dtype == "float32" else done.dtype
    has_flops, has_bytes = done.flops is not None, done.num_bytes is not None
    reason: str | None = None
    if not has_bytes:
        reason = "the types of its tensors were not recorded, so its bytes are not known"
    elif not has_flops:
        reason = "its arithmetic has no formula"
    return _Key(signature.name, shapes, dtype, done.family, has_flops, has_bytes, reason)


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


# Utilisation -------------------------------------------------------------------------------


def _mfu(rows: Iterable[RooflineRow], ceilings: Ceilings | None, time_ns: int) -> float | None:
    """Matrix FLOPs, each over the peak of its type, over the time."""
    if ceilings is None or time_ns == 0:
        return None
    least_ns = 0.0
    for row in rows:
        if not row.is_matrix or not row.flops:
            continue
        peak = ceilings.flops(row.dtype)
        if peak is None:
            return None
        least_ns += 1e9 * row.flops / peak.value
    return _possible(least_ns / time_ns)


def _mbu(rows: Iterable[RooflineRow], ceilings: Ceilings | None, time_ns: int) -> float | None:
    if ceilings is None or ceilings.bandwidth is None or time_ns == 0:
        return None
    num_bytes = sum(row.num_bytes or 0 for row in rows)
    return _possible(1e9 * num_bytes / ceilings.bandwidth.value / time_ns)


def _possible(ratio: float) -> float | None:
    """A share of a peak; absent where nothing was counted, or where it contradicts the peak."""
    return ratio if 0 < ratio <= 1 else None


def _steps(
    parts: list[_Part], ceilings: Ceilings | None
) -> tuple[tuple[StepFlops, ...], float | None]:
    """Work by step, and the MFU of all steps together."""
    steps: list[StepFlops] = []
    least_ns = available_ns = 0.0
    for source, trace, work in parts:
        found = find_steps(trace)
        devices = max(len(device_work(trace)), 1)
        flops, matrix_flops, needed_ns = _step_sums(trace, work, found, ceilings)
        for index, step in enumerate(found.steps):
            available = step.duration_ns * devices
            mfu = _possible(needed_ns[index] / available) if needed_ns and available else None
            steps.append(
                StepFlops(
                    source,
                    trace.source.rank,
                    step.name,
                    step.duration_ns,
                    flops[index],
                    matrix_flops[index],
                    mfu,
                )
            )
            least_ns += needed_ns[index] if needed_ns else 0.0
            available_ns += available if needed_ns else 0
    return tuple(steps), _possible(least_ns / available_ns) if available_ns else None


def _step_sums(
    trace: Trace, work: OpWork, found: StepList, ceilings: Ceilings | None
) -> tuple[list[int], list[int], list[float] | None]:
    """By step: FLOPs, matrix FLOPs, and the least time for these; absent without a peak."""
    step = found.index_of(trace.slices.start_ns[work.call])
    num_steps = len(found.steps)
    flops, matrix_flops, needed_ns = [0] * num_steps, [0] * num_steps, [0.0] * num_steps
    has_peaks = ceilings is not None
    for at, signature, reduced, calls in _by_step(work, step):
        if not isinstance(signature.work, Work) or not signature.work.flops:
            continue
        done = calls * signature.work.flops
        flops[at] += done
        if signature.work.family not in MATRIX_FAMILIES:
            continue
        matrix_flops[at] += done
        peak = None if ceilings is None else ceilings.flops(_key(signature, reduced).dtype)
        if peak is None:
            has_peaks = False
        else:
            needed_ns[at] += 1e9 * done / peak.value
    return flops, matrix_flops, needed_ns if has_peaks and num_steps else None


def _by_step(work: OpWork, step: I64) -> Iterable[tuple[int, Signature, bool, int]]:
    """(step, signature, whether float32 was reduced, calls) of the calls inside a step."""
    inside = step >= 0
    columns = (step[inside], work.signature[inside], work.reduced_float32[inside])
    rows, calls = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    for (at, signature, reduced), count in zip(rows.tolist(), calls.tolist(), strict=True):
        yield at, work.signatures[signature], bool(reduced), count


__all__ = ["NO_SHAPES", "Basis", "Bound", "Roofline", "RooflineRow", "StepFlops", "roofline"]
