"""What differs between two profiles of the same work: steps, their parts, ops, kernels, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.kernels import kernels
from trnscope.analysis.memory import memory
from trnscope.analysis.ops import OpsTable, ops
from trnscope.analysis.parity import Difference, differences
from trnscope.analysis.steps import steps
from trnscope.model.intervals import I64
from trnscope.store.profile import Profile

RESAMPLES = 4000
"""Of the bootstrap; the interval's ends then move by less than 0.1 % of the ratio."""
CONFIDENCE = 0.95
LEAST_STEPS = 5
"""Fewer durations on a side carry no interval."""
_SEED = 0

Key = TypeVar("Key")


@dataclass(frozen=True)
class StepTimes:
    """The durations of one side's steps, ns; absent where it has none."""

    num_steps: int
    mean_ns: int | None
    median_ns: int | None
    min_ns: int | None
    max_ns: int | None

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return dict(vars(self))


@dataclass(frozen=True)
class StepRatio:
    """Median step after over median step before, with a bootstrap interval."""

    ratio: float
    low: float | None
    """Absent where a side has too few steps."""
    high: float | None

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return dict(vars(self))


@dataclass(frozen=True)
class TimeChange:
    """One name on both sides: time and calls per step. Absent on a side that has no such name."""

    name: str
    kind: str | None
    """Of a kernel: as ``trnscope kernels`` has it. Absent for ops and parts."""
    before_ns: int | None
    after_ns: int | None
    calls_before: float | None
    calls_after: float | None

    @property
    def change_ns(self) -> int:
        """After less before; what is on one side alone counts whole."""
        return (self.after_ns or 0) - (self.before_ns or 0)

    def to_json(self) -> dict[str, object]:
        """Its fields, and the change."""
        return {**vars(self), "change_ns": self.change_ns}


@dataclass(frozen=True)
class PeakChange:
    """The highest memory level of one device on both sides, bytes."""

    device: str
    before_bytes: int | None
    after_bytes: int | None

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return dict(vars(self))


@dataclass(frozen=True)
class Comparison:
    """Two profiles side by side. See docs/metrics/step-ratio.md."""

    before: StepTimes
    after: StepTimes
    ratio: StepRatio | None
    """Absent where a side has no steps."""
    on_device: bool
    """Whether ops are compared by device time: both sides recorded device work."""
    per_step: bool
    """Whether times are per step; sums over the whole profiles where a side has no steps."""
    parts: tuple[TimeChange, ...]
    """Of a mean step, in the order of ``trnscope breakdown``."""
    ops: tuple[TimeChange, ...]
    """By the size of the change, falling."""
    kernels: tuple[TimeChange, ...]
    peaks: tuple[PeakChange, ...]
    differences: tuple[Difference, ...]
    """What else differs: with any, the times may not answer the same question."""

    def to_json(self) -> dict[str, object]:
        """See docs/reference/json.md."""
        return {
            "schema": 1,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "ratio": None if self.ratio is None else self.ratio.to_json(),
            "on_device": self.on_device,
            "per_step": self.per_step,
            "parts": [row.to_json() for row in self.parts],
            "ops": [row.to_json() for row in self.ops],
            "kernels": [row.to_json() for row in self.kernels],
            "peaks": [row.to_json() for row in self.peaks],
            "differences": [one.to_json() for one in self.differences],
        }


