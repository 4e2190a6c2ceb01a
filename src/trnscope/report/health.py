"""How far a profile can be trusted, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.health import HealthFinding, HealthReport
from trnscope.report.text import plural, printable
from trnscope.report.view import View, note, title

MANY = 3
"""How many findings the one line in other reports names."""


def health_lines(result: HealthReport, view: View) -> Iterator[Text]:
    """What was read, then each trouble with what it costs the reader."""
    yield from title(view, "Health")
    yield Text(_counts(result))
    if not result.warnings:
        yield note("Nothing to report: what the files hold was read whole and is consistent.")
    for finding in result.warnings[: view.shown(len(result.warnings))]:
        yield from _finding(finding)
    left = len(result.warnings) - view.shown(len(result.warnings))
    if left > 0:
        yield note(f"... and {plural(left, 'more finding')} (--limit 0 shows all)")


def health_line(result: HealthReport) -> Text:
    """One line for other reports: whole or not, and the codes of what was found."""
    line = Text(f"Health: {_counts(result)}")
    if result.warnings:
        codes = list(dict.fromkeys(finding.code for finding in result.warnings))
        more = f" and {len(codes) - MANY} more" if len(codes) > MANY else ""
        line.append(f"; {', '.join(codes[:MANY])}{more} (see: trnscope health)")
    if not result.complete:
        line.stylize("yellow")
    return line


def _counts(result: HealthReport) -> str:
    text = f"{plural(result.num_events_read, 'event')} read"
    if result.num_events_repaired:
        text += f", {result.num_events_repaired:,} repaired"
    if result.num_events_unreadable:
        text += f", {result.num_events_unreadable:,} unreadable"
    return text + (", complete" if result.complete else ", INCOMPLETE")


def _finding(finding: HealthFinding) -> Iterator[Text]:
    line = Text(printable(finding.code), style="bold yellow")
    line.append(f" ({finding.count:,})" if finding.count > 1 else "", style="default")
    yield line
    yield Text(f"  {printable(finding.message)}")
    if finding.consequence is not None:
        yield note(f"  → {finding.consequence}")
