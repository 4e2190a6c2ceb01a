"""``trnscope demo``: the tool at work on a training run that wastes time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json

REMEDY = "run -m trnscope.demo.train_transformer --pretokenized"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Where to put the trace. [default: trnscope-out]"
        ),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> int:
    """Train a small transformer on the CPU and find what slows it.

    The script is an ordinary one that wastes time in a way people do; it is profiled as
    trnscope run does it. Needs torch.

    \b
    Example:
      trnscope demo
    """
    from trnscope.cli.capture_report import command_line, report
    from trnscope.cli.output import print_lines
    from trnscope.demo import run_demo
    from trnscope.report.view import note

    if not as_json:
        typer.echo("Profiling a small training run on the CPU ...")
    code = report(run_demo(out), as_json=as_json)
    if not as_json:
        remark = "The script can also prepare its data once, beforehand. See what that saves:"
        print_lines([note(remark), command_line(REMEDY)])
    return code
