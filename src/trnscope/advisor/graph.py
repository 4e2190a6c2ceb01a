"""The dependency graph of a window of steps: what each piece of work had to wait for.

Host threads are clocks that stand still in waits. Points on them are the ends of waits and the
places where threads meet. Device work depends on its launch, on the work before it on its
stream, and on work of other streams. Whatever a start shows beyond its dependencies is kept as
a lag, so that the graph as recorded gives the recorded times. See docs/decisions/0010-replay.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from trnscope.advisor.host_threads import Burst, bursts, own_time
from trnscope.advisor.host_waits import HostWait, batch_waits, device_waits
from trnscope.advisor.queue_limit import queue_waits
from trnscope.advisor.stream_order import StreamWork, stream_work
from trnscope.advisor.window import StepWindow, host_bounds
from trnscope.analysis.step_finder import find_steps
from trnscope.analysis.threads import is_host_thread, main_thread
from trnscope.model.intervals import I64, Intervals
from trnscope.store.reader import Trace


class Awaited(IntEnum):
    """What a point of a host thread waits for."""

    NOTHING = 0
    WORK = 1
    """A piece of device work."""
    POINT = 2
    """A point of another thread."""
    TIME = 3
    """An instant that nothing here can move."""


@dataclass(frozen=True)
class HostPoint:
    """A place on a host thread; ns."""

    track: int
    at_ns: int
    awaited: Awaited
    target: int
    """Index of the work or point, or the instant; meaningful unless it waits for nothing."""
    lag_ns: int = 0
    """Added to when that ends or is passed."""
    call: int | None = None
    """Slice id of the call that waits."""
    queued: int | None = None
    """Index of the work that is launched here, if it waits for room in the queue."""


@dataclass(frozen=True, eq=False, repr=False)
class StepGraph:
    """What a window's work depends on."""

    window: StepWindow
    main: int
    host_end_ns: int
    """Where the main thread's part of the window ends."""
    points: tuple[HostPoint, ...]
    """By time; a point depends on earlier ones only."""
    own: dict[int, Intervals]
    """By host thread: when its clock runs."""
    work: StreamWork

    @property
    def recorded_ns(self) -> int:
        """From the window's start to the last end of anything in it."""
        ended = int(self.work.ended_ns.max()) if self.work.slices.size else self.host_end_ns
        return max(self.host_end_ns, ended) - self.window.start_ns


def build_graph(trace: Trace, window: StepWindow) -> StepGraph | None:
    """The graph of a window; absent where the trace has no host thread."""
    main = main_thread(trace, find_steps(trace))
    if main is None:
        return None
    start_ns, end_ns = host_bounds(trace, window)
    work = stream_work(trace, window.start_ns, window.end_ns)
    batches = batch_waits(trace, main, start_ns, end_ns)
    waits = [*_outside(device_waits(trace, start_ns, end_ns), batches), *batches]
    maker = _Maker(main, start_ns, end_ns, work)
    for wait in waits:
        maker.add_wait(wait)
    for launched, ended in queue_waits(trace, work):
        maker.add_queue_wait(launched, ended)
    maker.add_bursts(bursts(trace, main, start_ns, end_ns))
    for track in _other_programs(trace, main, maker.tracks()):
        maker.add_program(track)
    return StepGraph(window, main, end_ns, maker.points(), maker.own(), work)


def _outside(waits: list[HostWait], batches: list[HostWait]) -> list[HostWait]:
    """Waits that lie in none of the batches' on the same thread."""
    return [
        wait
        for wait in waits
        if not any(
            b.track == wait.track and b.start_ns <= wait.start_ns < b.end_ns for b in batches
        )
    ]


def _other_programs(trace: Trace, main: int, tracks: set[int]) -> list[int]:
    """Those threads that belong to another process than the main one."""
    on_host, process = is_host_thread(trace), trace.tracks[main].process
    return [
        track
        for track in sorted(tracks)
        if track >= 0 and on_host[track] and trace.tracks[track].process != process
    ]


@dataclass(frozen=True)
class _Draft:
    """A point before it has an index; ``meets`` is the place in the list that it waits for."""

    point: HostPoint
    rank: int
    """Order among points of one instant: what is waited for comes first."""
    meets: int | None = None


