"""Host calls that wait: for device work, or for a batch that another process makes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace
from trnscope.store.tables import U32

_WAITS = re.compile(r"Synchronize|(cuda|hip)Free$|_wait|Finish")
"""Runtime calls that return only when what was launched before is done."""
_COPIES = re.compile(r"[Mm]emcpy|tensor_read|tensor_write")
"""Runtime calls that may return only when their own copy is done (from or to pageable memory)."""
_LOADER = re.compile(r"enumerate\(DataLoader\)#_MultiProcessing")
LEAST_LOADER_WAIT_NS = 500_000
"""A batch that is ready is handed over faster than this; a longer call waited for a worker."""
LEAST_BLOCKED_NS = 50_000
"""A launch takes some 10 µs; one that takes longer may have waited for room in the queue."""
FULL_QUEUE = 500
"""Pieces of work queued from which on a long launch waited for room: CUDA holds 1,024 launches, and
a launch may be of several pieces."""
CLOCK_TOLERANCE_NS = 5_000
"""Device work may end so much after the call that waited for it: the two clocks differ."""


@dataclass(frozen=True, eq=False, repr=False)
class HostWait:
    """A stretch of a host thread that ends when something else does; ns."""

    call: int
    """Slice id of the call (or of the loader's range)."""
    track: int
    start_ns: int
    end_ns: int
    work: int | None
    """Slice id of the device work waited for; absent for a batch."""


def device_waits(trace: Trace, start_ns: int, end_ns: int) -> list[HostWait]:
    """Calls in a window that ended when device work did.

    The work is the last to end, of all that was launched before the call or by it, that had
    ended when the call did. If that was before the call began, it did not wait.
    """
    launches = trace.launches
    runtime = trace.slices.of_kind(SliceKind.RUNTIME)
    begin = trace.slices.start_ns[runtime]
    runtime = runtime[(begin >= start_ns) & (begin < end_ns)]
    work = launches.device_slice[launches.has_launch]
    if runtime.size == 0 or work.size == 0:
        return []
    calls = launches.launch_slice[launches.has_launch]
    ended = trace.slices.start_ns[work] + trace.slices.dur_ns[work]
    order = np.argsort(ended, kind="stable")
    known = _Work(work[order], calls[order], trace.slices.start_ns[calls[order]], ended[order])
    waiting = slices_named(trace, runtime, _WAITS.search)
    copying = slices_named(trace, runtime, _COPIES.search)
    rest = np.setdiff1d(np.intersect1d(calls, runtime), np.union1d(waiting, copying))
    return [
        *_for_all(trace, waiting, known),
        *_for_itself(trace, copying, known),
        *_for_room(trace, rest.astype(np.uint32), known),
    ]


@dataclass(frozen=True, eq=False, repr=False)
class _Work:
    """Device work by end."""

    slices: U32
    calls: U32
    launched_ns: I64
    ended_ns: I64


def _for_all(trace: Trace, calls: U32, work: _Work) -> list[HostWait]:
    """Calls that end when the last of all that was launched before does."""
    start = trace.slices.start_ns[calls]
    end = start + trace.slices.dur_ns[calls]
    low = np.searchsorted(work.ended_ns, start, side="right")
    high = np.searchsorted(work.ended_ns, end + CLOCK_TOLERANCE_NS, side="right")
    found = []
    for at in np.flatnonzero(high > low).tolist():
        before = np.flatnonzero(work.launched_ns[int(low[at]) : int(high[at])] <= start[at])
        if before.size:
            found.append(_wait(trace, int(calls[at]), work, int(low[at]) + int(before[-1])))
    return [wait for wait in found if wait.end_ns > wait.start_ns]


def _for_itself(trace: Trace, calls: U32, work: _Work) -> list[HostWait]:
    """Calls that end when what they launched does."""
    own = np.flatnonzero(np.isin(work.calls, calls))
    end = trace.slices.start_ns[work.calls[own]] + trace.slices.dur_ns[work.calls[own]]
    waited = own[work.ended_ns[own] <= end + CLOCK_TOLERANCE_NS]
    # Of several copies of one call the last to end counts.
    last = {int(work.calls[at]): at for at in waited.tolist()}
    return [_wait(trace, call, work, at) for call, at in last.items()]


def _for_room(trace: Trace, calls: U32, work: _Work) -> list[HostWait]:
    """Launches that found the queue full: they end when a piece of work does."""
    slices = trace.slices
    calls = calls[slices.dur_ns[calls] >= LEAST_BLOCKED_NS]
    start = slices.start_ns[calls]
    end = start + slices.dur_ns[calls]
    unlinked = trace.launches.device_slice[~trace.launches.has_launch]
    all_ended = np.sort(
        np.append(work.ended_ns, slices.start_ns[unlinked] + slices.dur_ns[unlinked])
    )
    launched = np.sort(work.launched_ns)
    queued = np.searchsorted(launched, start) + unlinked.size - np.searchsorted(all_ended, start)
    low = np.searchsorted(work.ended_ns, start, side="right")
    high = np.searchsorted(work.ended_ns, end, side="right")
    full = np.flatnonzero((queued >= FULL_QUEUE) & (high > low))
    return [_wait(trace, int(calls[at]), work, int(high[at]) - 1) for at in full.tolist()]


def _wait(trace: Trace, call: int, work: _Work, at: int) -> HostWait:
    start = int(trace.slices.start_ns[call])
    until = min(int(work.ended_ns[at]), start + int(trace.slices.dur_ns[call]))
    track = int(trace.slices.track[call])
    return HostWait(call, track, start, until, int(work.slices[at]))


def batch_waits(trace: Trace, main: int, start_ns: int, end_ns: int) -> list[HostWait]:
    """Stretches in which the main thread waits for a worker process to deliver a batch."""
    ranges = slices_named(trace, trace.slices.of_kind(SliceKind.ANNOTATION), _LOADER.match)
    start, dur = trace.slices.start_ns[ranges], trace.slices.dur_ns[ranges]
    inside = (start >= start_ns) & (start + dur <= end_ns) & (dur >= LEAST_LOADER_WAIT_NS)
    mine = ranges[inside & (trace.slices.track[ranges] == main)]
    return [
        HostWait(
            at,
            main,
            int(trace.slices.start_ns[at]),
            int(trace.slices.start_ns[at] + trace.slices.dur_ns[at]),
            None,
        )
        for at in mine.tolist()
    ]
