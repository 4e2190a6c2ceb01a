"""How far can a profile be trusted, and which conclusions does it not carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trnscope.analysis.devices import device_work
from trnscope.analysis.launch import copies_without_work, launch_calls, launches_without_work
from trnscope.analysis.step_finder import StepEvidence, find_steps
from trnscope.analysis.threads import is_host_thread
from trnscope.model.kinds import SliceKind
from trnscope.model.units import format_ns, format_ratio, ratio
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_DAMAGE_CONSEQUENCE = "Figures cover what could be read; totals may be too low."
_FIRST_STEP_SHARE_MISSING = 0.02
"""Part of the first step without host events from which on they are called missing."""


@dataclass(frozen=True)
class HealthFinding:
    """One kind of trouble, and what it costs the reader."""

    source: int | None
    """Index of the trace in the profile; absent for the profile as a whole."""
    code: str
    """Stable, kebab-case."""
    message: str
    count: int
    consequence: str | None
    """What does not hold, or is withheld, because of it; absent where nothing is."""

    def to_json(self) -> dict[str, object]:
        """The contract's member of ``warnings``, plus ``source`` and ``consequence``."""
        return {
            "source": self.source,
            "code": self.code,
            "message": self.message,
            "count": self.count,
            "consequence": self.consequence,
        }


