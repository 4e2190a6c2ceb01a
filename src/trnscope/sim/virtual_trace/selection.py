"""What of a recording is kept: chosen cores, and the latest executions of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from trnscope.sim.virtual_trace.recording import Launch, Recording


def select(
    recording: Recording, cores: frozenset[int] | None = None, max_events: int | None = None
) -> Recording:
    """The recording of some cores (None: all), each with its latest ``max_events`` executions.

    A ring buffer on each core would hold the same; what it overwrote is counted by core.
    """
    wanted = [one for one in recording.launches if cores is None or one.core in cores]
    kept, dropped = _latest(wanted, max_events)
    total = Counter(recording.dropped) + dropped
    memory = [row for row in recording.memory if cores is None or row.core in cores]
    return replace(
        recording, launches=tuple(kept), memory=tuple(memory), dropped=dict(sorted(total.items()))
    )


def dropped_text(recording: Recording) -> str | None:
    """What a user is told about drops; None when everything was kept."""
    dropped = sum(recording.dropped.values())
    if not dropped:
        return None
    stored = len(recording.launches)
    return (
        f"{dropped} trace events were dropped during capture "
        f"(stored {stored} out of {stored + dropped} total events); raise max_events_per_nc"
    )


def _latest(launches: list[Launch], limit: int | None) -> tuple[Iterable[Launch], Counter[int]]:
    counts = Counter(launch.core for launch in launches)
    excess: Counter[int] = Counter()
    if limit is not None:
        excess = Counter({core: n - limit for core, n in counts.items() if n > limit})
    left = Counter(excess)
    kept = []
    for launch in launches:
        if left[launch.core] > 0:
            left[launch.core] -= 1
        else:
            kept.append(launch)
    return kept, excess
