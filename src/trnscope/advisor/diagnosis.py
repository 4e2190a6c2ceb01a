"""One trace, asked by one rule after another: what each finds, and what others already claim."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trnscope.advisor.claimed_time import ClaimedTime
from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence, Finding, Recoverable, Withheld
from trnscope.advisor.needs import missing_need
from trnscope.advisor.registry import by_specificity
from trnscope.advisor.removal import Removal
from trnscope.advisor.replay import Replay
from trnscope.advisor.rule import Claim, Rule
from trnscope.advisor.source import source_lines
from trnscope.advisor.words import about_ns
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind

LEAST_SHARE = 0.05
"""Of a step; less is not worth an edit, and hardly more than what steps vary by themselves
(TraceML calls 3 % between runs moderate and 8 % material)."""
LEAST_SHARE_OF_A_GUESS = 0.1
"""The same for a finding of low confidence. Ours."""
SAME_TIME = 0.5
"""A claim that loses this share of its time to more specific ones is about the same time."""
HIDDEN_LEAST_SHARE = 0.1
"""Of a step, that evidence must take to be worth saying that it costs nothing."""
HIDDEN_MOST_BACK = 0.1
"""Of the time that it takes; work that would give back more is not hidden."""
EVIDENCE_KEPT = 50
"""Slice ids of a finding: enough to look at, and a bounded document."""
NOTHING = Recoverable(0, 0, 0)


@dataclass(eq=False, repr=False)
class Diagnosis:
    """One trace, asked by one rule after another."""

    at: int
    context: StepContext
    findings: list[Finding] = field(default_factory=list)
    hidden: list[Finding] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)
    _claimed: Removal = field(default_factory=Removal)
    """By all findings."""
    _direct: Removal = field(default_factory=Removal)
    """By those whose figures do not come from the replay."""
    _replayed: Removal = field(default_factory=Removal)
    """By the others, without what is in ``_direct``."""
    _time: ClaimedTime = field(default_factory=ClaimedTime)
    _more_time: list[tuple[Intervals, float]] = field(default_factory=list)
    """Not yet in ``_time``: few traces have a claim that asks for it."""
    _direct_ns: int = 0

    def run(self) -> Diagnosis:
        """Ask all rules, the most specific first."""
        for rule in by_specificity():
            reason = missing_need(rule, self.context)
            if reason is not None:
                self.withheld.append(Withheld(rule.code, rule.name, reason))
                continue
            for claim in rule.check(self.context):
                self._judge(rule, claim)
        return self

    def together_ns(self) -> int | None:
        """What removing all that was found would give back; absent where nothing was."""
        if not any(finding.recoverable for finding in self.findings):
            return None
        replay = self.context.replay
        replayed_ns = 0 if replay is None else replay.saved_ns(self._replayed)
        step_ns = max(finding.step_ns for finding in self.findings)
        largest_ns = max(finding.likely_ns for finding in self.findings)
        return max(min(replayed_ns + self._direct_ns, step_ns), largest_ns)

    def _judge(self, rule: Rule, claim: Claim) -> None:
        if claim.is_fault:
            self.findings.append(finding_of(self.at, self.context, rule, claim, None))
            return
        saved = self._saved(claim)
        if saved is None:
            return
        is_guess = claim.confidence is Confidence.LOW
        least = LEAST_SHARE_OF_A_GUESS if is_guess else LEAST_SHARE
        if saved.likely_ns >= max(least * _step_ns(self.context, claim), 1):
            self._accept(rule, claim, saved)
        elif self._is_hidden(claim):
            taken = about_ns(_taken_ns(self.context, claim))
            title = f"{rule.subject}: {taken} per step, yet no step would be shorter without it"
            told = replace(claim, title=title[0].upper() + title[1:])
            nothing = Recoverable(0, saved.likely_ns, saved.likely_ns)
            self.hidden.append(finding_of(self.at, self.context, rule, told, nothing))

    def _saved(self, claim: Claim) -> Recoverable | None:
        """What a claim would give back besides what is found; absent where nothing can tell."""
        replay = self.context.replay
        if claim.direct_ns is not None:
            saved = self._direct_saved(claim, Recoverable(*claim.direct_ns))
        elif claim.likely is None or replay is None:
            return None
        else:
            saved = self._range(replay, claim, self._likely_ns(replay, claim.likely))
        most = self._left_ns
        return Recoverable(min(saved.low_ns, most), min(saved.likely_ns, most), saved.high_ns)

    @property
    def _left_ns(self) -> int:
        """Of the longer mean step, what the findings leave."""
        longest = max(self.context.step_ns, _all_steps_ns(self.context))
        return longest - sum(finding.likely_ns for finding in self.findings)

    def _direct_saved(self, claim: Claim, whole: Recoverable) -> Recoverable:
        """Times that a rule gives, by what others leave of the time that they are of."""
        free = self._free_share(claim, whole)
        if free < 1 - SAME_TIME:
            return NOTHING
        return Recoverable(
            round(free * whole.low_ns), round(free * whole.likely_ns), round(free * whole.high_ns)
        )

    def _free_share(self, claim: Claim, whole: Recoverable) -> float:
        replay = self.context.replay
        if claim.direct_time is None and claim.direct_of_judged:
            # The rule's own sum over the replay, which tells what others leave.
            if claim.likely is None or replay is None or whole.likely_ns == 0:
                return 1.0
            rest = replay.saved_ns(claim.likely.without(self._claimed))
            return min(1.0, rest / whole.likely_ns)
        for time, share in self._more_time:
            self._time = self._time.plus(time, share)
        self._more_time.clear()
        return self._time.free_share(_direct_time(claim))

    def _likely_ns(self, replay: Replay, likely: Removal) -> int:
        """What the replay gives back; 0 where others already claim most of that time."""
        alone = replay.saved_ns(likely)
        if alone < LEAST_SHARE * self.context.step_ns or not self.findings:
            return alone
        rest = replay.saved_ns(likely.without(self._claimed))
        return rest if rest >= (1 - SAME_TIME) * alone else 0

    def _range(self, replay: Replay, claim: Claim, likely_ns: int) -> Recoverable:
        """With the least and the most that the rule holds possible."""
        if likely_ns < LEAST_SHARE * self.context.step_ns:
            return Recoverable(0, likely_ns, likely_ns)
        low, high = (
            likely_ns if other is None else replay.saved_ns(other.without(self._claimed))
            for other in (claim.low, claim.high)
        )
        return Recoverable(min(low, likely_ns), likely_ns, max(high, likely_ns))

    def _is_hidden(self, claim: Claim) -> bool:
        taken = _taken_ns(self.context, claim)
        if taken < HIDDEN_LEAST_SHARE * self.context.step_ns:
            return False
        return self._most_ns(claim) < HIDDEN_MOST_BACK * taken

    def _most_ns(self, claim: Claim) -> int:
        """What a claim would give back at the most, if nothing else were found."""
        if claim.direct_ns is not None:
            return claim.direct_ns[2]
        most = claim.likely if claim.high is None else claim.high
        replay = self.context.replay
        return 0 if most is None or replay is None else replay.saved_ns(most)

    def _accept(self, rule: Rule, claim: Claim, saved: Recoverable) -> None:
        self.findings.append(finding_of(self.at, self.context, rule, claim, saved))
        gone = Removal() if claim.likely is None else claim.likely
        if claim.direct_ns is None:
            self._replayed = self._replayed.plus(gone.without(self._direct))
        else:
            self._direct = self._direct.plus(gone)
            self._direct_ns += saved.likely_ns
        self._claimed = self._claimed.plus(gone)
        self._claim_time(claim, gone)

    def _claim_time(self, claim: Claim, gone: Removal) -> None:
        if claim.direct_ns is None or (claim.direct_of_judged and claim.direct_time is None):
            for cut in gone.host:
                if cut.track == self.context.main:
                    self._more_time.append((cut.time, cut.share))
            return
        time = _direct_time(claim)
        num_steps = _num_steps(self.context, claim)
        share = min(1.0, claim.direct_ns[2] * num_steps / max(time.total, 1))
        self._more_time.append((time, share))


def finding_of(
    at: int, context: StepContext, rule: Rule, claim: Claim, saved: Recoverable | None
) -> Finding:
    """A claim as it is told."""
    evidence = context.longest(claim.evidence, EVIDENCE_KEPT)
    step_ns = _step_ns(context, claim)
    is_sure = context.window.has_steps or claim.is_fault
    return Finding(
        code=rule.code,
        rule=rule.name,
        title=_title(context, claim),
        recoverable=saved,
        share_of_step=None if saved is None else min(1.0, saved.likely_ns / step_ns),
        confidence=claim.confidence if is_sure else _less(claim.confidence),
        evidence=tuple(evidence),
        source=source_lines(context.trace, evidence),
        tries=claim.tries,
        doc=rule.doc,
        how=claim.how,
        taken_ns=_taken_ns(context, claim) if claim.evidence.size else None,
        trace=at,
        step_ns=step_ns,
        over_all_steps=_is_over_all_steps(claim),
        with_backward=claim.with_backward,
    )


def _direct_time(claim: Claim) -> Intervals:
    """The time that a claim's own figures are a part of."""
    if claim.direct_time is not None:
        return claim.direct_time
    time = Intervals.empty()
    for cut in () if claim.likely is None else claim.likely.host:
        time = time.union(cut.time)
    return time