@dataclass(frozen=True)
class HealthReport:
    """What was read, and what is wrong with it."""

    complete: bool
    """No file is cut off or damaged. Says nothing about what was never recorded."""
    num_events_read: int
    num_events_repaired: int
    num_events_unreadable: int
    warnings: tuple[HealthFinding, ...]
    """Trouble in reading first, then in what the trace holds."""

    def health_json(self) -> dict[str, object]:
        """The member ``health`` of other documents."""
        return {
            "complete": self.complete,
            "num_events_read": self.num_events_read,
            "num_events_repaired": self.num_events_repaired,
            "num_events_unreadable": self.num_events_unreadable,
            "warnings": [warning.to_json() for warning in self.warnings],
        }

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "health": {...}}``."""
        return {"schema": 1, "health": self.health_json()}


def health(profile: Profile) -> HealthReport:
    """Check every trace of a profile, and how they fit together."""
    parts = [trace.health for trace in profile.traces]
    found = [
        finding
        for source, trace in enumerate(profile.traces)
        for finding in (*_from_reading(trace, source), *_from_content(trace, source))
    ]
    if len(profile.traces) > 1:
        found = [_with_file(profile, finding) for finding in found]
        found += _between_files(profile)
    return HealthReport(
        complete=all(part.complete for part in parts),
        num_events_read=sum(part.num_events_read for part in parts),
        num_events_repaired=sum(part.num_events_repaired for part in parts),
        num_events_unreadable=sum(part.num_events_unreadable for part in parts),
        warnings=tuple(found),
    )


def _from_reading(trace: Trace, source: int) -> Iterator[HealthFinding]:
    for warning in trace.health.warnings:
        consequence = None if trace.health.complete else _DAMAGE_CONSEQUENCE
        yield HealthFinding(source, warning.code, warning.message, warning.count, consequence)


def _from_content(trace: Trace, source: int) -> Iterator[HealthFinding]:
    for check in _CHECKS:
        finding = check(trace, source)
        if finding is not None:
            yield finding


def _with_file(profile: Profile, finding: HealthFinding) -> HealthFinding:
    if finding.source is None:
        return finding
    name = Path(profile.traces[finding.source].source.path).name
    return HealthFinding(
        finding.source,
        finding.code,
        f"{name}: {finding.message}",
        finding.count,
        finding.consequence,
    )


def _between_files(profile: Profile) -> list[HealthFinding]:
    if profile.is_multi_rank:
        return []
    message = (
        f"{len(profile.traces)} files do not say that they are distinct ranks of one job; "
        "devices and steps are shown file by file"
    )
    consequence = "Ranks are not compared; ops and kernels of one name are added up over files."
    return [HealthFinding(None, "ranks-unknown", message, len(profile.traces), consequence)]


def _no_slices(trace: Trace, source: int) -> HealthFinding | None:
    if len(trace.slices):
        return None
    message = "the trace holds no slice with a known duration"
    return HealthFinding(source, "no-slices", message, 1, "There is nothing to analyse.")


def _unlinked(trace: Trace, source: int) -> HealthFinding | None:
    """Device work whose launch is not in the trace."""
    launches = trace.launches
    unlinked = launches.device_slice[~launches.has_launch]
    if unlinked.size == 0:
        return None
    dur_ns = trace.slices.dur_ns
    unlinked_ns = int(dur_ns[unlinked].sum())
    all_ns = int(dur_ns[launches.device_slice].sum())
    share = format_ratio(ratio(unlinked_ns, all_ns))
    count = int(unlinked.size)
    message = (
        f"{count} of {launches.device_slice.size} pieces of device work without a launch in the "
        f"trace: {format_ns(unlinked_ns)}, {share} of the summed device time"
    )
    consequence = (
        f"{format_ns(unlinked_ns)} of device time belong to no op, annotation or launch; "
        "they count as busy time and stay unattributed."
    )
    return HealthFinding(source, "unlinked-device-work", message, count, consequence)


def _carried_over(trace: Trace, source: int) -> HealthFinding | None:
    """Device work that was queued when recording began."""
    launches, slices = trace.launches, trace.slices
    if not launches.has_launch.any():
        return None
    first_ns = int(slices.start_ns[launches.launch_slice[launches.has_launch]].min())
    unlinked = launches.device_slice[~launches.has_launch]
    early = unlinked[slices.start_ns[unlinked] < first_ns]
    if early.size == 0:
        return None
    early_ns = int(slices.dur_ns[early].sum())
    message = (
        "device work that starts before the first launch in the trace, so was launched before "
        f"recording began: {early.size} ({format_ns(early_ns)})"
    )
    consequence = "Device time by clock of the first step includes work of an earlier one."
    return HealthFinding(source, "device-work-carried-over", message, int(early.size), consequence)


def _outside_host_window(trace: Trace, source: int) -> HealthFinding | None:
    """Device work that starts before the first or after the last host event."""
    host = _host_window(trace)
    ids = trace.launches.device_slice
    if host is None or ids.size == 0:
        return None
    start = trace.slices.start_ns[ids]
    before, after = int((start < host[0]).sum()), int((start > host[1]).sum())
    if before + after == 0:
        return None
    message = (
        f"device work that starts before the first host event: {before}; after the last: {after}"
    )
    consequence = "What the host did meanwhile was not recorded."
    return HealthFinding(
        source, "device-work-outside-host-window", message, before + after, consequence
    )


def _host_missing_at_start(trace: Trace, source: int) -> HealthFinding | None:
    """The first step has work on the device before the host shows any op or runtime call."""
    found = find_steps(trace)
    work = [one.busy for one in device_work(trace)]
    if found.evidence is not StepEvidence.PROFILER_STEP or not work:
        return None
    step = found.steps[0]
    ids = trace.slices.of_kind(SliceKind.CPU_OP, SliceKind.RUNTIME)
    start = trace.slices.start_ns[ids]
    inside = start[(start >= step.start_ns) & (start < step.end_ns)]
    first = int(inside.min()) if inside.size else step.end_ns
    gap_ns = first - step.start_ns
    unlinked = trace.launches.device_slice[~trace.launches.has_launch]
    began = trace.slices.start_ns[unlinked]
    orphans = int(((began >= step.start_ns) & (began < first)).sum())
    if orphans == 0 or gap_ns <= _FIRST_STEP_SHARE_MISSING * step.duration_ns:
        return None
    message = (
        f"the first {format_ns(gap_ns)} of {step.name} without host events, though device work "
        f"without a launch starts there: {orphans}"
    )
    consequence = f"Host figures, ops and launches of {step.name} are incomplete."
    return HealthFinding(source, "host-events-missing-at-start", message, orphans, consequence)


def _no_steps(trace: Trace, source: int) -> HealthFinding | None:
    if len(trace.slices) == 0 or find_steps(trace).steps:
        return None
    message = (
        "no steps were found (no ProfilerStep ranges, repeated step ranges or optimizer steps)"
    )
    consequence = "Figures per step are withheld; the whole trace stands as one."
    return HealthFinding(source, "no-steps", message, 1, consequence)


def _steps_inferred(trace: Trace, source: int) -> HealthFinding | None:
    found = find_steps(trace)
    if found.evidence is None or found.evidence is StepEvidence.PROFILER_STEP:
        return None
    message = f"steps inferred from evidence of kind {found.evidence.value}: {len(found.steps)}"
    consequence = "Step figures are right only if these ranges are the steps."
    return HealthFinding(source, "steps-inferred", message, len(found.steps), consequence)


def _launches_without_work(trace: Trace, source: int) -> HealthFinding | None:
    calls, lost = launch_calls(trace), launches_without_work(trace)
    if lost.size == 0:
        return None
    if trace.launches.device_slice.size == 0:
        code, guess = "no-device-work", "the device was not recorded"
    elif 2 * lost.size > calls.size:
        code, guess = "launches-without-work", "captured into a graph and not run, or not recorded"
    else:
        code, guess = "launches-without-work", "some device work was not recorded"
    message = f"{lost.size} of {calls.size} launch calls without device work in the trace: {guess}"
    consequence = "Device busy time may be too low, and idle time too high."
    return HealthFinding(source, code, message, int(lost.size), consequence)


def _copies_without_work(trace: Trace, source: int) -> HealthFinding | None:
    lost = copies_without_work(trace)
    if lost.size == 0:
        return None
    message = (
        f"calls that copy or fill without device work in the trace: {lost.size} (for no bytes, or "
        "their work was not recorded)"
    )
    return HealthFinding(source, "copies-without-work", message, int(lost.size), None)


def _started_before_launch(trace: Trace, source: int) -> HealthFinding | None:
    launches, slices = trace.launches, trace.slices
    linked = launches.has_launch
    start = slices.start_ns[launches.device_slice[linked]]
    called = slices.start_ns[launches.launch_slice[linked]]
    early = called - start
    count = int((early > 0).sum())
    if count == 0:
        return None
    by = format_ns(int(early.max()))
    message = f"device work that starts before its launch: {count}, by up to {by}"
    consequence = "Host and device clocks disagree: launch latencies are uncertain by as much."
    return HealthFinding(source, "device-work-before-launch", message, count, consequence)


def _overlap_on_stream(trace: Trace, source: int) -> HealthFinding | None:
    """Work that starts before the work ahead of it on the same stream has ended."""
    slices = trace.slices
    ids = trace.launches.device_slice
    ids = ids[slices.dur_ns[ids] > 0]
    if ids.size == 0:
        return None
    order = np.lexsort((slices.start_ns[ids], slices.track[ids]))
    ids = ids[order]
    track, start = slices.track[ids], slices.start_ns[ids]
    end = start + slices.dur_ns[ids]
    overlap_ns = np.where(track[1:] == track[:-1], end[:-1] - start[1:], 0)
    count = int((overlap_ns > 0).sum())
    if count == 0:
        return None
    message = (
        "device work that starts before the work ahead of it on its stream has ended: "
        f"{count}, by up to {format_ns(int(overlap_ns.max()))}"
    )
    consequence = "Summed device time exceeds busy time; busy time counts each instant once."
    return HealthFinding(source, "overlap-on-stream", message, count, consequence)


def _host_window(trace: Trace) -> tuple[int, int] | None:
    """First start and last end on host threads, ns."""
    ids = trace.slices.of_kind(
        SliceKind.CPU_OP, SliceKind.RUNTIME, SliceKind.ANNOTATION, SliceKind.PYTHON
    )
    ids = ids[is_host_thread(trace)[trace.slices.track[ids]]] if ids.size else ids
    if ids.size == 0:
        return None
    start = trace.slices.start_ns[ids]
    return int(start.min()), int((start + trace.slices.dur_ns[ids]).max())


_CHECKS: tuple[Callable[[Trace, int], HealthFinding | None], ...] = (
    _no_slices,
    _unlinked,
    _carried_over,
    _outside_host_window,
    _host_missing_at_start,
    _no_steps,
    _steps_inferred,
    _launches_without_work,
    _copies_without_work,
    _started_before_launch,
    _overlap_on_stream,
)
