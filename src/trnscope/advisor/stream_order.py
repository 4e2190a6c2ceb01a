"""What each piece of device work in a window had to wait for, and what its start shows beyond."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32, Bool

NONE = -1
_STREAM_WAIT = re.compile(r"StreamWaitEvent")
_BASE_PERCENTILE = 5.0
"""Launch latency of work that nothing else holds up: the low end of those recorded."""
EXPLAINED_NS = 2_000
"""A start so shortly after what it waited for needs no other cause."""
CROSS_STREAM_NS = 20_000
"""Work of another stream that ended so shortly before a start, not otherwise explained, was
waited for: an event takes some µs to release a stream."""


@dataclass(frozen=True, eq=False, repr=False)
class StreamWork:
    """Device work of a window in order of ``key_ns``. Arrays have one entry a piece."""

    slices: U32
    start_ns: I64
    dur_ns: I64
    launch_track: I64
    """Host thread of the launch; ``NONE`` where work begins at its recorded time at the least."""
    launched_ns: I64
    """Start of the launch."""
    latency_ns: I64
    """Least time from launch to start."""
    before: I64
    """Index of the work before it on its stream."""
    before_lag_ns: I64
    """0, or below where the two overlap."""
    others: I64
    """Index of work on another stream, by the times; ``NONE`` for none."""
    event: I64
    """Index of work on another stream, by an event that the host had it wait for."""
    lag_ns: I64
    """What the start shows beyond all of these; never below 0."""
    key_ns: I64
    """Orders the replay: at or after the key of all that a piece depends on."""

    @property
    def ended_ns(self) -> I64:
        """Recorded ends."""
        return self.start_ns + self.dur_ns


def stream_work(trace: Trace, start_ns: int, end_ns: int) -> StreamWork:
    """The work launched in a window, and work that starts in it without a launch there."""
    launches, slices = trace.launches, trace.slices
    ids, has = launches.device_slice, launches.has_launch
    begin = slices.start_ns[ids]
    calls = np.where(has, launches.launch_slice, 0)
    tracks, called_ns = _called(trace, calls)
    launched = np.where(has, called_ns, begin)
    by_launch = has & (launched >= start_ns) & (launched < end_ns)
    by_start = (begin >= start_ns) & (begin < end_ns) & ~(has & (launched >= end_ns))
    chosen = by_launch | by_start
    launch_track = np.where(by_launch, tracks, NONE)[chosen]
    return _linked(trace, ids[chosen], launch_track, launched[chosen])


def _called(trace: Trace, calls: U32) -> tuple[I64, I64]:
    """Thread and time of each launch: those of the program's call where a thread of the runtime,
    which runs no ops, hands the work to the device for it (Neuron system profiles)."""
    slices = trace.slices
    track, time = slices.track[calls].astype(np.int64), slices.start_ns[calls].copy()
    programs = np.unique(slices.track[slices.of_kind(SliceKind.CPU_OP)])
    ids = trace.attribute("external_id")
    if ids is None or programs.size == 0:
        return track, time
    runtime = slices.of_kind(SliceKind.RUNTIME)
    runtime = runtime[np.isin(slices.track[runtime], programs)]
    known, number = ids.of(runtime)
    last = dict(zip(number[known].tolist(), runtime[known].tolist(), strict=True))
    behind = np.flatnonzero(~np.isin(track, programs))
    has, wanted = ids.of(np.asarray(calls[behind], np.uint32))
    for place, known_one, one in zip(behind.tolist(), has.tolist(), wanted.tolist(), strict=True):
        call = last.get(one) if known_one else None
        if call is not None:
            track[place] = int(slices.track[call])
            time[place] = int(slices.start_ns[call] + slices.dur_ns[call])
    return track, time


def _linked(trace: Trace, ids: U32, launch_track: I64, launched: I64) -> StreamWork:
    start, dur = trace.slices.start_ns[ids], trace.slices.dur_ns[ids]
    track = trace.slices.track[ids].astype(np.int64)
    key = _replay_key(track, start, np.where(launch_track == NONE, start, launched))
    order = np.lexsort((start, key))
    ids = ids[order]
    start, dur, track, key, launched, launch_track = (
        column[order] for column in (start, dur, track, key, launched, launch_track)
    )
    end = start + dur
    known = launch_track != NONE
    latency = _latency(start - launched, known)
    before = _before_on_stream(track, start)
    before_lag = np.where(before == NONE, 0, np.minimum(0, start - end[before]))
    ready = np.where(known, launched + latency, start)
    ready = np.where(before == NONE, ready, np.maximum(ready, end[before] + before_lag))
    event = _by_event(trace, launch_track, launched, track, (start, end, key))
    ready = np.where(event == NONE, ready, np.maximum(ready, end[event]))
    others = _by_times(track, start, end, ready)
    ready = np.where(others == NONE, ready, np.maximum(ready, end[others]))
    return StreamWork(
        ids, start, dur, launch_track, launched, latency, before, before_lag, others, event,
        start - ready, key,
    )  # fmt: skip


def _replay_key(track: I64, start: I64, launched: I64) -> I64:
    """Start, or launch where clocks put it later; rising along each stream."""
    key = np.maximum(start, launched)
    for one in np.unique(track).tolist():
        mine = np.flatnonzero(track == one)
        mine = mine[np.argsort(start[mine], kind="stable")]
        key[mine] = np.maximum.accumulate(key[mine])
    return key


def _latency(recorded: I64, known: Bool) -> I64:
    """Each piece's own where it is below what the window's quickest launches show."""
    if not known.any():
        return np.zeros(recorded.size, np.int64)
    base = int(np.percentile(recorded[known], _BASE_PERCENTILE, method="lower"))
    return np.where(known, np.minimum(recorded, max(base, 0)), 0)


def _before_on_stream(track: I64, start: I64) -> I64:
    """Index of the piece that starts before each one on its stream."""
    order = np.lexsort((np.arange(track.size), start, track))
    before = np.full(track.size, NONE, np.int64)
    same = track[order[1:]] == track[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    # Pieces of one start keep the order of their keys, so that none depends on a later one.
    before[before >= np.arange(track.size)] = NONE
    return before


def _by_times(track: I64, start: I64, end: I64, ready: I64) -> I64:
    """For a start that nothing explains: the work of another stream that had just ended."""
    found = np.full(track.size, NONE, np.int64)
    order = np.argsort(end, kind="stable")
    ended = end[order]
    for at in np.flatnonzero(start - ready > EXPLAINED_NS).tolist():
        high = int(np.searchsorted(ended, start[at], side="right"))
        low = int(np.searchsorted(ended, start[at] - CROSS_STREAM_NS))
        candidates = order[low:high][::-1]
        fits = candidates[(track[candidates] != track[at]) & (candidates < at)]
        if fits.size:
            found[at] = fits[0]
    return found


def _by_event(
    trace: Trace, launch_track: I64, launched: I64, track: I64, times: tuple[I64, I64, I64]
) -> I64:
    """What a stream was told to wait for: the last work launched before on another stream.

    The call does not say which stream waits for what; so it is taken to hold back the next
    launch of its thread, if the recorded times allow it.
    """
    start, end, key = times
    found = np.full(track.size, NONE, np.int64)
    calls = slices_named(trace, trace.slices.of_kind(SliceKind.RUNTIME), _STREAM_WAIT.search)
    for thread in np.unique(trace.slices.track[calls]).tolist():
        mine = np.flatnonzero(launch_track == thread)
        mine = mine[np.lexsort((start[mine], launched[mine]))]
        if mine.size == 0:
            continue
        at = trace.slices.start_ns[calls[trace.slices.track[calls] == thread]]
        following = np.unique(np.searchsorted(launched[mine], at))
        changed = _last_of_another(track[mine])
        for place in following[following < mine.size].tolist():
            item, other = int(mine[place]), changed[place]
            if other == NONE:
                continue
            target = int(mine[other])
            if end[target] <= start[item] and target < item and key[target] <= key[item]:
                found[item] = target
    return found


def _last_of_another(track: I64) -> list[int]:
    """For each place the last one before it with another track; ``NONE`` for none."""
    changed: list[int] = []
    for place, one in enumerate(track.tolist()):
        if place == 0:
            changed.append(NONE)
        elif track[place - 1] != one:
            changed.append(place - 1)
        else:
            changed.append(changed[-1])
    return changed
