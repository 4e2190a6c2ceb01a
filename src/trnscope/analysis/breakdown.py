"""What each step's time went to, in parts that add up to the step exactly.

With device work in the trace every nanosecond of a step is booked to what the device did or
waited for; without, to what the step's host thread did. See docs/metrics/breakdown.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.analysis.host_time import host_parts
from trnscope.analysis.launch import launches_without_work
from trnscope.analysis.span import work_window
from trnscope.analysis.step_finder import Step, StepList, find_steps
from trnscope.model.intervals import I64, Intervals
from trnscope.model.track import Device
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool

_LONG_AGO = -(1 << 62)
_FAR_AHEAD = 1 << 62

WHOLE_SPAN = "(whole trace)"
"""Name of the one row of a trace in which no steps were found."""


class BreakdownBasis(Enum):
    """Whose time was split."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True)
class BreakdownPart:
    """One part of a step. ``key`` is stable; ns."""

    key: str
    duration_ns: int


@dataclass(frozen=True)
class BreakdownRow:
    """One step on one device (or on the host thread), split; ns."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    name: str
    """The step, or ``(whole trace)``."""
    device: Device | None
    """Absent where the host's time was split."""
    start_ns: int
    duration_ns: int
    parts: tuple[BreakdownPart, ...]
    """They add up to ``duration_ns``; none is negative."""

    def to_json(self) -> dict[str, object]:
        """The parts as ``<key>_ns`` beside what they are parts of."""
        head: dict[str, object] = {
            "source": self.source,
            "rank": self.rank,
            "name": self.name,
            "device": None if self.device is None else self.device.label,
            "start_ns": self.start_ns,
            "duration_ns": self.duration_ns,
        }
        return head | {f"{part.key}_ns": part.duration_ns for part in self.parts}


