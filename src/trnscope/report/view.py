"""What every table needs to know besides its result: the room, and what to say about the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.text import Text

from trnscope.report.text import plural, printable

INCOMPLETE = "INCOMPLETE"


@dataclass(frozen=True)
class View:
    """How to show a result."""

    width: int | None = None
    """Terminal cells; absent: do not shorten names."""
    limit: int | None = None
    """Rows to show at most; absent: all."""
    incomplete: str | None = None
    """Why figures may be too low, when part of the trace is missing."""
    simulated: str | None = None
    """The hardware model behind simulated times, when there are any."""
    is_virtual: bool = False
    """Whether the host's times are simulated too."""

    def shown(self, num_rows: int) -> int:
        """How many of ``num_rows`` fit the limit."""
        return num_rows if self.limit is None else min(num_rows, self.limit)


def title(view: View, text: str) -> Iterator[Text]:
    """A table's title, with the marks that belong to every figure under it."""
    line = Text(printable(text), style="bold cyan")
    if view.simulated is not None:
        line.append(f"  simulated ({printable(view.simulated)})", style="bold magenta")
    yield line
    if view.incomplete is not None:
        yield Text(f"{INCOMPLETE}: {printable(view.incomplete)}", style="bold yellow")


def cut_note(view: View, num_rows: int, noun: str, nouns: str | None = None) -> Iterator[Text]:
    """Say how many rows were left out, if any."""
    left = num_rows - view.shown(num_rows)
    if left > 0:
        more = plural(left, f"more {noun}", f"more {nouns or noun + 's'}")
        yield note(f"... and {more} (--limit 0 shows all)")


def note(text: str) -> Text:
    """A remark under a table."""
    return Text(printable(text), style="dim")


def warning(text: str) -> Text:
    """A remark that changes how the figures are to be read."""
    return Text(printable(text), style="yellow")
