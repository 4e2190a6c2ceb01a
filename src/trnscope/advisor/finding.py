"""What the doctor says: findings with the time they would give back, and the verdict over them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trnscope.analysis.breakdown import Breakdown


class Confidence(Enum):
    """How sure a finding is, by what its evidence is made of."""

    HIGH = "high"
    """The cause is named in the trace itself, and its time was recorded."""
    MEDIUM = "medium"
    """The cause is named; what its remedy leaves over is an assumption that the rule states."""
    LOW = "low"
    """The cause is inferred from a pattern of names or times."""


@dataclass(frozen=True)
class Recoverable:
    """Time per step that would come back without the cause, ns; see docs/concepts.md."""

    low_ns: int
    likely_ns: int
    high_ns: int


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's code."""

    file: str
    line: int


@dataclass(frozen=True)
class Finding:
    """One cause, what it costs, where it is and what to try."""

    code: str
    rule: str
    title: str
    recoverable: Recoverable | None
    """Absent for a fault of the recording, which costs no step any time."""
    share_of_step: float | None
    """``likely_ns`` over the mean step."""
    confidence: Confidence
    evidence: tuple[int, ...]
    """Slice ids in the trace that the finding is about, the longest first."""
    source: tuple[SourceLine, ...] | None
    """Most of the time first; absent where no stacks were recorded for the evidence."""
    tries: tuple[str, ...]
    """Edits to try, the best first."""
    doc: str
    """The rule's page."""
    how: str
    """How the time was computed, in one sentence."""
    taken_ns: int | None
    """What the evidence takes per step, added up; hidden work takes much and costs nothing."""
    trace: int
    """Index in the profile of the trace that the evidence is in."""
    step_ns: int
    """The mean step that ``recoverable`` is of."""
    over_all_steps: bool = False
    """Whether that is the mean of all recorded steps, those that stand out counted too."""
    with_backward: bool = False
    """Whether ``taken_ns`` counts the backward of the evidence, as the saving does."""

    @property
    def likely_ns(self) -> int:
        """What ranks findings: 0 for a fault of the recording."""
        return 0 if self.recoverable is None else self.recoverable.likely_ns

    def to_json(self) -> dict[str, object]:
        """The contract's member of ``findings``."""
        times = self.recoverable
        return {
            "code": self.code,
            "rule": self.rule,
            "title": self.title,
            "recoverable_ns_per_step": None
            if times is None
            else [times.low_ns, times.likely_ns, times.high_ns],
            "share_of_step": self.share_of_step,
            "confidence": self.confidence.value,
            "evidence": list(self.evidence),
            "source": None
            if self.source is None
            else [{"file": place.file, "line": place.line} for place in self.source],
            "try": list(self.tries),
            "doc": self.doc,
        }


@dataclass(frozen=True)
class Withheld:
    """A rule that could not be asked, and why."""

    code: str
    rule: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {"code": self.code, "rule": self.rule, "reason": self.reason}


@dataclass(frozen=True)
class Verdict:
    """The answer in one sentence."""

    text: str
    abstained: bool
    """Whether the recording does not carry a verdict."""
    reason: str | None
    """Why not."""


@dataclass(frozen=True)
class Explanation:
    """Why a step takes as long as it does: the answer of ``trnscope explain``."""

    verdict: Verdict
    step_ns: int | None
    """Mean step; absent where there is none, or no verdict."""
    num_steps: int
    """Steps that the figures are means of; 0 where the whole trace stands for one."""
    split: Breakdown | None
    """Where these steps went."""
    findings: tuple[Finding, ...]
    """By ``likely_ns``, falling; faults of the recording last. No time is in two of them."""
    together_ns: int | None
    """What removing all causes of the first finding's trace at once would give back per step: no
    less than any of its findings. Absent where no cause was found."""
    shown_on: str | None
    """Whose steps ``step_ns``, ``split`` and ``together_ns`` are of, where there are several
    traces: ``rank 5``."""
    hidden: tuple[Finding, ...]
    """Work that takes much time and costs none: other work runs meanwhile."""
    withheld: tuple[Withheld, ...]

    def to_json(self) -> dict[str, object]:
        """The document that design.md fixes for ``explain``, plus ``hidden`` and ``withheld``."""
        return {
            "schema": 1,
            "verdict": self.verdict.text,
            "abstained": self.verdict.abstained,
            "reason": self.verdict.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "hidden": [finding.to_json() for finding in self.hidden],
            "withheld": [rule.to_json() for rule in self.withheld],
        }
