"""``trnscope mcp``: profiles for agents."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug


def mcp(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Traces to open at once, as profile p1; the agent can open others.",
            show_default=False,
        ),
    ] = None,
    _debug: Debug = False,
) -> None:
    """Let an agent ask: a server of the Model Context Protocol.

    It speaks on standard input and output, so it is the agent that starts it. Answers are those
    of the other commands with --json, cut to a bounded length.

    \b
    Example:
      trnscope mcp trace.json
    """
    from trnscope.errors import UsageError

    if find_spec("mcp") is None:
        raise UsageError("the MCP server needs the package mcp", "pip install 'trnscope[mcp]'")
    from trnscope.cli.inputs import expand
    from trnscope.mcp.profiles import AgentProfiles
    from trnscope.mcp.serve import serve

    profiles = AgentProfiles()
    if paths:
        profiles.open(expand(paths))
    serve(profiles)