@dataclass(frozen=True)
class Breakdown:
    """The rows of a profile: by trace, then device, then step."""

    basis: BreakdownBasis | None
    """Absent for a profile without slices; ``DEVICE`` where any trace has device work."""
    rows: tuple[BreakdownRow, ...]

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "basis", "rows": [...]}``."""
        return {
            "schema": 1,
            "basis": None if self.basis is None else self.basis.value,
            "rows": [row.to_json() for row in self.rows],
        }

    def totals(self) -> tuple[BreakdownPart, ...]:
        """Each part added over the rows of this basis, ns."""
        sums: dict[str, int] = {}
        for row in self.rows:
            for part in row.parts:
                sums[part.key] = sums.get(part.key, 0) + part.duration_ns
        return tuple(BreakdownPart(key, total) for key, total in sums.items())


def breakdown(profile: Profile) -> Breakdown:
    """Split each step of each trace.

    In a profile with device work, a trace without any has no rows: host parts are never
    shown in one table with device parts.
    """
    traces = list(enumerate(profile.traces))
    device_rows = [row for source, trace in traces for row in device_breakdown(trace, source)]
    if device_rows:
        return Breakdown(BreakdownBasis.DEVICE, tuple(device_rows))
    host_rows = [row for source, trace in traces for row in host_breakdown(trace, source)]
    return Breakdown(BreakdownBasis.HOST if host_rows else None, tuple(host_rows))


def device_breakdown(trace: Trace, source: int = 0) -> tuple[BreakdownRow, ...]:
    """Split each step by what each device did in it; empty without device work.

    Parts: ``compute``; ``exposed_communication`` (no compute beside it); ``exposed_memcpy``
    (neither beside it); and of the idle rest ``host_wait`` (what ended the pause was launched
    after the pause began), ``launch_wait`` (it was launched before) and ``other`` (its launch
    is not known, or nothing followed).
    """
    windows = step_windows(trace)
    rows = []
    for work in device_work(trace):
        parts = _device_parts(trace, work, windows)
        rows += _rows(trace, source, work.device, windows, parts)
    return tuple(rows)


def host_breakdown(trace: Trace, source: int = 0) -> tuple[BreakdownRow, ...]:
    """Split each step by what its host thread did; empty for a trace without slices."""
    windows = step_windows(trace)
    if not windows.steps:
        return ()
    return tuple(_rows(trace, source, None, windows, host_parts(trace, windows)))


def step_windows(trace: Trace) -> StepList:
    """The steps, or where there are none one step over all real work."""
    found = find_steps(trace)
    if found.steps:
        return found
    window = work_window(trace)
    if window is None:
        return found
    start, end = window
    return StepList((Step(WHOLE_SPAN, start, end, end - start),), None, None)


def _rows(
    trace: Trace,
    source: int,
    device: Device | None,
    windows: StepList,
    parts: Sequence[tuple[str, I64]],
) -> list[BreakdownRow]:
    return [
        BreakdownRow(
            source=source,
            rank=trace.source.rank,
            name=step.name,
            device=device,
            start_ns=step.start_ns,
            duration_ns=step.duration_ns,
            parts=tuple(BreakdownPart(key, int(values[index])) for key, values in parts),
        )
        for index, step in enumerate(windows.steps)
    ]


def _device_parts(trace: Trace, work: DeviceWork, windows: StepList) -> list[tuple[str, I64]]:
    exposed_memcpy = work.exposed_memcpy.subtract(work.communication)
    host_wait, launch_wait = idle_by_cause(trace, work)
    starts, ends = windows.starts, windows.ends
    parts = [
        ("compute", work.compute.covered_within(starts, ends)),
        ("exposed_communication", work.exposed_communication.covered_within(starts, ends)),
        ("exposed_memcpy", exposed_memcpy.covered_within(starts, ends)),
        ("host_wait", host_wait.covered_within(starts, ends)),
        ("launch_wait", launch_wait.covered_within(starts, ends)),
    ]
    known = np.sum([values for _, values in parts], axis=0)
    return [*parts, ("other", np.asarray(ends - starts - known, dtype=np.int64))]


def idle_by_cause(trace: Trace, work: DeviceWork) -> tuple[Intervals, Intervals]:
    """The pauses of a device that are host wait, and those that are launch wait.

    A pause runs from the end of one busy stretch to the start of the next, and has one cause:
    the launch of the work that ends it. If several pieces of work start at that instant, the
    one launched first counts. Before the first stretch, if its launch is known, and after the
    last one the device had been given nothing: host wait. From a launch whose work is missing
    to the end of the pause, nothing is known.
    """
    busy = work.busy
    if len(busy) == 0 or not work.is_linked.any():
        return Intervals.empty(), Intervals.empty()
    known, launched_ns = _first_launch_at(trace, work, busy.start)
    pause_start = np.concatenate(([_LONG_AGO], busy.end))
    pause_end = np.append(busy.start, _FAR_AHEAD)
    launched_ns = np.append(launched_ns, _FAR_AHEAD)
    late = np.append(known, True) & (launched_ns >= pause_start)
    early = np.append(known, False) & ~late
    waited_until = np.minimum(pause_end, _next_lost_launch(trace, pause_start))
    return (
        Intervals.union_of(pause_start[late], waited_until[late]),
        Intervals.union_of(pause_start[early], pause_end[early]),
    )


def _first_launch_at(trace: Trace, work: DeviceWork, starts: I64) -> tuple[Bool, I64]:
    """For each busy start: whether work with a known launch starts there, and that launch, ns."""
    slices = trace.slices
    begin = slices.start_ns[work.slices[work.is_linked]]
    launched = slices.start_ns[work.launches[work.is_linked]]
    at = np.minimum(np.searchsorted(starts, begin), starts.size - 1)
    hit = starts[at] == begin
    first = np.full(starts.size, _FAR_AHEAD, np.int64)
    np.minimum.at(first, at[hit], launched[hit])
    return first < _FAR_AHEAD, first


def _next_lost_launch(trace: Trace, times: I64) -> I64:
    """For each time the first launch at or after it whose work is missing; far ahead if none."""
    lost = np.sort(trace.slices.start_ns[launches_without_work(trace)])
    return np.append(lost, _FAR_AHEAD)[np.searchsorted(lost, times)]