def _title(context: StepContext, claim: Claim) -> str:
    """A claim's title; where the whole trace stands as one, its numbers are of the whole."""
    return claim.title if context.window.has_steps else claim.title.replace(" per step", "")


def _is_over_all_steps(claim: Claim) -> bool:
    return claim.direct_ns is not None and not claim.direct_of_judged


def _step_ns(context: StepContext, claim: Claim) -> int:
    """The mean step that a claim's figures are of."""
    own = _all_steps_ns(context) if _is_over_all_steps(claim) else context.step_ns
    return max(own, 1)


def _all_steps_ns(context: StepContext) -> int:
    steps = context.all_steps
    return sum(step.duration_ns for step in steps) // len(steps)


def _num_steps(context: StepContext, claim: Claim) -> int:
    over_all = _is_over_all_steps(claim)
    return len(context.all_steps) if over_all else context.window.num_steps


def _taken_ns(context: StepContext, claim: Claim) -> int:
    """What the evidence takes per step, with its backward where that would be saved too.

    Of ops, what they launched counts where the device takes longer for it than the host.
    """
    ids = context.with_backward(claim.evidence) if claim.with_backward else claim.evidence
    ops = ids[context.trace.slices.kind[ids] == SliceKind.CPU_OP]
    return max(context.duration_ns(ids), context.duration_ns(context.launched_in(ops)))


def _less(confidence: Confidence) -> Confidence:
    return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW
