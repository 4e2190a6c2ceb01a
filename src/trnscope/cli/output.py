"""Where a command's output goes: text for people, JSON for programs, remarks to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from trnscope.report.document import to_json_text

if TYPE_CHECKING:
    # Loaded only to print text: it takes longer than printing a document.
    from rich.console import Console
    from rich.text import Text


def console(*, stderr: bool = False) -> Console:
    """A console that never interprets markup in what it prints; colours on a terminal only."""
    from trnscope.cli.console import PipedConsole

    return PipedConsole(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


PIPED_WIDTH = 120
"""Cells in a line that no terminal bounds: names of hundreds of characters push no number away."""


def text_width() -> int:
    """Cells for a line of a table: those of the terminal, or a fixed number in a file or pipe."""
    return terminal_width() or PIPED_WIDTH


def terminal_width() -> int | None:
    """Cells in a line of the terminal; absent when the output is a file or a pipe."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return console().width
    return None


def print_lines(lines: Iterable[Text]) -> None:
    """Print rendered lines; on a terminal, those too long for it are broken between words."""
    from trnscope.report.text import fold

    out, width = console(), terminal_width()
    for line in lines:
        for part in [line] if width is None else fold(line, width):
            out.print(part, soft_wrap=True)


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON document."""
    sys.stdout.write(to_json_text(document) + "\n")


def print_compact_json(document: Mapping[str, object]) -> None:
    """Print one JSON document on one line, for output that shares stdout with a script."""
    sys.stdout.write(to_json_text(document, indent=None) + "\n")


def print_error(message: str) -> None:
    """One line on stderr, as every failure is told."""
    _remark("error", message, "bold red")


def print_warning(message: str) -> None:
    """One line on stderr that does not stop the command."""
    _remark("warning", message, "yellow")


def _remark(word: str, message: str, style: str) -> None:
    from rich.text import Text

    from trnscope.report.text import printable

    line = Text("trnscope: ")
    line.append(f"{word}:", style=style)
    line.append(f" {printable(message)}")
    console(stderr=True).print(line, soft_wrap=True)
