"""Why does a step take as long as it does: health, then the rules, then the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import (
    Confidence,
    Explanation,
    Finding,
    Recoverable,
    Verdict,
    Withheld,
)
from trnscope.advisor.needs import missing_need
from trnscope.advisor.recording import Recording
from trnscope.advisor.registry import RULES, by_specificity
from trnscope.advisor.removal import Removal
from trnscope.advisor.replay import Replay
from trnscope.advisor.rule import NOT_EVERY_PROGRAM, Claim, Rule
from trnscope.advisor.rules.incomplete_capture import IncompleteCaptureRule, missing_part
from trnscope.advisor.source import source_lines
from trnscope.advisor.window import one_step, typical_steps
from trnscope.advisor.words import about_ns, percent
from trnscope.analysis.breakdown import Breakdown, breakdown
from trnscope.errors import UsageError
from trnscope.model.kinds import SliceKind
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

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
UNEXPLAINED_IDLE = 0.3
"""Of a step; a device that idles longer, without a cause, is not called healthy. Ours."""
EVIDENCE_KEPT = 50
"""Slice ids of a finding: enough to look at, and a bounded document."""


def explain(
    profile: Profile, *, step: int | None = None, recordings: Sequence[Recording | None] = ()
) -> Explanation:
    """Ask every rule about every trace of a profile.

    ``step`` looks at the step of that number alone. ``recordings`` is what is known of how each
    trace was recorded. Of several ranks, each finding is that of the
    rank on which it weighs most. Raises :class:`UsageError` for a step that no trace holds.
    """
    contexts = _contexts(profile, step, recordings)
    missing = [part for trace in profile.traces if (part := missing_part(trace)) is not None]
    if missing:
        rule = IncompleteCaptureRule()
        faults = tuple(
            _finding(at, context, rule, claim, None)
            for at, context in contexts
            for claim in rule.check(context)
        )
        return _abstained(missing[0].reason, faults)
    if not contexts:
        return _abstained("the trace holds no work of a host or a device", ())
    parts = [_Diagnosis(at, context).run() for at, context in contexts]
    findings = _over_ranks(profile, [part.findings for part in parts])
    told = {finding.code for finding in findings}
    hidden = _over_ranks(profile, [part.hidden for part in parts])
    shown = next((part for part in parts if findings and part.at == findings[0].trace), parts[0])
    asked = shown.context
    return Explanation(
        verdict=Verdict(_verdict(findings, asked, shown.withheld), False, None),
        step_ns=asked.step_ns,
        num_steps=asked.window.num_steps if asked.window.has_steps else 0,
        split=_split(profile, shown),
        findings=findings,
        together_ns=shown.together_ns(),
        shown_on=_name_of(profile.traces[shown.at], shown.at) if len(profile.traces) > 1 else None,
        hidden=tuple(finding for finding in hidden if finding.code not in told),
        withheld=tuple(dict.fromkeys(rule for part in parts for rule in part.withheld)),
    )


def _contexts(
    profile: Profile, step: int | None, recordings: Sequence[Recording | None]
) -> list[tuple[int, StepContext]]:
    found = []
    notes = dict(enumerate(recordings))
    for at, trace in enumerate(profile.traces):
        window = typical_steps(trace) if step is None else one_step(trace, step)
        if window is not None and window.end_ns > window.start_ns:
            found.append((at, StepContext(trace, window, notes.get(at))))
    if step is not None and not found:
        raise UsageError(f"no step {step} in the trace", hint="trnscope steps lists them")
    return found


@dataclass(eq=False, repr=False)
class _Diagnosis:
    """One trace, asked by one rule after another."""

    at: int
    context: StepContext
    claimed: Removal = field(default_factory=Removal)
    findings: list[Finding] = field(default_factory=list)
    hidden: list[Finding] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)

    def run(self) -> _Diagnosis:
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
        replay = self.context.replay
        if replay is None or not any(finding.recoverable for finding in self.findings):
            return None
        return replay.saved_ns(self.claimed)

    def _judge(self, rule: Rule, claim: Claim) -> None:
        if claim.is_fault:
            self.findings.append(_finding(self.at, self.context, rule, claim, None))
            return
        if claim.direct_ns is not None:
            self._accept(rule, claim, Recoverable(*claim.direct_ns))
            return
        replay = self.context.replay
        if claim.likely is None or replay is None:
            return
        likely_ns = self._likely_ns(replay, claim.likely)
        is_guess = claim.confidence is Confidence.LOW
        least = LEAST_SHARE_OF_A_GUESS if is_guess else LEAST_SHARE
        if likely_ns >= least * self.context.step_ns:
            self._accept(rule, claim, self._range(replay, claim, likely_ns))
        elif self._is_hidden(claim, replay):
            taken = about_ns(_taken_ns(self.context, claim))
            title = f"{rule.subject}: {taken} per step, yet no step would be shorter without it"
            told = replace(claim, title=title[0].upper() + title[1:])
            nothing = Recoverable(0, likely_ns, likely_ns)
            self.hidden.append(_finding(self.at, self.context, rule, told, nothing))

    def _likely_ns(self, replay: Replay, likely: Removal) -> int:
        """What the replay gives back; 0 where others already claim most of that time."""
        alone = replay.saved_ns(likely)
        if alone < LEAST_SHARE * self.context.step_ns or not self.findings:
            return alone
        rest = replay.saved_ns(likely.without(self.claimed))
        return rest if rest >= (1 - SAME_TIME) * alone else 0

    def _range(self, replay: Replay, claim: Claim, likely_ns: int) -> Recoverable:
        """With the least and the most that the rule holds possible."""
        low, high = (
            likely_ns if other is None else replay.saved_ns(other.without(self.claimed))
            for other in (claim.low, claim.high)
        )
        return Recoverable(min(low, likely_ns), likely_ns, max(high, likely_ns))

    def _is_hidden(self, claim: Claim, replay: Replay) -> bool:
        taken = _taken_ns(self.context, claim)
        if taken < HIDDEN_LEAST_SHARE * self.context.step_ns or claim.likely is None:
            return False
        most = claim.likely if claim.high is None else claim.high
        return replay.saved_ns(most) < HIDDEN_MOST_BACK * taken

    def _accept(self, rule: Rule, claim: Claim, saved: Recoverable) -> None:
        self.findings.append(_finding(self.at, self.context, rule, claim, saved))
        if claim.likely is not None:
            self.claimed = self.claimed.plus(claim.likely)


def _finding(
    at: int, context: StepContext, rule: Rule, claim: Claim, saved: Recoverable | None
) -> Finding:
    evidence = context.longest(claim.evidence, EVIDENCE_KEPT)
    share = None if saved is None else min(1.0, saved.likely_ns / _whole_step(context, claim))
    is_sure = context.window.has_steps or claim.is_fault
    return Finding(
        code=rule.code,
        rule=rule.name,
        title=_title(context, claim),
        recoverable=saved,
        share_of_step=share,
        confidence=claim.confidence if is_sure else _less(claim.confidence),
        evidence=tuple(evidence),
        source=source_lines(context.trace, evidence),
        tries=claim.tries,
        doc=rule.doc,
        how=claim.how,
        taken_ns=_taken_ns(context, claim) if claim.evidence.size else None,
        trace=at,
        with_backward=claim.with_backward,
    )


def _title(context: StepContext, claim: Claim) -> str:
    """A claim's title; where the whole trace stands as one, its numbers are of the whole."""
    return claim.title if context.window.has_steps else claim.title.replace(" per step", "")


