"""Where one step ends and the next begins, by the best evidence that a trace holds.

Tried in this order, and every answer says which it was: torch's ``ProfilerStep#N`` ranges on
one host thread; ranges that a user named like a step; the ends of ``Optimizer.step``; and the
copies of the step ranges on a device.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import groupby, pairwise

import numpy as np

from trnscope.analysis.memo import once_per_trace
from trnscope.analysis.names import slices_of_kind_named
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

_PROFILER_STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)$")
_NAMED_STEP = re.compile(r"(^|[^a-z])(step|iter|iteration|batch)[\W\d_]*$", re.IGNORECASE)
"""The word ends the name, or only a number does: ``batch_norm`` and ``step 3 loss`` are parts."""
_STEP_WORDS = ("step", "iter", "batch")
_OPTIMIZER_STEP = re.compile(r"Optimizer\.step#")
_NO_STEP = re.compile(r"::|batch_?norm|optimizer|scheduler|scaler|dataloader", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")
_HOST_KINDS = (SliceKind.ANNOTATION, SliceKind.CPU_OP, SliceKind.OTHER)


class StepEvidence(Enum):
    """What the steps were found by."""

    PROFILER_STEP = "profiler-step"
    """torch's own ``ProfilerStep#N`` ranges on a host thread."""
    ANNOTATION = "annotation"
    """Repeated host ranges whose name says step, iteration or batch."""
    OPTIMIZER = "optimizer"
    """From one end of ``Optimizer.step`` to the next."""
    DEVICE_ANNOTATION = "device-annotation"
    """``ProfilerStep#N`` ranges on a device track; the host's own are missing."""


@dataclass(frozen=True)
class Step:
    """One step of one trace. Times in ns."""

    name: str
    start_ns: int
    end_ns: int
    """The next step's start where the next follows directly, else the range's own end."""
    recorded_ns: int
    """Duration of the range as recorded; it may overlap the next step's."""

    @property
    def duration_ns(self) -> int:
        """Start to start."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class StepList:
    """The steps of one trace, by start; they never overlap."""

    steps: tuple[Step, ...]
    evidence: StepEvidence | None
    """Absent where there are no steps."""
    track: int | None
    """The thread (or stream) whose ranges they are."""

    @property
    def starts(self) -> I64:
        """Starts, ns."""
        return np.array([step.start_ns for step in self.steps], dtype=np.int64)

    @property
    def ends(self) -> I64:
        """Ends, ns."""
        return np.array([step.end_ns for step in self.steps], dtype=np.int64)

    def index_of(self, times: I64) -> I64:
        """For each time the index of the step that holds it; -1 outside of all steps."""
        if not self.steps:
            return np.full(times.shape, -1, np.int64)
        index = np.searchsorted(self.starts, times, side="right") - 1
        inside = (index >= 0) & (times < self.ends[np.maximum(index, 0)])
        return np.where(inside, index, -1)


_NONE = StepList((), None, None)


@once_per_trace
def find_steps(trace: Trace) -> StepList:
    """The steps of one trace, from the best evidence there is; empty where there is none."""
    return (
        _profiler_steps(
            _on_threads(trace, _HOST_KINDS, _is_profiler_step, ("ProfilerStep",)),
            StepEvidence.PROFILER_STEP,
        )
        or _named_steps(trace)
        or _optimizer_steps(trace)
        or _profiler_steps(
            _matching(trace, (SliceKind.DEVICE_ANNOTATION,), _is_profiler_step, ("ProfilerStep",)),
            StepEvidence.DEVICE_ANNOTATION,
        )
        or _NONE
    )


@dataclass(frozen=True)
class _Range:
    """A candidate slice."""

    track: int
    start_ns: int
    dur_ns: int
    name: str

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.dur_ns


def _is_profiler_step(name: str) -> bool:
    return _PROFILER_STEP.match(name) is not None


def _profiler_steps(ranges: list[_Range], evidence: StepEvidence) -> StepList | None:
    """Of the tracks that hold ``ProfilerStep`` ranges, the one with the most of them."""
    by_track = [(track, _without_doubles(mine)) for track, mine in _by_track(ranges)]
    if not by_track:
        return None
    track, best = min(by_track, key=lambda item: (-len(item[1]), item[1][0].start_ns, item[0]))
    return StepList(_to_next(best), evidence, track)


def _named_steps(trace: Trace) -> StepList | None:
    """Of the user's ranges that are named like a step and repeat, those that cover most."""
    ranges = _on_threads(
        trace,
        (SliceKind.ANNOTATION,),
        lambda name: bool(_NAMED_STEP.search(name)) and not _NO_STEP.search(name),
        _STEP_WORDS,
    )
    groups = [
        (track, group)
        for track, mine in _by_track(ranges)
        for group in _by_name(mine)
        if len(group) > 1
    ]
    if not groups:
        return None
    track, best = min(groups, key=lambda item: (-_covered(item[1]), item[1][0].start_ns, item[0]))
    return StepList(_to_next(best), StepEvidence.ANNOTATION, track)