class _Maker:
    """Collects points of threads and the times in which their clocks run."""

    def __init__(self, main: int, start_ns: int, end_ns: int, work: StreamWork) -> None:
        self._main = main
        self._bounds = (start_ns, end_ns)
        self._work = work
        self._index_of = {at: index for index, at in enumerate(work.slices.tolist())}
        self._drafts = [_Draft(HostPoint(main, start_ns, Awaited.TIME, start_ns), 0)]
        self._still: dict[int, list[tuple[int, int]]] = {main: []}
        self._runs: dict[int, list[tuple[int, int]]] = {}

    def add_wait(self, wait: HostWait) -> None:
        """A call that ends when device work does, or at a batch's own time."""
        if wait.work is None:
            point = HostPoint(wait.track, wait.end_ns, Awaited.TIME, wait.end_ns, call=wait.call)
        else:
            index = self._index_of.get(wait.work)
            # Work is replayed in the order of its key: only an earlier one can be waited for.
            if index is None or int(self._work.key_ns[index]) >= wait.end_ns:
                return
            # Clocks differ by some µs: the call may end a little before the work does.
            early = min(0, wait.end_ns - int(self._work.ended_ns[index]))
            point = HostPoint(wait.track, wait.end_ns, Awaited.WORK, index, early, wait.call)
        self._still.setdefault(wait.track, []).append((wait.start_ns, wait.end_ns))
        self._add(point, 2)

    def add_queue_wait(self, launched: int, ended: int) -> None:
        """A launch that cannot come before another piece of work has ended."""
        at_ns = int(self._work.launched_ns[launched])
        if int(self._work.key_ns[ended]) < at_ns and int(self._work.ended_ns[ended]) <= at_ns:
            track = int(self._work.launch_track[launched])
            self._add(HostPoint(track, at_ns, Awaited.WORK, ended, queued=launched), 2)

    def add_bursts(self, found: tuple[Burst, ...]) -> None:
        """Other threads begin when the main one is there; it waits for them, or not."""
        mine = self._still[self._main]
        mine += [(burst.start_ns, burst.end_ns) for burst in found if burst.awaited]
        still = Intervals.union_of(*_columns(mine))
        for burst in found:
            self._add_burst(burst, _last_moving(still, burst.start_ns))

    def _add_burst(self, burst: Burst, begun_ns: int) -> None:
        begin = self._add(HostPoint(self._main, begun_ns, Awaited.NOTHING, 0), 0)
        lag_ns = burst.start_ns - begun_ns
        self._add(HostPoint(burst.track, burst.start_ns, Awaited.POINT, 0, lag_ns), 1, begin)
        self._runs.setdefault(burst.track, []).append((burst.start_ns, burst.end_ns))
        if burst.awaited:
            end = self._add(HostPoint(burst.track, burst.end_ns, Awaited.NOTHING, 0), 2)
            self._add(HostPoint(self._main, burst.end_ns, Awaited.POINT, 0), 3, end)

    def _add(self, point: HostPoint, rank: int, meets: int | None = None) -> int:
        self._drafts.append(_Draft(point, rank, meets))
        return len(self._drafts) - 1

    def tracks(self) -> set[int]:
        """Host threads that wait or launch in the window."""
        waiting = {draft.point.track for draft in self._drafts}
        return waiting | set(np.unique(self._work.launch_track).tolist())

    def add_program(self, track: int) -> None:
        """A thread of another process: it runs by itself through the whole window."""
        start_ns = self._bounds[0]
        self._add(HostPoint(track, start_ns, Awaited.TIME, start_ns), 0)
        self._runs[track] = [self._bounds]

    def points(self) -> tuple[HostPoint, ...]:
        """All points by time, their targets renumbered."""
        order = sorted(
            range(len(self._drafts)),
            key=lambda at: (self._drafts[at].point.at_ns, self._drafts[at].rank, at),
        )
        place = {at: index for index, at in enumerate(order)}
        result = []
        for at in order:
            draft = self._drafts[at]
            target = draft.point.target if draft.meets is None else place[draft.meets]
            result.append(replace(draft.point, target=target))
        return tuple(result)

    def own(self) -> dict[int, Intervals]:
        """When each thread's clock runs."""
        found = {self._main: own_time(*self._bounds, self._still[self._main])}
        for track, runs in self._runs.items():
            still = Intervals.union_of(*_columns(self._still.get(track, [])))
            found[track] = Intervals.union_of(*_columns(runs)).subtract(still)
        return found


def _columns(pairs: list[tuple[int, int]]) -> tuple[I64, I64]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _last_moving(still: Intervals, at_ns: int) -> int:
    """A time, or where it lies in a stretch in which the clock stands still, its start."""
    index = int(np.searchsorted(still.start, at_ns, side="right")) - 1
    if index >= 0 and at_ns < int(still.end[index]):
        return int(still.start[index])
    return at_ns
