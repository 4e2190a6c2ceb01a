"""The manual of the rules: as text for a terminal, and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from trnscope.advisor.rule import Rule, RulePage
from trnscope.report.view import View, note, title

FAMILIES = {
    "IN": "Input pipeline",
    "HO": "Host",
    "OP": "Operators",
    "CM": "Communication",
    "ME": "Memory",
    "DE": "Device",
    "NE": "Neuron",
    "CO": "Compiler",
    "CA": "Recording",
}
"""What the letters of a code stand for, in the order of the manual."""
_NAME_WIDTH = 25


def rules_lines(rules: Sequence[Rule], view: View) -> Iterator[Text]:
    """One line a rule."""
    yield from title(view, "Rules")
    for letters, family in FAMILIES.items():
        yield Text(family, style="bold")
        for rule in (one for one in rules if one.code.startswith(letters)):
            line = Text(f"  {rule.code} {rule.name:<{_NAME_WIDTH}} ", style="cyan")
            line.append(_one_line(rule.page.summary), style="default")
            yield line
    yield note("trnscope rule CODE shows the page of one.")


def rule_lines(page: RulePage) -> Iterator[Text]:
    """The page of one rule."""
    yield Text(f"{page.code} {page.name}", style="bold cyan")
    yield Text(page.summary, style="bold")
    for heading, text in page.sections:
        yield Text()
        yield Text(heading, style="bold")
        for line in text.splitlines():
            yield Text(f"  {line}" if line else "")


def rules_json(rules: Sequence[Rule]) -> dict[str, object]:
    """The same as a document."""
    return {
        "schema": 1,
        "rules": [
            {
                "code": rule.code,
                "rule": rule.name,
                "summary": _one_line(rule.page.summary),
                "needs": [need.name.lower() for need in rule.needs],
                "sections": [
                    {"heading": heading, "text": text} for heading, text in rule.page.sections
                ],
            }
            for rule in rules
        ],
    }


def rules_markdown(rules: Sequence[Rule]) -> str:
    """The page of the documentation, from the rules' own docstrings."""
    lines = [
        "# Rules",
        "",
        "Generated from the rules themselves by `make docs`; `trnscope rule CODE` shows one page.",
        "What the milliseconds mean: [recoverable time](../metrics/recoverable-time.md).",
    ]
    for letters, family in FAMILIES.items():
        members = [rule for rule in rules if rule.code.startswith(letters)]
        lines += ["", f"## {family}", ""]
        lines += [f"- [{rule.code} {rule.name}](#{_anchor(rule)}): {_one_line(rule.page.summary)}"
                  for rule in members]  # fmt: skip
        for rule in members:
            lines += ["", f"### {rule.code} {rule.name}", "", rule.page.summary]
            for heading, text in rule.page.sections:
                lines += ["", f"**{heading}.** {text}"]
    return "\n".join(lines) + "\n"


def _anchor(rule: Rule) -> str:
    return f"{rule.code.lower()}-{rule.name}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