def _optimizer_steps(trace: Trace) -> StepList | None:
    """From one end of the most frequent ``Optimizer.step`` to the next.

    What lies before the first end is no whole step and is left out.
    """
    ranges = _on_threads(
        trace,
        _HOST_KINDS,
        lambda name: _OPTIMIZER_STEP.match(name) is not None,
        ("Optimizer.step",),
    )
    groups = [(track, group) for track, mine in _by_track(ranges) for group in _by_name(mine)]
    if not groups:
        return None
    track, best = min(groups, key=lambda item: (-len(item[1]), -item[1][0].end_ns, item[0]))
    ends = [one.end_ns for one in best]
    steps = tuple(
        Step(f"step {number}", start, end, end - start)
        for number, (start, end) in enumerate(pairwise(ends), start=2)
    )
    return StepList(steps, StepEvidence.OPTIMIZER, track) if steps else None


def _on_threads(
    trace: Trace,
    kinds: tuple[SliceKind, ...],
    wanted: Callable[[str], bool],
    words: tuple[str, ...],
) -> list[_Range]:
    """The slices of these kinds on host threads whose name is wanted, by start."""
    is_thread = [track.kind is TrackKind.CPU_THREAD for track in trace.tracks]
    return [one for one in _matching(trace, kinds, wanted, words) if is_thread[one.track]]


def _matching(
    trace: Trace,
    kinds: tuple[SliceKind, ...],
    wanted: Callable[[str], bool],
    words: tuple[str, ...],
) -> list[_Range]:
    """The slices of these kinds whose name is wanted, which then holds one of ``words``.

    By start.
    """
    slices = trace.slices
    found = _finished(trace, slices_of_kind_named(trace, kinds, wanted, words))
    found = found[np.lexsort((found, -slices.dur_ns[found], slices.start_ns[found]))]
    return [
        _Range(track, start, dur, name)
        for track, start, dur, name in zip(
            slices.track[found].tolist(),
            slices.start_ns[found].tolist(),
            slices.dur_ns[found].tolist(),
            trace.strings.take(slices.name[found].tolist()),
            strict=True,
        )
    ]


def _finished(trace: Trace, ids: U32) -> U32:
    """Without the ranges that were open when recording stopped: the last one of a track may be.

    The exporter lets such a range run until it wrote it and says ``"finished": false``.
    """
    finished = trace.attribute("finished")
    if finished is None:
        return ids
    by_start = ids[np.argsort(trace.slices.start_ns[ids], kind="stable")]
    last = dict(zip(trace.slices.track[by_start].tolist(), by_start.tolist(), strict=True))
    rows = np.array(list(last.values()), np.uint32)
    has, text = finished.of(rows)
    is_cut = [bool(h) and trace.strings[t] == "false" for h, t in zip(has, text, strict=True)]
    return ids[~np.isin(ids, rows[np.array(is_cut, np.bool_)])]


def _by_track(ranges: list[_Range]) -> list[tuple[int, list[_Range]]]:
    """Ranges by track, each by start."""
    ordered = sorted(ranges, key=lambda one: one.track)
    return [(track, list(mine)) for track, mine in groupby(ordered, key=lambda one: one.track)]


def _by_name(ranges: list[_Range]) -> list[list[_Range]]:
    """Ranges that share a name but for the numbers in it, without those inside another."""
    groups: dict[str, list[_Range]] = {}
    for one in ranges:
        group = groups.setdefault(_NUMBERS.sub("#", one.name), [])
        if not group or one.start_ns >= group[-1].end_ns or one.end_ns > group[-1].end_ns:
            group.append(one)
    return list(groups.values())


def _without_doubles(ranges: list[_Range]) -> list[_Range]:
    """Drop a range that starts while one of the same name is open."""
    open_until: dict[str, int] = {}
    kept: list[_Range] = []
    for one in ranges:
        if one.start_ns >= open_until.get(one.name, one.start_ns):
            kept.append(one)
            open_until[one.name] = one.end_ns
    return kept


def _to_next(ranges: list[_Range]) -> tuple[Step, ...]:
    """Steps that reach to the start of the next one, where that follows directly."""
    followers = [*ranges[1:], None]
    return tuple(
        Step(one.name, one.start_ns, _end_of(one, following), one.dur_ns)
        for one, following in zip(ranges, followers, strict=True)
    )


def _end_of(one: _Range, following: _Range | None) -> int:
    if following is None:
        return one.end_ns
    this, after = _PROFILER_STEP.match(one.name), _PROFILER_STEP.match(following.name)
    skipped = this and after and int(after.group(1)) != int(this.group(1)) + 1
    return min(one.end_ns, following.start_ns) if skipped else following.start_ns


def _covered(ranges: list[_Range]) -> int:
    return sum(one.dur_ns for one in ranges)
