"""Shows a result the way the user asked for: the same object as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from rich.text import Text

from trnscope.analysis.breakdown import Breakdown
from trnscope.cli.output import print_json, print_lines, print_warning, terminal_width
from trnscope.report.marks import incomplete_reason, view_of
from trnscope.report.sentence import sentence_line
from trnscope.report.view import View
from trnscope.store.profile import Profile


class Result(Protocol):
    """What every analysis returns."""

    def to_json(self) -> Any:
        """The document of ``--json``."""


ResultT = TypeVar("ResultT", bound=Result)
Render = Callable[[ResultT, View], Iterable[Text]]


def show(
    profile: Profile,
    result: ResultT,
    render: Render[ResultT],
    *,
    as_json: bool,
    limit: int = 0,
) -> None:
    """Print ``result``; ``limit`` 0 shows all rows.

    The text marks what came from an incomplete file on every table; with ``--json`` one line
    on stderr says it, because most documents have no place for it.
    """
    if not as_json:
        view = view_of(profile, width=terminal_width(), limit=limit or None)
        print_lines(render(result, view))
        return
    reason = incomplete_reason(profile)
    if reason is not None:
        print_warning(f"incomplete: {reason}")
    print_json(result.to_json())


def show_sentence(profile: Profile, split: Breakdown) -> None:
    """End a text report with one sentence on where the time goes."""
    print_lines([Text(), sentence_line(split, view_of(profile))])
