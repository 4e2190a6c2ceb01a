"""Open an already indexed trace in this process, time it and a group-by, print both as JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np

import trnscope
from trnscope.analysis.grouping import I64, group_sum
from trnscope.store.reader import Trace

NUM_GROUP_BYS = 9


def group_by(trace: Trace) -> tuple[I64, I64]:
    """Count and total ns of the slices of each (category, name), at category * names + name."""
    num_names = len(trace.strings)
    slices = trace.slices
    keys = slices.category * np.uint32(num_names) + slices.name
    return group_sum(keys, slices.dur_ns, len(trace.categories) * num_names)


def main() -> None:
    start = time.perf_counter()
    profile = trnscope.open(sys.argv[1])
    open_seconds = time.perf_counter() - start
    (trace,) = profile.traces
    seconds = []
    for _ in range(NUM_GROUP_BYS):
        start = time.perf_counter()
        counts, totals = group_by(trace)
        seconds.append(time.perf_counter() - start)
    names = trace.strings
    groups = [
        [
            trace.categories[key // len(names)],
            names[key % len(names)],
            int(counts[key]),
            int(totals[key]),
        ]
        for key in np.flatnonzero(counts).tolist()
    ]
    answer = {
        "open_seconds": open_seconds,
        "group_by_seconds": statistics.median(seconds),
        "num_events": profile.num_events,
        "num_slices": len(trace.slices),
        "groups": groups,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
