"""Why does a step take as long as it does: health, then the rules, then the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.diagnosis import LEAST_SHARE, Diagnosis, finding_of
from trnscope.advisor.finding import Explanation, Finding, Verdict, Withheld
from trnscope.advisor.recording import Recording
from trnscope.advisor.registry import RULES
from trnscope.advisor.rule import NOT_EVERY_PROGRAM
from trnscope.advisor.rules.incomplete_capture import IncompleteCaptureRule, missing_part
from trnscope.advisor.window import one_step, typical_steps
from trnscope.advisor.words import about_ns, percent
from trnscope.analysis.breakdown import Breakdown, breakdown
from trnscope.errors import UsageError
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

UNEXPLAINED_IDLE = 0.3
"""Of a step; a device that idles longer, without a cause, is not called healthy. Ours."""


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
            finding_of(at, context, rule, claim, None)
            for at, context in contexts
            for claim in rule.check(context)
        )
        return _abstained(missing[0].reason, faults)
    if not contexts:
        return _abstained("the trace holds no work of a host or a device", ())
    parts = [Diagnosis(at, context).run() for at, context in contexts]
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
        first, saved = timed[0], about_ns(timed[0].likely_ns)
        if first.over_all_steps and first.step_ns != context.step_ns:
            step = f"a recorded step, {about_ns(first.step_ns)} on average,"
        return f"{first.title}: without that, {step} would be about {saved} shorter."
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


def _split(profile: Profile, shown: Diagnosis) -> Breakdown:
    """Where the steps that were judged went: on its devices, or on its main thread."""
    window = shown.context.window
    whole = breakdown(Profile((profile.traces[shown.at],)))
    rows = [row for row in whole.rows if window.start_ns <= row.start_ns < window.end_ns]
    return Breakdown(whole.basis, tuple(rows))


def _abstained(reason: str, faults: tuple[Finding, ...]) -> Explanation:
    verdict = Verdict("No verdict: the recording does not carry one.", True, reason)
    return Explanation(verdict, None, 0, None, faults, None, None, (), ())
