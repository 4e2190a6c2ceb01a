"""``trnscope ops``: time by framework op, on host and device."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Limit, Paths


class OpsBy(str, Enum):
    """Choices of ``--by``; the same as those of the analysis, which is loaded only when needed."""

    NAME = "name"
    SHAPE = "shape"
    STACK = "stack"
    MODULE = "module"


class OpsOrder(str, Enum):
    """Choices of ``--sort``."""

    SELF_DEVICE = "self-device"
    DEVICE = "device"
    SELF_CPU = "self-cpu"
    CPU = "cpu"
    CALLS = "calls"
    NAME = "name"


def ops(
    paths: Paths,
    by: Annotated[
        OpsBy,
        typer.Option(
            "--by", help="What makes calls one row: their name, or name and shapes, stack, module."
        ),
    ] = OpsBy.NAME,
    sort: Annotated[
        OpsOrder | None,
        typer.Option(
            "--sort", help="Order of rows. [default: self-device, without a device self-cpu]"
        ),
    ] = None,
    python: Annotated[
        bool,
        typer.Option(
            "--python/--no-python",
            help="List Python frames as rows, or charge their time to the op around them.",
        ),
    ] = True,
    stack_depth: Annotated[
        int | None,
        typer.Option("--stack-depth", min=1, metavar="FRAMES", help="Frames kept with --by stack."),
    ] = None,
    limit: Limit = 20,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Show time by op, as torch's own table counts it.

    \b
    Example:
      trnscope ops trace.json
      trnscope ops trace.json --by shape --sort cpu
    """
    from trnscope.analysis.ops import ops as count_ops
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show, show_json

    profile = open_profile(paths)
    result = count_ops(profile, by.value, python=python, stack_depth=stack_depth)
    if sort is None and as_json:
        # Needs no package for text, which takes longer to load than the answer.
        show_json(profile, result)
        return
    from trnscope.report.ops import ops_lines, sorted_ops

    if sort is not None:
        result = sorted_ops(result, sort.value)
    show(profile, result, ops_lines, as_json=as_json, limit=limit)
