"""``trnscope explain``: the cause, what it costs, and what to try."""

from __future__ import annotations

from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Paths


def explain(
    paths: Paths,
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="Look at the step of this number alone."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=0, metavar="N", help="Findings to show; 0 shows all.")
    ] = 5,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Say why a step is slow, what would come back, and what to try.

    The first lines are the answer: where the step goes, the top cause, the milliseconds that
    would come back with their range, one edit, and how sure that is. The evidence follows.

    \b
    Example:
      trnscope explain trace.json
    """
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.opened import explain_profile
    from trnscope.report.explain import explain_lines

    profile = open_profile(paths)
    show(profile, explain_profile(profile, step=step), explain_lines, as_json=as_json, limit=top)
