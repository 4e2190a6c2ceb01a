"""How often the doctor is right: counts over the results of a half. Nothing here runs anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

LEAST_SHARE = 0.05
"""Of a step: the doctor does not speak of less, so a fault that costs less is counted apart."""


@dataclass(frozen=True)
class Said:
    """A finding."""

    code: str
    low_ns: int | None
    """Absent, with the other two, for a fault of the recording."""
    likely_ns: int | None
    high_ns: int | None
    share: float | None
    """``likely_ns`` over the recorded step that it is of."""


@dataclass(frozen=True)
class Judged:
    """One faulty program: what the doctor said, and what was so."""

    name: str
    kind: str
    device: str
    codes: tuple[str, ...]
    """The rules that name its fault."""
    costs: bool
    said: tuple[Said, ...]
    """As ranked."""
    faulty_ns: int | None
    """A step without a profiler; absent for faults of the recording."""
    healthy_ns: int | None

    @property
    def realised_ns(self) -> int | None:
        """What the fault costs."""
        if self.faulty_ns is None or self.healthy_ns is None:
            return None
        return self.faulty_ns - self.healthy_ns

    @property
    def matters(self) -> bool:
        """Whether it costs as much as the doctor speaks of."""
        if not self.costs:
            return True
        realised, whole = self.realised_ns, self.faulty_ns
        return realised is not None and whole is not None and realised >= LEAST_SHARE * whole

    @property
    def ranked(self) -> tuple[str, ...]:
        """Codes of its kind of finding: with time, or faults of the recording."""
        return tuple(one.code for one in self.said if (one.likely_ns is not None) == self.costs)

    @property
    def is_first(self) -> bool:
        """Whether the first finding names the fault."""
        return self.is_among(1)

    def is_among(self, count: int) -> bool:
        """Whether one of the first does."""
        return any(code in self.codes for code in self.ranked[:count])

    @property
    def named(self) -> Said | None:
        """The finding that names it."""
        found = (one for one in self.said if one.code in self.codes and one.likely_ns is not None)
        return next(found, None)

    @property
    def predicted_ns(self) -> tuple[int, int, int] | None:
        """Low, likely and high, for a step without a profiler."""
        named, whole = self.named, self.faulty_ns
        if named is None or whole is None or named.share is None or not named.likely_ns:
            return None
        scale = named.share * whole / named.likely_ns
        times = (named.low_ns or 0, named.likely_ns, named.high_ns or 0)
        low, likely, high = (round(time * scale) for time in times)
        return low, likely, high

    @property
    def error(self) -> float | None:
        """How far the likely figure is from what came back, as a share of that."""
        predicted, realised = self.predicted_ns, self.realised_ns
        if predicted is None or realised is None or realised <= 0:
            return None
        return abs(predicted[1] / realised - 1.0)

    @property
    def is_covered(self) -> bool | None:
        """Whether what came back lies between low and high."""
        predicted, realised = self.predicted_ns, self.realised_ns
        if predicted is None or realised is None:
            return None
        return predicted[0] <= realised <= predicted[2]


@dataclass(frozen=True)
class Healthy:
    """A program without a fault, and the codes of what the doctor said costs time."""

    name: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class Careful:
    """A damaged capture, and whether the doctor was careful."""

    name: str
    is_careful: bool


@dataclass(frozen=True)
class RuleScore:
    """One rule. Counts."""

    code: str
    first: int
    """How often its finding came first, over faulty and healthy programs."""
    first_rightly: int
    faults: int
    """Faults that it should name."""
    named: int
    """Of those, in one of the first three findings."""


@dataclass(frozen=True)
class Score:
    """Over one half."""

    judged: tuple[Judged, ...]
    """Faulty programs whose fault matters."""
    small: tuple[Judged, ...]
    """Those whose fault takes less than the doctor speaks of."""
    healthy: tuple[Healthy, ...]
    damaged: tuple[Careful, ...]

    @property
    def first(self) -> int:
        """Faults that the first finding names."""
        return sum(one.is_first for one in self.judged)

    @property
    def among_three(self) -> int:
        """Faults that one of the first three does."""
        return sum(one.is_among(3) for one in self.judged)

    @property
    def alarms(self) -> tuple[Healthy, ...]:
        """Healthy programs with a finding."""
        return tuple(one for one in self.healthy if one.codes)

    @property
    def careful(self) -> int:
        """Damaged captures that it was careful with."""
        return sum(one.is_careful for one in self.damaged)

    def errors(self, device: str | None = None) -> list[float]:
        """Of the likely figure, where there is one."""
        mine = [one for one in self.judged if device in (None, one.device)]
        return [one.error for one in mine if one.error is not None]

    @property
    def covered(self) -> tuple[int, int]:
        """Figures whose range holds what came back, and figures in all."""
        known = [one.is_covered for one in self.judged if one.is_covered is not None]
        return sum(known), len(known)

    def confusion(self) -> dict[str, Counter[str]]:
        """For each kind of fault how often each rule came first; ``-`` for nothing."""
        table: dict[str, Counter[str]] = {}
        for one in self.judged:
            first = one.ranked[0] if one.ranked else "-"
            table.setdefault(one.kind, Counter())[first] += 1
        return table

    def rules(self) -> tuple[RuleScore, ...]:
        """Each rule that spoke or should have, by code."""
        firsts = [one.ranked[:1] for one in self.judged] + [one.codes[:1] for one in self.healthy]
        codes = {code for first in firsts for code in first}
        codes |= {one.codes[0] for one in self.judged if one.codes}
        return tuple(self._rule(code, firsts) for code in sorted(codes))

    def _rule(self, code: str, firsts: Sequence[tuple[str, ...]]) -> RuleScore:
        mine = [one for one in self.judged if one.codes[:1] == (code,)]
        rightly = [one for one in self.judged if one.ranked[:1] == (code,) and code in one.codes]
        named = [one for one in mine if one.is_among(3)]
        return RuleScore(code, firsts.count((code,)), len(rightly), len(mine), len(named))


def score(
    judged: Sequence[Judged], healthy: Sequence[Healthy], damaged: Sequence[Careful]
) -> Score:
    """Sort faults by whether they matter."""
    return Score(
        tuple(one for one in judged if one.matters),
        tuple(one for one in judged if not one.matters),
        tuple(healthy),
        tuple(damaged),
    )


def median_error(errors: Sequence[float]) -> float | None:
    """Absent without any."""
    return median(errors) if errors else None
