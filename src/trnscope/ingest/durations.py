"""Which durations are kept: those that no clock measures, or that 64 bits cannot add up, are not.

Every sum of durations is a 64-bit integer. A duration of years is damage in any trace. Shorter
ones than :data:`LONG_NS` cannot overflow a sum: that would take 16 million of them. Of the long
ones as many are kept as a budget holds, in the order of the file; months have a budget of their
own, so that a few damaged ones cannot crowd out the hours of a whole job.
"""

from __future__ import annotations

import numpy as np

from trnscope.store.tables import I64, Bool

LIMIT_NS = 1 << 58
"""Nine years: no slice lasts as long."""
LONG_NS = 1 << 38
"""275 s: from here on durations are counted against a budget."""
_MONTHS_NS = 1 << 53
"""104 days."""
BUDGET_NS = 1 << 60
"""36 years for each of both; together half of what fits an end time."""


class DurationBudget:
    """Admits durations of one file."""

    def __init__(self) -> None:
        self._budgets = (_Budget(LONG_NS, _MONTHS_NS), _Budget(_MONTHS_NS, LIMIT_NS))

    def admits(self, dur_ns: I64) -> Bool:
        """Which of these durations are kept; later calls have what is left."""
        kept: Bool = dur_ns < LIMIT_NS
        for budget in self._budgets:
            kept[budget.refused(dur_ns)] = False
        return kept


class _Budget:
    """What may still be admitted of durations in ``[low, high)``."""

    def __init__(self, low_ns: int, high_ns: int) -> None:
        self._low_ns = low_ns
        self._high_ns = high_ns
        self._left_ns = BUDGET_NS

    def refused(self, dur_ns: I64) -> list[int]:
        """The rows that do not fit."""
        mine = np.flatnonzero((dur_ns >= self._low_ns) & (dur_ns < self._high_ns))
        durations = dur_ns[mine]
        # As floats first: a sum far from the limit needs no second look.
        if float(durations.sum(dtype=np.float64)) < 0.999 * self._left_ns:
            self._left_ns -= int(durations.sum())
            return []
        refused = []
        for row, duration in zip(mine.tolist(), durations.tolist(), strict=True):
            if duration <= self._left_ns:
                self._left_ns -= duration
            else:
                refused.append(row)
        return refused
