"""``trnscope demo``: the tool at work on a training run that wastes time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json


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
    from trnscope.cli.capture_report import report
    from trnscope.demo import demo_script_path, run_demo

    if not as_json:
        typer.echo(f"Profiling {demo_script_path()} on the CPU ...")
    return report(run_demo(out), as_json=as_json)
