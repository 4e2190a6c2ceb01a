"""How many executions a NeuronCore lets the host queue, and what each launch so has to wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.stream_order import NONE, StreamWork
from trnscope.analysis.names import slices_named
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.store.reader import Trace

_QUEUE_FULL = re.compile(r"^nrt_queue_wait$")


def queue_waits(trace: Trace, work: StreamWork) -> Iterator[tuple[int, int]]:
    """Pairs of indices: the second piece of work has to end before the first is launched.

    The queue of a stream holds as many as the trace shows at one time, if the host ever waited
    because it was full; else it is taken to have no end. As recorded no launch waits for these:
    they hold back launches that would come earlier.
    """
    full = slices_named(trace, trace.slices.of_kind(SliceKind.RUNTIME), _QUEUE_FULL.search)
    if full.size == 0:
        return
    stream = trace.slices.track[work.slices]
    for track in np.unique(stream).tolist():
        device = trace.tracks[track].device
        if device is None or device.kind is not DeviceKind.NEURON:
            continue
        mine = np.flatnonzero((stream == track) & (work.launch_track != NONE))
        mine = mine[np.argsort(work.launched_ns[mine], kind="stable")]
        ended = np.sort(work.ended_ns[mine])
        done = np.searchsorted(ended, work.launched_ns[mine], side="right")
        most = int((np.arange(mine.size) - done).max(initial=0))
        yield from zip(mine[most + 1 :].tolist(), mine[: -most - 1].tolist(), strict=True)
