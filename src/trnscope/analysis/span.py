"""From when to when does a trace hold real work."""

from __future__ import annotations

import numpy as np

from trnscope.analysis.memo import once_per_trace
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_NO_WORK = (
    SliceKind.DEVICE_ANNOTATION,
    SliceKind.SYNC,
    SliceKind.OVERHEAD,
    SliceKind.PROFILER,
)


def span_ns(profile: Profile) -> int:
    """First start to last end of real work, ns.

    Real work is every slice but device annotations, sync rows, the profiler's overhead and
    its own rows; counters and instants do not count either. Several files are spanned
    together where all their times count from the Unix epoch, else it is the longest one's.
    """
    windows = [window for trace in profile.traces if (window := work_window(trace)) is not None]
    if not windows:
        return 0
    if all(trace.source.epoch for trace in profile.traces):
        return max(end for _, end in windows) - min(start for start, _ in windows)
    return max(end - start for start, end in windows)


@once_per_trace
def work_window(trace: Trace) -> tuple[int, int] | None:
    """First start and last end of real work in one trace, ns; absent where there is none."""
    slices = trace.slices
    lanes = trace.lanes
    on_profiler_row = np.array([t.kind is TrackKind.PROFILER for t in trace.tracks], np.bool_)
    is_work = np.ones(256, np.bool_)
    is_work[list(_NO_WORK)] = False
    first: int | None = None
    last: int | None = None
    for track, begin, count in zip(
        lanes.track.tolist(), lanes.first.tolist(), lanes.count.tolist(), strict=True
    ):
        if on_profiler_row[track]:
            continue
        rows = slice(begin, begin + count)
        work = np.flatnonzero(is_work[slices.kind[rows]])
        if work.size == 0:
            continue
        start = int(slices.start_ns[begin + int(work[0])])
        end_row = begin + int(work[-1])
        end = int(slices.start_ns[end_row] + slices.dur_ns[end_row])
        first = start if first is None else min(first, start)
        last = end if last is None else max(last, end)
    return None if first is None or last is None else (first, last)
