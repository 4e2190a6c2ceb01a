"""Arguments and options that several commands share, so that they read the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.debug import set_debug

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH",
        help="Traces: .json, .json.gz, the folder of a recorded run, a profile exported by Nsight "
        "Systems as SQLite, or files and folders of a Neuron profile. Several files of one job "
        "are its ranks. A pattern in quotes is expanded.",
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
        callback=set_debug,
        is_eager=True,
        expose_value=False,
    ),
]
