"""Which host annotation caused which device time, across threads.

A thread of autograd's engine carries no annotations of the program. Work launched from it
belongs to the annotation that is open, at the time of the launch, on the thread that called
backward. See docs/metrics/device-time-attribution.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.backward import calling_threads
from trnscope.analysis.grouping import group_sum
from trnscope.analysis.threads import is_host_thread
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import U32, Bool


@dataclass(frozen=True)
class AnnotationTime:
    """Device time caused inside the annotations of one name, ns (durations added)."""

    source: int
    rank: int | None
    name: str
    calls: int
    """Annotations of this name on host threads."""
    self_device_ns: int
    """Work for which it was the innermost open annotation. Adds up over rows."""
    device_total_ns: int
    """Work launched while it was open, at any depth; a name inside itself counts once."""
    other_thread_ns: int
    """The part of ``device_total_ns`` launched from another thread: backward, mostly."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "rank": self.rank,
            "name": self.name,
            "calls": self.calls,
            "self_device_ns": self.self_device_ns,
            "device_total_ns": self.device_total_ns,
            "other_thread_ns": self.other_thread_ns,
        }


@dataclass(frozen=True)
class Attribution:
    """Device time by annotation: ``sum(self_device_ns) + unattributed`` is all device time."""

    rows: tuple[AnnotationTime, ...]
    """By trace, then by ``device_total_ns``, falling."""
    unlinked_ns: int
    """Device time whose launch is not in the trace."""
    outside_ns: int
    """Device time launched while no annotation was open."""

    @property
    def unattributed_ns(self) -> int:
        """Device time that no annotation can be given."""
        return self.unlinked_ns + self.outside_ns

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "annotations": [...], ...}``."""
        return {
            "schema": 1,
            "annotations": [row.to_json() for row in self.rows],
            "unattributed_device_ns": self.unattributed_ns,
            "unlinked_ns": self.unlinked_ns,
            "outside_ns": self.outside_ns,
        }


def attribute_device_time(profile: Profile, *, same_thread_only: bool = False) -> Attribution:
    """Device time by host annotation.

    ``same_thread_only`` shows what is found without following backward to its caller.
    """
    parts = [
        _attribute(trace, source, same_thread_only) for source, trace in enumerate(profile.traces)
    ]
    return Attribution(
        rows=tuple(row for part in parts for row in part.rows),
        unlinked_ns=sum(part.unlinked_ns for part in parts),
        outside_ns=sum(part.outside_ns for part in parts),
    )


@dataclass(frozen=True)
class _Segments:
    """Device time by the stretch of host time in which it was launched.

    The annotations that are open do not change inside a segment.
    """

    start_ns: I64
    device_ns: I64

    @staticmethod
    def of(trace: Trace, annotations: U32, launched_ns: I64, dur_ns: I64) -> tuple[_Segments, int]:
        """Segments between the ends of some annotations, and the device ns before the first."""
        start = trace.slices.start_ns[annotations]
        bounds = np.unique(np.concatenate((start, start + trace.slices.dur_ns[annotations])))
        segment = np.searchsorted(bounds, launched_ns, side="right")
        device_ns = group_sum(segment, dur_ns, bounds.size + 1)[1]
        used = np.flatnonzero(device_ns[1:])
        return _Segments(bounds[used], device_ns[1:][used]), int(device_ns[0])


@dataclass(frozen=True)
class _Shares:
    """Device time by annotation name (string id, row by row; names may repeat), ns."""

    name: I64
    self_ns: I64
    total_ns: I64
    other_thread_ns: I64
    outside_ns: int


def _attribute(trace: Trace, source: int, same_thread_only: bool) -> Attribution:
    slices, links = trace.slices, trace.launches
    annotations = slices.of_kind(SliceKind.ANNOTATION)
    annotations = annotations[is_host_thread(trace)[slices.track[annotations]]]
    calls = links.launch_slice[links.has_launch]
    dur_ns = slices.dur_ns[links.device_slice[links.has_launch]]
    track, launched_ns = slices.track[calls], slices.start_ns[calls]
    every = np.arange(len(trace.tracks), dtype=np.int64)
    caller = every if same_thread_only else calling_threads(trace)
    shares = []
    for own in np.unique(track).tolist():
        mine = track == own
        pair = (own, int(caller[own]))
        shares.append(_share(trace, annotations, pair, launched_ns[mine], dur_ns[mine]))
    return Attribution(
        rows=_rows(trace, source, annotations, shares),
        unlinked_ns=int(slices.dur_ns[links.device_slice[~links.has_launch]].sum()),
        outside_ns=sum(share.outside_ns for share in shares),
    )


def _share(
    trace: Trace, annotations: U32, threads: tuple[int, int], launched_ns: I64, dur_ns: I64
) -> _Shares:
    """Give the work launched from ``threads[0]``, called from ``threads[1]``, to annotations."""
    own, caller = threads
    track = trace.slices.track[annotations]
    by_thread = [annotations[track == own]]
    if caller != own:
        by_thread.append(annotations[track == caller])
    every = np.concatenate(by_thread)
    segments, outside_ns = _Segments.of(trace, every, launched_ns, dur_ns)
    # (segment, annotation, from another thread), innermost first in each segment.
    hits = [
        (segment, found, np.full(found.size, place > 0))
        for place, ids in enumerate(by_thread)
        for segment, found in _open_at(trace, ids, segments.start_ns)
    ]
    if not hits:
        none = np.empty(0, np.int64)
        return _Shares(none, none, none, none, outside_ns + int(segments.device_ns.sum()))
    segment, found, is_other = (np.concatenate(column) for column in zip(*hits, strict=True))
    return _sum_by_name(trace, segments, segment, found, is_other, outside_ns)


def _sum_by_name(
    trace: Trace, segments: _Segments, segment: I64, found: U32, is_other: Bool, outside_ns: int
) -> _Shares:
    name = trace.slices.name[found].astype(np.int64)
    pair = segment * len(trace.strings) + name
    _, at = np.unique(pair, return_index=True)
    covered, innermost = np.unique(segment, return_index=True)
    total_ns = segments.device_ns[segment[at]]
    is_innermost = np.zeros(segment.size, np.bool_)
    is_innermost[innermost] = True
    outside_ns += int(segments.device_ns.sum() - segments.device_ns[covered].sum())
    return _Shares(
        name=name[at],
        self_ns=np.where(is_innermost[at], total_ns, 0),
        total_ns=total_ns,
        other_thread_ns=np.where(is_other[at], total_ns, 0),
        outside_ns=outside_ns,
    )


def _open_at(trace: Trace, ids: U32, times: I64) -> list[tuple[I64, U32]]:
    """For each lane of one track, deepest first: the times in an open slice, and that slice.

    ``ids`` are slice ids of one track, rising; times are given back as their indices.
    """
    slices = trace.slices
    depth = slices.depth[ids]
    answers = []
    for level in np.unique(depth)[::-1].tolist():
        lane = ids[depth == level]
        at = np.searchsorted(slices.start_ns[lane], times, side="right") - 1
        candidate = lane[np.maximum(at, 0)]
        is_open = (at >= 0) & (times < slices.start_ns[candidate] + slices.dur_ns[candidate])
        answers.append((np.flatnonzero(is_open), candidate[is_open]))
    return answers


def _rows(
    trace: Trace, source: int, annotations: U32, shares: list[_Shares]
) -> tuple[AnnotationTime, ...]:
    num_strings = len(trace.strings)
    calls = np.bincount(trace.slices.name[annotations], minlength=num_strings)
    self_ns, total_ns, other_ns = (np.zeros(num_strings, np.int64) for _ in range(3))
    for share in shares:
        np.add.at(self_ns, share.name, share.self_ns)
        np.add.at(total_ns, share.name, share.total_ns)
        np.add.at(other_ns, share.name, share.other_thread_ns)
    names = np.flatnonzero(calls)
    names = names[np.lexsort((names, -total_ns[names]))]
    return tuple(
        AnnotationTime(
            source=source,
            rank=trace.source.rank,
            name=text,
            calls=int(calls[name]),
            self_device_ns=int(self_ns[name]),
            device_total_ns=int(total_ns[name]),
            other_thread_ns=int(other_ns[name]),
        )
        for name, text in zip(names.tolist(), trace.strings.take(names.tolist()), strict=True)
    )
