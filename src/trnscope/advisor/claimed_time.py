"""Which time findings already stand for, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.model.intervals import Intervals


@dataclass(frozen=True, eq=False, repr=False)
class ClaimedTime:
    """Stretches of a trace, of which a share each is claimed; the others are free."""

    parts: tuple[tuple[Intervals, float], ...] = ()
    """Disjoint."""

    def free_share(self, time: Intervals) -> float:
        """Of some time, what nobody claims; 1 for no time at all."""
        if time.total == 0:
            return 1.0
        claimed = sum(share * _common(time, part).total for part, share in self.parts)
        return 1.0 - claimed / time.total

    def plus(self, time: Intervals, share: float) -> ClaimedTime:
        """With this share claimed of what was free of some time."""
        parts: list[tuple[Intervals, float]] = []
        new = time
        for part, claimed in self.parts:
            parts.append((part.subtract(time), claimed))
            parts.append((_common(part, time), claimed + share * (1.0 - claimed)))
            new = new.subtract(part)
        parts.append((new, share))
        return ClaimedTime(tuple(one for one in parts if len(one[0])))


def _common(one: Intervals, other: Intervals) -> Intervals:
    return one.subtract(one.subtract(other))
