"""How much of the devices' peaks was used: MFU by step and of busy time, memory bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.ceilings import Ceilings
from trnscope.analysis.devices import device_work
from trnscope.analysis.flops import MATRIX_FAMILIES, Work
from trnscope.analysis.grouping import I64
from trnscope.analysis.op_work import OpWork, Signature
from trnscope.analysis.roofline_rows import RooflineRow, dtype_of
from trnscope.analysis.step_finder import StepList, find_steps
from trnscope.store.reader import Trace


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


def mfu(rows: Iterable[RooflineRow], ceilings: Ceilings | None, time_ns: int) -> float | None:
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


def mbu(rows: Iterable[RooflineRow], ceilings: Ceilings | None, time_ns: int) -> float | None:
    """Compulsory bytes over what the memory could have moved in the time."""
    if ceilings is None or ceilings.bandwidth is None or time_ns == 0:
        return None
    num_bytes = sum(row.num_bytes or 0 for row in rows)
    return _possible(1e9 * num_bytes / ceilings.bandwidth.value / time_ns)


def _possible(ratio: float) -> float | None:
    """A share of a peak; absent where nothing was counted, or where it contradicts the peak."""
    return ratio if 0 < ratio <= 1 else None


def step_flops(
    parts: Sequence[tuple[int, Trace, OpWork]], ceilings: Ceilings | None
) -> tuple[tuple[StepFlops, ...], float | None]:
    """Work by step of each (source, trace, work), and the MFU of all steps together."""
    steps: list[StepFlops] = []
    least_ns = available_ns = 0.0
    for source, trace, work in parts:
        found = find_steps(trace)
        num_devices = max(len(device_work(trace)), 1)
        sums = _step_sums(trace, work, found, ceilings)
        for index, step in enumerate(found.steps):
            available = step.duration_ns * num_devices
            least = sums.least_ns[index] if sums.least_ns else 0.0
            steps.append(
                StepFlops(
                    source=source,
                    rank=trace.source.rank,
                    name=step.name,
                    duration_ns=step.duration_ns,
                    flops=sums.flops[index],
                    matrix_flops=sums.matrix_flops[index],
                    mfu=_possible(least / available) if available else None,
                )
            )
            least_ns += least
            available_ns += available if sums.least_ns else 0
    return tuple(steps), _possible(least_ns / available_ns) if available_ns else None


@dataclass(frozen=True)
class _StepSums:
    """By step of one trace."""

    flops: list[int]
    matrix_flops: list[int]
    least_ns: list[float] | None
    """The least time that the matrix FLOPs take; absent where a peak is not known."""


def _step_sums(trace: Trace, work: OpWork, found: StepList, ceilings: Ceilings | None) -> _StepSums:
    step = found.index_of(trace.slices.start_ns[work.call])
    num_steps = len(found.steps)
    flops, matrix_flops, least_ns = [0] * num_steps, [0] * num_steps, [0.0] * num_steps
    has_peaks = ceilings is not None
    for at, signature, reduced, calls in _by_step(work, step):
        if not isinstance(signature.work, Work) or not signature.work.flops:
            continue
        done = calls * signature.work.flops
        flops[at] += done
        if signature.work.family not in MATRIX_FAMILIES:
            continue
        matrix_flops[at] += done
        peak = None if ceilings is None else ceilings.flops(dtype_of(signature.work, reduced))
        if peak is None:
            has_peaks = False
        else:
            least_ns[at] += 1e9 * done / peak.value
    return _StepSums(flops, matrix_flops, least_ns if has_peaks else None)


def _by_step(work: OpWork, step: I64) -> Iterable[tuple[int, Signature, bool, int]]:
    """(step, signature, whether float32 was reduced, calls) of the calls inside a step."""
    inside = step >= 0
    columns = (step[inside], work.signature[inside], work.reduced_float32[inside])
    rows, calls = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    for (at, signature, reduced), count in zip(rows.tolist(), calls.tolist(), strict=True):
        yield at, work.signatures[signature], bool(reduced), count
