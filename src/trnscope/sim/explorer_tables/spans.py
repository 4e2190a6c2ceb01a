"""Stretches of time: merging them, and what is moved over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trnscope.sim.explorer_tables.rows import TransferRow

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same time as few stretches as can be, in order; those of no length add nothing."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def total(spans: Iterable[Span]) -> int:
    """Length of stretches that do not overlap, ns."""
    return sum(end - start for start, end in spans)


def rates(transfers: Sequence[TransferRow]) -> list[tuple[int, float, int]]:
    """Over time: bytes per second from then on, and bytes moved until then.

    A transfer moves its bytes evenly over its duration.
    """
    changes: dict[int, float] = {}
    for one in transfers:
        if one.duration_ns > 0:
            rate = one.num_bytes / one.duration_ns
            end = one.start_ns + one.duration_ns
            changes[one.start_ns] = changes.get(one.start_ns, 0.0) + rate
            changes[end] = changes.get(end, 0.0) - rate
    found: list[tuple[int, float, int]] = []
    rate, moved, last = 0.0, 0.0, 0
    for time in sorted(changes):
        moved += rate * (time - last)
        rate = max(0.0, rate + changes[time])
        last = time
        found.append((time, rate * 1e9, round(moved)))
    if found:  # what rounding left of the rate is no transfer
        found[-1] = (found[-1][0], 0.0, found[-1][2])
    return found
