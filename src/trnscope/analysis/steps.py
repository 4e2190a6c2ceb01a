"""How long is each step, and how much device time did it cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.analysis.step_finder import Step, StepEvidence, StepList, find_steps
from trnscope.model.intervals import I64, Intervals
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import U32


class DeviceTimeBasis(Enum):
    """How device time was given to a step."""

    LAUNCH = "launch"
    """Work that a host call inside the step launched, whenever it ran."""
    CLOCK = "clock"
    """Work that ran between the step's start and end, whoever launched it."""


@dataclass(frozen=True)
class StepSummary:
    """One step and its device time, ns. See docs/metrics/step-time.md."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    name: str
    start_ns: int
    duration_ns: int
    """Start to start of the next step where it follows directly, else as recorded."""
    recorded_ns: int
    """Duration of the range itself."""
    device_ns: int | None
    """By launch where the trace has launches, else by clock; absent without device work."""
    device_ns_basis: DeviceTimeBasis | None
    device_ns_by_launch: int | None
    device_ns_by_clock: int | None
    evidence: StepEvidence

    def to_json(self) -> dict[str, object]:
        """The contract's member of ``steps``, plus how its values were found."""
        basis = self.device_ns_basis
        return {
            "source": self.source,
            "rank": self.rank,
            "name": self.name,
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
            "device_ns": self.device_ns,
            "device_ns_basis": None if basis is None else basis.value,
            "device_ns_by_launch": self.device_ns_by_launch,
            "device_ns_by_clock": self.device_ns_by_clock,
            "recorded_ns": self.recorded_ns,
            "evidence": self.evidence.value,
        }


@dataclass(frozen=True)
class Steps:
    """The steps of a profile, by trace, then by start."""

    rows: tuple[StepSummary, ...]

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "steps": [...]}``."""
        return {"schema": 1, "steps": [step.to_json() for step in self.rows]}


def steps(profile: Profile) -> Steps:
    """Each step of each trace, with its device time."""
    return Steps(
        tuple(
            step
            for source, trace in enumerate(profile.traces)
            for step in summarize_steps(trace, source)
        )
    )


def summarize_steps(trace: Trace, source: int = 0) -> tuple[StepSummary, ...]:
    """The steps of one trace, with their device time by launch and by clock."""
    found = find_steps(trace)
    if found.evidence is None:
        return ()
    works = device_work(trace)
    by_clock = device_time_by_clock(works, found)
    by_launch = device_time_by_launch(trace, works, found)
    rows = []
    for index, step in enumerate(found.steps):
        clock_ns, launch_ns = _at(by_clock, index), _at(by_launch, index)
        rows.append(
            _summarize(trace, source, step, found.evidence, by_launch=launch_ns, by_clock=clock_ns)
        )
    return tuple(rows)


def device_time_by_clock(works: Sequence[DeviceWork], found: StepList) -> I64 | None:
    """Device busy ns inside each step's window, added over devices; absent without devices."""
    if not works:
        return None
    starts, ends = found.starts, found.ends
    per_device = [work.busy.covered_within(starts, ends) for work in works]
    return np.asarray(np.sum(per_device, axis=0), dtype=np.int64)


def device_time_by_launch(trace: Trace, works: Sequence[DeviceWork], found: StepList) -> I64 | None:
    """Busy ns of the work launched inside each step, added over devices.

    The launch may have been made on any thread: an autograd thread counts by the time of its
    launch. Absent where no device work has a launch.
    """
    if not any(work.is_linked.any() for work in works):
        return None
    result = np.zeros(len(found.steps), np.int64)
    for work in works:
        ids = work.slices[work.is_linked]
        launched_ns = trace.slices.start_ns[work.launches[work.is_linked]]
        step = found.index_of(launched_ns)
        inside = step >= 0
        result += _union_by_group(trace, ids[inside], step[inside], len(found.steps))
    return result


def _summarize(
    trace: Trace,
    source: int,
    step: Step,
    evidence: StepEvidence,
    *,
    by_launch: int | None,
    by_clock: int | None,
) -> StepSummary:
    basis: DeviceTimeBasis | None = DeviceTimeBasis.LAUNCH
    if by_launch is None:
        basis = None if by_clock is None else DeviceTimeBasis.CLOCK
    return StepSummary(
        source=source,
        rank=trace.source.rank,
        name=step.name,
        start_ns=step.start_ns,
        duration_ns=step.duration_ns,
        recorded_ns=step.recorded_ns,
        device_ns=by_clock if by_launch is None else by_launch,
        device_ns_basis=basis,
        device_ns_by_launch=by_launch,
        device_ns_by_clock=by_clock,
        evidence=evidence,
    )


def _union_by_group(trace: Trace, ids: U32, group: I64, num_groups: int) -> I64:
    """Union of the slices of each group, ns."""
    order = np.argsort(group, kind="stable")
    ids, group = ids[order], group[order]
    bounds = np.searchsorted(group, np.arange(num_groups + 1))
    start, dur = trace.slices.start_ns[ids], trace.slices.dur_ns[ids]
    totals = np.zeros(num_groups, np.int64)
    for index in range(num_groups):
        part = slice(bounds[index], bounds[index + 1])
        totals[index] = Intervals.lasting(start[part], dur[part]).total
    return totals


def _at(values: I64 | None, index: int) -> int | None:
    return None if values is None else int(values[index])
