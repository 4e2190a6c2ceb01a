"""How long the steps would take with a cause removed: the graph, run again without it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trnscope.advisor.graph import Awaited, HostPoint, StepGraph
from trnscope.advisor.removal import Removal
from trnscope.advisor.stream_order import NONE
from trnscope.model.intervals import I64, Intervals
from trnscope.store.tables import F64

NOTHING = Removal()


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Runs one graph again and again, each time without something else."""

    graph: StepGraph

    def saved_ns(self, removal: Removal) -> int:
        """By how much the window gets shorter per step; never below 0 nor more than a step."""
        saved = self.recorded_ns - self.duration_ns(removal)
        window = self.graph.window
        return max(0, min(saved // window.num_steps, window.step_ns))

    @cached_property
    def recorded_ns(self) -> int:
        """The window with nothing removed."""
        return self.duration_ns(NOTHING)

    def duration_ns(self, removal: Removal) -> int:
        """From the window's start to the end of the last host or device work in it."""
        times = _Clock(self.graph, removal)
        points, ends = _run(self.graph, times, removal)
        last = self._last_on_main
        after = times.between(
            self.graph.main, self.graph.points[last].at_ns, self.graph.host_end_ns
        )
        return round(max([points[last] + after, *ends]))

    @cached_property
    def _last_on_main(self) -> int:
        on_main = [at for at, one in enumerate(self.graph.points) if one.track == self.graph.main]
        return on_main[-1]


class _Clock:
    """How far each host thread gets by itself, without what is removed."""

    def __init__(self, graph: StepGraph, removal: Removal) -> None:
        self._start = graph.window.start_ns
        self._parts: dict[int, list[tuple[Intervals, float]]] = {}
        for track, own in graph.own.items():
            self._parts[track] = [(own, 1.0), *_cuts_of(track, own, removal)]

    def at(self, track: int, times: I64) -> F64:
        """Own time from the window's start to each of some times."""
        starts = np.full(times.shape, self._start, np.int64)
        total = np.zeros(times.shape, np.float64)
        for intervals, factor in self._parts.get(track, []):
            total += factor * intervals.covered_within(starts, times)
        return total

    def between(self, track: int, start_ns: int, end_ns: int) -> float:
        """Own time between two instants."""
        at = self.at(track, np.array([start_ns, end_ns], np.int64))
        return float(at[1] - at[0])


def _cuts_of(track: int, own: Intervals, removal: Removal) -> list[tuple[Intervals, float]]:
    """What goes of a thread's own time: disjoint parts with minus the share that goes."""
    parts: list[tuple[Intervals, float]] = []
    left = own
    cuts = [cut for cut in removal.host if cut.track == track]
    for cut in sorted(cuts, key=lambda one: -one.share):
        rest = left.subtract(cut.time)
        # What the subtraction took away is what goes.
        parts.append((left.subtract(rest), -cut.share))
        left = rest
    return parts


def _run(graph: StepGraph, clock: _Clock, removal: Removal) -> tuple[list[float], list[float]]:
    """When each point is passed and each piece of work ends."""
    hosts = _HostSide(graph, clock, removal)
    work = graph.work
    keep = _kept_shares(graph, removal)
    offsets, anchors = hosts.launch_offsets()
    columns = zip(
        work.key_ns.tolist(), anchors, offsets, work.before.tolist(), work.before_lag_ns.tolist(),
        work.others.tolist(), work.event.tolist(), work.lag_ns.tolist(),
        (work.dur_ns * keep).tolist(), strict=True,
    )  # fmt: skip
    ends: list[float] = []
    for key, anchor, offset, before, before_lag, other, event, lag, dur in columns:
        if key >= hosts.next_ns:
            hosts.advance(key, ends)
        start = offset if anchor == NONE else hosts.passed[anchor] + offset
        if before != NONE:
            start = max(start, ends[before] + before_lag)
        if other != NONE:
            start = max(start, ends[other])
        if event != NONE:
            start = max(start, ends[event])
        ends.append(start + lag + dur)
    hosts.advance(None, ends)
    return hosts.passed, ends


def _kept_shares(graph: StepGraph, removal: Removal) -> F64:
    """The part of each piece's duration that stays."""
    keep = np.ones(graph.work.slices.size)
    for cut in removal.device:
        inside = np.isin(graph.work.slices, cut.slices)
        keep[inside] = np.minimum(keep[inside], 1.0 - cut.share)
    return keep


def _cut_work(graph: StepGraph, removal: Removal) -> set[int]:
    """Indices of the work that is gone in whole or in part."""
    found: set[int] = set()
    for cut in removal.device:
        found.update(np.flatnonzero(np.isin(graph.work.slices, cut.slices)).tolist())
    return found


class _HostSide:
    """Passes the points of the host threads, as far as device work has come.

    Times count from the window's start: those since the epoch have no fractions in a float.
    """

    def __init__(self, graph: StepGraph, clock: _Clock, removal: Removal) -> None:
        self._graph = graph
        self._clock = clock
        self._dropped = set(removal.waits.tolist())
        self._cut = _cut_work(graph, removal)
        self._previous, self._gained = self._own_progress()
        self.passed: list[float] = []
        self._at = [point.at_ns for point in graph.points]
        self.next_ns: float = self._at[0]
        """When the next point is; no time for none."""

    def _own_progress(self) -> tuple[list[int], list[float]]:
        """For each point the one before it on its thread, and the own time since."""
        points = self._graph.points
        previous = [NONE] * len(points)
        gained = [0.0] * len(points)
        for track, mine in _by_track(points).items():
            times = np.array([points[at].at_ns for at in mine], np.int64)
            own = self._clock.at(track, times).tolist()
            for place, at in enumerate(mine[1:], start=1):
                previous[at] = mine[place - 1]
                gained[at] = own[place] - own[place - 1]
        return previous, gained

    def launch_offsets(self) -> tuple[list[float], list[int]]:
        """For each piece of work the point that its launch follows, and the time from there.

        Work whose launch cannot move has no point, and the offset is when it could begin.
        """
        work = self._graph.work
        fixed = np.where(
            work.launch_track == NONE, work.start_ns, work.launched_ns + work.latency_ns
        )
        offsets = (fixed - self._graph.window.start_ns).astype(np.float64)
        anchors = np.full(work.slices.size, NONE, np.int64)
        for track, mine in _by_track(self._graph.points).items():
            launched = np.flatnonzero(work.launch_track == track)
            if launched.size == 0:
                continue
            times = np.array([self._at[at] for at in mine], np.int64)
            place = np.searchsorted(times, work.launched_ns[launched], side="right") - 1
            launched, place = launched[place >= 0], place[place >= 0]
            since = self._clock.at(track, work.launched_ns[launched])
            since -= self._clock.at(track, times)[place]
            anchors[launched] = np.array(mine, np.int64)[place]
            offsets[launched] = since + work.latency_ns[launched]
        return offsets.tolist(), anchors.tolist()

    def advance(self, until_ns: int | None, ends: list[float]) -> None:
        """Pass all points at or before a time; all of them without one."""
        at = len(self.passed)
        while at < len(self._at) and (until_ns is None or self._at[at] <= until_ns):
            self.passed.append(self._pass(at, ends))
            at += 1
        self.next_ns = self._at[at] if at < len(self._at) else float("inf")

    def _pass(self, at: int, ends: list[float]) -> float:
        point = self._graph.points[at]
        before = self._previous[at]
        arrival = float("-inf") if before == NONE else self.passed[before] + self._gained[at]
        if point.call is not None and point.call in self._dropped:
            return arrival
        if point.awaited is Awaited.NOTHING or self._has_room(point):
            return arrival
        return max(arrival, self._released(point, ends) + point.lag_ns)

    def _has_room(self, point: HostPoint) -> bool:
        """Whether a launch need not wait for the queue, because work in it goes."""
        return point.queued is not None and not self._cut.isdisjoint((point.queued, point.target))

    def _released(self, point: HostPoint, ends: list[float]) -> float:
        if point.awaited is Awaited.TIME:
            return float(point.target - self._graph.window.start_ns)
        return self.passed[point.target] if point.awaited is Awaited.POINT else ends[point.target]


def _by_track(points: tuple[HostPoint, ...]) -> dict[int, list[int]]:
    """Indices of points by thread, by time."""
    found: dict[int, list[int]] = {}
    for at, point in enumerate(points):
        found.setdefault(point.track, []).append(at)
    return found
