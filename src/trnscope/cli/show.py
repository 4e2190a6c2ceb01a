"""Shows a result the way the user asked for: the same object as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trnscope.cli.output import print_json, print_lines, print_warning, terminal_width, text_width
from trnscope.store.profile import Profile

if TYPE_CHECKING:
    # Loaded only to show text.
    from rich.text import Text

    from trnscope.analysis.breakdown import Breakdown
    from trnscope.report.view import View


class Result(Protocol):
    """What every analysis returns."""

    def to_json(self) -> Any:
        """The document of ``--json``."""


ResultT = TypeVar("ResultT", bound=Result)


def show(
    profile: Profile,
    result: ResultT,
    render: Callable[[ResultT, View], Iterable[Text]],
    *,
    as_json: bool,
    limit: int = 0,
    whole_names: bool = False,
) -> None:
    """Print ``result``; ``limit`` 0 shows all rows, ``whole_names`` cuts none in a file or pipe.

    The text marks what came from an incomplete file on every table.
    """
    if as_json:
        show_json(profile, result)
        return
    from trnscope.report.marks import view_of

    width = terminal_width() if whole_names else text_width()
    print_lines(render(result, view_of(profile, width=width, limit=limit or None)))


def show_json(profile: Profile, result: Result) -> None:
    """Print ``result`` as a document.

    That figures came from an incomplete file, or from a model of the hardware, is said in one
    line on stderr, because most documents have no place for it.
    """
    if (model := profile.simulated_by) is not None:
        print_warning(f"simulated: the times come from {model}, not from a measurement")
    if not all(trace.health.complete for trace in profile.traces):
        from trnscope.report.marks import incomplete_reason

        print_warning(f"incomplete: {incomplete_reason(profile)}")
    print_json(result.to_json())


def show_sentence(profile: Profile, split: Breakdown) -> None:
    """End a text report with one sentence on where the time goes."""
    from rich.text import Text

    from trnscope.report.marks import view_of
    from trnscope.report.sentence import sentence_line

    print_lines([Text(), sentence_line(split, view_of(profile))])