def _whole_step(context: StepContext, claim: Claim) -> int:
    """The mean step that a finding's time is a share of."""
    if claim.direct_ns is None:
        return max(context.step_ns, 1)
    steps = context.all_steps
    return max(sum(step.duration_ns for step in steps) // len(steps), 1)


def _taken_ns(context: StepContext, claim: Claim) -> int:
    """What the evidence takes per step, with its backward where that would be saved too.

    Of ops, what they launched counts where the device takes longer for it than the host.
    """
    ids = context.with_backward(claim.evidence) if claim.with_backward else claim.evidence
    ops = ids[context.trace.slices.kind[ids] == SliceKind.CPU_OP]
    return max(context.duration_ns(ids), context.duration_ns(context.launched_in(ops)))


def _less(confidence: Confidence) -> Confidence:
    return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW


def _over_ranks(profile: Profile, parts: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """One finding a rule, of the trace where it weighs most; by weight, faults last."""
    found: dict[str, list[Finding]] = {}
    for part in parts:
        for finding in part:
            found.setdefault(finding.code, []).append(finding)
    heaviest = [
        _titled(profile, max(group, key=lambda one: one.likely_ns), len(group))
        for group in found.values()
    ]
    return tuple(
        sorted(heaviest, key=lambda one: (one.recoverable is None, -one.likely_ns, one.code))
    )


def _titled(profile: Profile, finding: Finding, number: int) -> Finding:
    """With the rank that it is of, where there are several."""
    if len(profile.traces) == 1:
        return finding
    trace = profile.traces[finding.trace]
    where = f"worst on {_name_of(trace, finding.trace)}, seen on {number} of {len(profile.traces)}"
    return replace(finding, title=f"{finding.title} ({where})")


def _name_of(trace: Trace, at: int) -> str:
    return f"file {at + 1}" if trace.source.rank is None else f"rank {trace.source.rank}"


def _verdict(
    findings: Sequence[Finding], context: StepContext, withheld: Sequence[Withheld]
) -> str:
    whole = "a step" if context.window.has_steps else "the whole trace"
    step = f"{whole} of {about_ns(context.step_ns)}"
    timed = [finding for finding in findings if finding.recoverable is not None]
    if timed:
        saved = about_ns(timed[0].likely_ns)
        return f"{timed[0].title}: without that, {step} would be about {saved} shorter."
    idle = _idle_share(context)
    if idle >= UNEXPLAINED_IDLE:
        return f"No rule explains why the device is idle for {percent(idle)} of {step}."
    asked, lacking = len(RULES) - len(withheld), _num_lacking(withheld)
    if lacking > asked:
        return (
            f"Nothing found in {step}, but only {asked} of {asked + lacking} rules could be asked."
        )
    return f"Healthy: no known cause takes {percent(LEAST_SHARE)} or more of {step}."


def _num_lacking(withheld: Sequence[Withheld]) -> int:
    """Rules that another recording of the same program could have been asked."""
    reasons = {need.value for need in NOT_EVERY_PROGRAM}
    return sum(one.reason not in reasons for one in withheld)


def _idle_share(context: StepContext) -> float:
    """Of the steps, in which the busiest device does nothing; 0 without a device."""
    busy_ns = context.busy_ns
    return 0.0 if busy_ns is None else 1.0 - busy_ns / max(context.step_ns, 1)


def _split(profile: Profile, shown: _Diagnosis) -> Breakdown:
    """Where the steps that were judged went: on its devices, or on its main thread."""
    window = shown.context.window
    whole = breakdown(Profile((profile.traces[shown.at],)))
    rows = [row for row in whole.rows if window.start_ns <= row.start_ns < window.end_ns]
    return Breakdown(whole.basis, tuple(rows))


def _abstained(reason: str, faults: tuple[Finding, ...]) -> Explanation:
    verdict = Verdict("No verdict: the recording does not carry one.", True, reason)
    return Explanation(verdict, None, 0, None, faults, None, None, (), ())
