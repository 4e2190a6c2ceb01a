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
        new = time
        shares: dict[float, Intervals] = {}
        for part, claimed in self.parts:
            _add(shares, part.subtract(time), claimed)
            _add(shares, _common(part, time), claimed + share * (1.0 - claimed))
            new = new.subtract(part)
        _add(shares, new, share)
        return ClaimedTime(tuple((part, claimed) for claimed, part in shares.items()))


def _add(shares: dict[float, Intervals], time: Intervals, share: float) -> None:
    """One set of stretches for each share: few, whatever number of findings."""
    if len(time):
        known = shares.get(share)
        shares[share] = time if known is None else known.union(time)


def _common(one: Intervals, other: Intervals) -> Intervals:
    return one.subtract(one.subtract(other))
