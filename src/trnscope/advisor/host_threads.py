"""When each host thread works in its own time, and when it waits for another.

The main thread runs the program. While it shows no op (it called backward, say), other threads
may work for it: such a burst begins when the main thread came to that point, and the main
thread goes on when the burst ends. A burst beside ops of the main thread only begins with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.threads import is_host_thread
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace

JOINED_NS = 50_000
"""Ops of one thread closer than this are one burst: autograd's threads take some µs from one
node to the next, also under a profiler."""


@dataclass(frozen=True)
class Burst:
    """Work of another thread than the main one; ns."""

    track: int
    start_ns: int
    end_ns: int
    awaited: bool
    """Whether the main thread does nothing until it ends."""


def op_time(trace: Trace, track: int, start_ns: int, end_ns: int) -> Intervals:
    """When a thread runs any op or runtime call, within some window."""
    slices = trace.slices
    pieces = []
    for at, first, count in zip(*_lanes(trace), strict=True):
        if at != track:
            continue
        rows = slice(first, first + count)
        kind = slices.kind[rows]
        mine = (kind == SliceKind.CPU_OP) | (kind == SliceKind.RUNTIME)
        start = slices.start_ns[rows][mine]
        pieces.append((start, start + slices.dur_ns[rows][mine]))
    if not pieces:
        return Intervals.empty()
    start, end = (np.concatenate(side) for side in zip(*pieces, strict=True))
    return Intervals.union_of(start, end).clip(start_ns, end_ns)


def bursts(trace: Trace, main: int, start_ns: int, end_ns: int) -> tuple[Burst, ...]:
    """What threads other than ``main``, of its process, do in a window, by end."""
    busy = op_time(trace, main, start_ns, end_ns)
    process = trace.tracks[main].process
    found: list[Burst] = []
    for track in np.flatnonzero(is_host_thread(trace)).tolist():
        if track != main and trace.tracks[track].process == process:
            theirs = op_time(trace, track, start_ns, end_ns)
            found += _of_thread(track, theirs, busy, start_ns, end_ns)
    return tuple(sorted(found, key=lambda one: (one.end_ns, one.start_ns, one.track)))


def _of_thread(
    track: int, theirs: Intervals, busy: Intervals, start_ns: int, end_ns: int
) -> list[Burst]:
    """The bursts of one thread; those in one pause of the main thread are one, and awaited."""
    if len(theirs) == 0:
        return []
    pause_start = np.concatenate(([start_ns], busy.end))
    pause_end = np.append(busy.start, end_ns)
    pause = np.searchsorted(pause_start, theirs.start, side="right") - 1
    awaited = (theirs.end <= pause_end[pause]) & (pause > 0) & (pause < len(busy))
    near = theirs.start[1:] - theirs.end[:-1] <= JOINED_NS
    same = (pause[1:] == pause[:-1]) | near
    joined = (awaited[1:] == awaited[:-1]) & same
    joined &= ~awaited[1:] | (pause[1:] == pause[:-1])
    first = np.flatnonzero(np.append(True, ~joined))
    last = np.append(first[1:], len(theirs)) - 1
    return [
        Burst(track, int(theirs.start[a]), int(theirs.end[b]), bool(awaited[a]))
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
    ]


def _lanes(trace: Trace) -> tuple[list[int], list[int], list[int]]:
    lanes = trace.lanes
    return lanes.track.tolist(), lanes.first.tolist(), lanes.count.tolist()


def own_time(start_ns: int, end_ns: int, waits: list[tuple[int, int]]) -> Intervals:
    """A window without some waits."""
    whole = Intervals(np.array([start_ns], np.int64), np.array([end_ns], np.int64))
    if not waits:
        return whole
    pairs = np.array(waits, np.int64)
    return whole.subtract(Intervals.union_of(pairs[:, 0], pairs[:, 1]))
