"""The list of commands. Only names are imported here: a command loads what it needs itself."""

from __future__ import annotations

from typing import Annotated

import typer

from trnscope import __version__
from trnscope.cli.commands.breakdown import breakdown
from trnscope.cli.commands.compare import compare
from trnscope.cli.commands.demo import demo
from trnscope.cli.commands.estimate import estimate
from trnscope.cli.commands.explain import explain
from trnscope.cli.commands.export import export
from trnscope.cli.commands.health import health
from trnscope.cli.commands.kernels import kernels
from trnscope.cli.commands.launch import launch
from trnscope.cli.commands.mcp import mcp
from trnscope.cli.commands.memory import memory
from trnscope.cli.commands.open import open
from trnscope.cli.commands.ops import ops
from trnscope.cli.commands.overlap import overlap
from trnscope.cli.commands.report import report
from trnscope.cli.commands.roofline import roofline
from trnscope.cli.commands.rule import rule
from trnscope.cli.commands.run import SETTINGS, run
from trnscope.cli.commands.sql import sql
from trnscope.cli.commands.steps import steps
from trnscope.cli.commands.study import study
from trnscope.cli.commands.summary import summary
from trnscope.cli.options import Debug

app = typer.Typer(
    name="trnscope",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)

app.command(context_settings=SETTINGS)(run)
app.command(context_settings=SETTINGS)(estimate)
for _command in (
    demo,
    open,
    report,
    explain,
    compare,
    summary,
    breakdown,
    steps,
    ops,
    kernels,
    overlap,
    launch,
    memory,
    roofline,
    health,
    rule,
    sql,
    export,
    study,
    mcp,
):
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trnscope {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def trnscope(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    _debug: Debug = False,
) -> None:
    """Find out where the time of a PyTorch program goes.

    \b
    Start here:
      trnscope demo                     see it at work on a small training run
      trnscope run train.py             profile your own script, unchanged
      trnscope summary trace.json       read a trace that you have
      trnscope open trace.json          see it in a browser
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