def compare(before: Profile, after: Profile) -> Comparison:
    """Hold ``after`` against ``before``.

    Times of ops and kernels are per step of their side; where one has no steps, neither is divided,
    and parts of a step are not compared.
    """
    durations = tuple(
        np.array([step.duration_ns for step in steps(side).rows], np.int64)
        for side in (before, after)
    )
    per_step = all(one.size > 0 for one in durations)
    num = tuple(one.size if per_step else 1 for one in durations)
    tables = (ops(before), ops(after))
    on_device = all(table.has_device for table in tables)
    return Comparison(
        before=_times(durations[0]),
        after=_times(durations[1]),
        ratio=step_ratio(*durations),
        on_device=on_device,
        per_step=per_step,
        parts=_parts(before, after) if per_step else (),
        ops=_by_change(
            _changes(
                *(_op_times(table, on_device, at) for table, at in zip(tables, num, strict=True))
            )
        ),
        kernels=_by_change(
            _changes(*(_kernel_times(p, at) for p, at in zip((before, after), num, strict=True)))
        ),
        peaks=_peaks(before, after),
        differences=differences(before, after),
    )


def step_ratio(before: I64, after: I64) -> StepRatio | None:
    """Ratio of medians, and the percentile bootstrap over steps (Efron and Tibshirani, 1993)."""
    if before.size == 0 or after.size == 0 or not np.median(before):
        return None
    ratio = float(np.median(after) / np.median(before))
    if min(before.size, after.size) < LEAST_STEPS:
        return StepRatio(ratio, None, None)
    random = np.random.default_rng(_SEED)
    medians = [
        np.median(random.choice(side, (RESAMPLES, side.size)), axis=1) for side in (before, after)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians[1] / medians[0], (tail, 1 - tail))
    return StepRatio(ratio, float(low), float(high))


def _times(durations: I64) -> StepTimes:
    if durations.size == 0:
        return StepTimes(0, None, None, None, None)
    return StepTimes(
        int(durations.size),
        int(durations.sum()) // durations.size,
        int(np.median(durations)),
        int(durations.min()),
        int(durations.max()),
    )


_Entry = tuple[int, float | None]
"""Time and calls per step."""
_Times = dict[tuple[str, str | None], _Entry]


def _op_times(table: OpsTable, on_device: bool, num_steps: int) -> _Times:
    return {
        (row.name, None): (
            ((row.self_device_ns or 0) if on_device else row.self_cpu_ns) // num_steps,
            row.calls / num_steps,
        )
        for row in table.rows
    }


def _kernel_times(profile: Profile, num_steps: int) -> _Times:
    return {
        (row.name, row.kind): (row.sum_ns // num_steps, row.count / num_steps)
        for row in kernels(profile).rows
    }


def _parts(before: Profile, after: Profile) -> tuple[TimeChange, ...]:
    """Mean step by part; empty where one side splits the device's time and one the host's."""
    splits = breakdown(before), breakdown(after)
    if splits[0].basis is not splits[1].basis:
        return ()
    times: list[_Times] = []
    for split in splits:
        rows = max(len(split.rows), 1)
        times.append({(p.key, None): (p.duration_ns // rows, None) for p in split.totals()})
    return _changes(*times)


def _changes(before: _Times, after: _Times) -> tuple[TimeChange, ...]:
    rows = []
    for key in dict.fromkeys((*before, *after)):
        one, two = before.get(key), after.get(key)
        rows.append(
            TimeChange(
                name=key[0],
                kind=key[1],
                before_ns=None if one is None else one[0],
                after_ns=None if two is None else two[0],
                calls_before=None if one is None else one[1],
                calls_after=None if two is None else two[1],
            )
        )
    return tuple(rows)


def _by_change(rows: tuple[TimeChange, ...]) -> tuple[TimeChange, ...]:
    return tuple(sorted(rows, key=lambda row: (-abs(row.change_ns), row.name, row.kind or "")))


def _peaks(before: Profile, after: Profile) -> tuple[PeakChange, ...]:
    sides: list[dict[str, int]] = []
    for profile in (before, after):
        peaks: dict[str, int] = {}
        for device in memory(profile).devices:
            peaks[device.device] = max(peaks.get(device.device, 0), device.peak_bytes)
        sides.append(peaks)
    return tuple(
        PeakChange(name, sides[0].get(name), sides[1].get(name))
        for name in dict.fromkeys((*sides[0], *sides[1]))
    )
