"""Interval algebra on sorted, half-open integer intervals ``[start, end)``.

An interval set is a pair of int64 arrays of equal length. The functions that say *merged*
expect and return sets that are sorted, non-empty in each interval and disjoint.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Intervals:
    """A merged interval set: sorted, disjoint, no empty member. Times in ns."""

    start: I64
    end: I64

    @staticmethod
    def empty() -> Intervals:
        """The set that covers nothing."""
        return Intervals(np.empty(0, np.int64), np.empty(0, np.int64))

    @staticmethod
    def union_of(start: I64, end: I64) -> Intervals:
        """Merge any intervals, in any order; those of no length add nothing."""
        keep = end > start
        start, end = start[keep], end[keep]
        if start.size == 0:
            return Intervals.empty()
        order = np.argsort(start, kind="stable")
        start, reach = start[order], np.maximum.accumulate(end[order])
        first = np.concatenate(([True], start[1:] > reach[:-1]))
        last = np.concatenate((first[1:], [True]))
        return Intervals(start[first], reach[last])

    @staticmethod
    def lasting(start: I64, dur: I64) -> Intervals:
        """The same from starts and durations, as slices have them."""
        return Intervals.union_of(start, start + dur)

    @property
    def total(self) -> int:
        """Covered time, ns."""
        return int((self.end - self.start).sum())

    def __len__(self) -> int:
        return int(self.start.size)

    def union(self, other: Intervals) -> Intervals:
        """Time covered by either set."""
        return Intervals.union_of(
            np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end))
        )

    def subtract(self, other: Intervals) -> Intervals:
        """Time covered by this set and not by ``other``."""
        if len(self) == 0 or len(other) == 0:
            return self
        # Sweep: +1 for self, +2 for other; keep the stretches where only self is open.
        times = np.concatenate((self.start, self.end, other.start, other.end))
        ones, twos = np.ones(len(self), np.int64), np.full(len(other), 2, np.int64)
        change = np.concatenate((ones, -ones, twos, -twos))
        order = np.argsort(times, kind="stable")
        times = times[order]
        state = np.cumsum(change[order])
        stretch = (state[:-1] == 1) & (times[1:] > times[:-1])
        return Intervals.union_of(times[:-1][stretch], times[1:][stretch])

    def clip(self, start: int, end: int) -> Intervals:
        """The part inside ``[start, end)``."""
        lo, hi = np.maximum(self.start, start), np.minimum(self.end, end)
        keep = hi > lo
        return Intervals(lo[keep], hi[keep])

    def covered_within(self, starts: I64, ends: I64) -> I64:
        """Covered ns inside each window ``[starts[i], ends[i])``; windows may overlap."""
        return self._covered_before(ends) - self._covered_before(starts)

    def _covered_before(self, times: I64) -> I64:
        lengths = np.concatenate(([0], np.cumsum(self.end - self.start)))
        index = np.searchsorted(self.start, times, side="right")
        inside = np.zeros(times.shape, np.int64)
        has = index > 0
        over = self.end[index[has] - 1] - times[has]
        inside[has] = np.maximum(over, 0)
        return np.asarray(lengths[index] - inside, dtype=np.int64)
