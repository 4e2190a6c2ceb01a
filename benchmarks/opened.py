"""Open an already indexed trace in this process, time it and a group-by, print both as JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np

import trnscope
from trnscope.store.reader import Trace

NUM_GROUP_BYS = 9


def group_by(trace: Trace) -> tuple[Any, Any, Any]:
    """Count and total ns of the slices of each (category, name): codes, counts, totals."""
    num_names = len(trace.strings)
    slices = trace.slices
    codes = slices.category.astype(np.int64) * num_names + slices.name
    counts = np.bincount(codes)
    # Sums stay below 2**53, where doubles are exact.
    totals = np.bincount(codes, weights=slices.dur_ns)
    used = np.flatnonzero(counts)
    return used, counts[used], totals[used].astype(np.int64)


def main() -> None:
    start = time.perf_counter()
    profile = trnscope.open(sys.argv[1])
    open_seconds = time.perf_counter() - start
    (trace,) = profile.traces
    seconds = []
    for _ in range(NUM_GROUP_BYS):
        start = time.perf_counter()
        codes, counts, totals = group_by(trace)
        seconds.append(time.perf_counter() - start)
    names = trace.strings
    groups = [
        [trace.categories[code // len(names)], names[code % len(names)], count, total]
        for code, count, total in zip(codes.tolist(), counts.tolist(), totals.tolist(), strict=True)
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
