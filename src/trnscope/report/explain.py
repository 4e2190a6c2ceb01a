"""Why a step takes as long as it does, for somebody who never profiled: the answer, then why."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.advisor.finding import Confidence, Explanation, Finding, SourceLine, Withheld
from trnscope.advisor.words import about_ns, percent
from trnscope.report.sentence import where_time_goes
from trnscope.report.text import plural, printable
from trnscope.report.view import View, note, title

_LABEL = 13
_SURE = {
    Confidence.HIGH: "high: the trace itself shows the cause and its time",
    Confidence.MEDIUM: "medium: the cause is sure, what its remedy leaves over is an assumption",
    Confidence.LOW: "low: inferred from a pattern; check before you act on it",
}
_IDS_SHOWN = 5
EVIDENCE_NOTE = (
    'Slices are numbered as in trnscope sql PATH "SELECT * FROM slices WHERE id = N"; '
    "trnscope open PATH draws them."
)
RECORDABLE = ("shapes", "stack", "host's times are simulated")
"""Words of the reasons that another way to record would lift."""


def explain_lines(result: Explanation, view: View) -> Iterator[Text]:
    """Five lines of answer, then the evidence, what is hidden, and what could not be asked."""
    yield from _answer(result, view)
    timed = [finding for finding in result.findings if finding.recoverable is not None]
    for number, finding in enumerate(timed[: view.shown(len(timed))], start=1):
        yield Text()
        yield from _evidence(number, finding, result)
    yield from _rest(result, timed, view)
    if any(finding.evidence for finding in timed):
        yield note(EVIDENCE_NOTE)
    yield from _list(
        "Hidden: takes time but costs none, because something else is the limit meanwhile",
        result.hidden,
    )
    faults = [finding for finding in result.findings if finding.recoverable is None]
    yield from _list("About the recording", tuple(faults))
    yield from _not_asked(result.withheld)


def _answer(result: Explanation, view: View) -> Iterator[Text]:
    if result.split is not None:
        where = where_time_goes(
            result.split,
            incomplete=False,
            simulated=view.simulated is not None,
            virtual=view.is_virtual,
        )
        yield _line("Time", where)
    yield from cause_lines(result)
    if view.simulated is not None:
        which = "all" if view.is_virtual else "device"
        yield note(f"Simulated: {which} times come from {view.simulated}, not from a measurement.")


def cause_lines(result: Explanation) -> Iterator[Text]:
    """The top cause, what would come back, what to try first and how sure it is; or the verdict."""
    first = next((one for one in result.findings if one.recoverable is not None), None)
    if result.verdict.abstained or first is None:
        yield from _no_cause(result)
        return
    yield _line("Top cause", f"{first.title} [{first.code}]", "bold")
    yield _line("Would save", _saved(first, result), "bold")
    place = f" ({_places(first.source[:1])})" if first.source else ""
    yield _line("Try first", first.tries[0] + place, "bold")
    yield _line("Confidence", _SURE[first.confidence])


def _no_cause(result: Explanation) -> Iterator[Text]:
    healthy = result.verdict.text.startswith("Healthy")
    yield _line("Verdict", result.verdict.text, "bold green" if healthy else "bold yellow")
    if result.verdict.reason is not None:
        yield _line("Why not", result.verdict.reason, "yellow")
        for finding in result.findings[:1]:
            yield _line("Try", finding.tries[0])


def _line(label: str, text: str, style: str = "") -> Text:
    line = Text(f"{label + ':':<{_LABEL}}", style="bold cyan")
    line.append(printable(text), style=style or "default")
    return line


def _saved(finding: Finding, result: Explanation) -> str:
    times = finding.recoverable
    if times is None:
        return "nothing"
    text = f"about {about_ns(times.likely_ns)} of {_whole_of(finding, result)}"
    if finding.share_of_step is not None:
        text += f", {percent(finding.share_of_step)} of it"
    if times.low_ns < times.high_ns:
        text += f"; at least {about_ns(times.low_ns)}, at most {about_ns(times.high_ns)}"
    return text


def _evidence(number: int, finding: Finding, result: Explanation) -> Iterator[Text]:
    head = Text(f"{number}. {printable(finding.title)}", style="bold")
    head.append(f"  [{finding.code} {finding.rule}]", style="cyan")
    yield head
    yield _detail("would save", _saved(finding, result))
    yield _detail("confidence", finding.confidence.value)
    yield _detail("computed", finding.how)
    if finding.taken_ns is not None:
        ids = ", ".join(map(str, finding.evidence[:_IDS_SHOWN]))
        more = " ..." if len(finding.evidence) > _IDS_SHOWN else ""
        each = " per step" if result.num_steps else ""
        took = f"takes {about_ns(finding.taken_ns)}{each}"
        took += ", its backward counted" if finding.with_backward else ""
        yield _detail("evidence", f"{took}; longest slices: {ids}{more}")
    yield _detail("where", _where(finding))
    for at, attempt in enumerate(finding.tries):
        yield _detail("" if at else "try", attempt)
    yield _detail("more", f"trnscope rule {finding.code}")


def _whole(result: Explanation) -> str:
    """What the figures are of."""
    return "each step" if result.num_steps else "the whole trace"


def _whole_of(finding: Finding, result: Explanation) -> str:
    """What the figures of one finding are of: steps that stand out may count too."""
    if finding.over_all_steps and finding.step_ns != result.step_ns:
        return f"each recorded step ({about_ns(finding.step_ns)} on average)"
    return _whole(result)


def _detail(label: str, text: str) -> Text:
    line = Text(f"   {label:<11}", style="dim")
    line.append(printable(text), style="default")
    return line


def _where(finding: Finding) -> str:
    if finding.source is None:
        return "line not recorded; trnscope run --stack records it"
    return _places(finding.source)


def _places(source: tuple[SourceLine, ...]) -> str:
    return ", ".join(f"{place.file}:{place.line}" for place in source)


def _rest(result: Explanation, timed: list[Finding], view: View) -> Iterator[Text]:
    left = len(timed) - view.shown(len(timed))
    if left > 0:
        yield Text()
        yield note(f"... and {plural(left, 'more finding')} (--top 0 shows all)")
    if len(timed) > 1 and result.together_ns is not None:
        yield Text()
        yield note(_together(result, result.together_ns))


def _together(result: Explanation, together_ns: int) -> str:
    saved = about_ns(together_ns)
    if result.shown_on is None:
        longest = max(result.findings, key=lambda finding: finding.step_ns)
        return (
            "Each figure is for that cause alone. All of them together: about "
            f"{saved} of {_whole_of(longest, result)}."
        )
    return (
        "Each figure is for that cause alone, and of the steps of the rank that it names. All "
        f"causes found on {result.shown_on} together: about {saved} of each of its steps."
    )


def _list(heading: str, findings: tuple[Finding, ...]) -> Iterator[Text]:
    if not findings:
        return
    yield Text()
    yield from title(View(), heading)
    for finding in findings:
        yield Text(f"- {printable(finding.title)} [{finding.code}]")
        if finding.recoverable is None:
            yield note(f"  {finding.tries[0]}")


def _not_asked(withheld: tuple[Withheld, ...]) -> Iterator[Text]:
    """What could have been asked of a fuller recording, by what it would take."""
    reasons: dict[str, list[str]] = {}
    for rule in withheld:
        if any(word in rule.reason for word in RECORDABLE):
            reasons.setdefault(rule.reason, []).append(rule.rule)
    if reasons:
        yield Text()
    for reason, rules in reasons.items():
        yield note(f"Not asked ({', '.join(rules)}): {reason}.")
