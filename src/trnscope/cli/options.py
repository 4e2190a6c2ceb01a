"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

DEBUG_VARIABLE = "TRNSCOPE_DEBUG"


def _set_debug(value: bool) -> None:
    # In the environment, so that a process started to record a script shows its errors too.
    if value:
        os.environ[DEBUG_VARIABLE] = "1"


def debug_wanted() -> bool:
    """Whether errors are to be shown with their traceback."""
    return bool(os.environ.get(DEBUG_VARIABLE))


Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Trace files: .json, .json.gz or a profile exported by Nsight Systems as SQLite. "
        "Several files of one job are its ranks. A pattern in quotes is expanded.",
        show_default=False,
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

Limit = Annotated[
    int,
    typer.Option("--limit", "-n", min=0, metavar="ROWS", help="Rows to show; 0 shows all."),
]

Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of an error.",
        callback=_set_debug,
        is_eager=True,
        expose_value=False,
    ),
]
