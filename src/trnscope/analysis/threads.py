"""Which host thread is the one that runs the program."""

from __future__ import annotations

import numpy as np

from trnscope.analysis.step_finder import StepList
from trnscope.model.kinds import TrackKind
from trnscope.store.reader import Trace
from trnscope.store.tables import Bool


def is_host_thread(trace: Trace) -> Bool:
    """For each track: whether it is a host thread."""
    return np.array([track.kind is TrackKind.CPU_THREAD for track in trace.tracks], np.bool_)


def main_thread(trace: Trace, found: StepList) -> int | None:
    """The thread that the steps were found on, else the one with most recorded time.

    Absent where the trace has no slices on a host thread.
    """
    on_host = is_host_thread(trace)
    if found.track is not None and on_host[found.track]:
        return found.track
    lanes = trace.lanes
    recorded = np.zeros(len(trace.tracks), np.int64)
    for track, first, count in zip(
        lanes.track.tolist(), lanes.first.tolist(), lanes.count.tolist(), strict=True
    ):
        recorded[track] += trace.slices.self_ns[first : first + count].sum() + 1
    recorded[~on_host] = 0
    busiest = int(np.argmax(recorded)) if recorded.size else 0
    return busiest if recorded.size and recorded[busiest] else None
