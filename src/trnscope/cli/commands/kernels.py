"""``trnscope kernels``: device work by kernel, device or stream."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Limit, Paths


class KernelsGroup(str, Enum):
    """Choices of ``--by``; the same as those of the analysis, which is loaded only when needed."""

    NAME = "name"
    DEVICE = "device"
    STREAM = "stream"


def kernels(
    paths: Paths,
    by: Annotated[
        KernelsGroup, typer.Option("--by", help="What makes pieces of device work one row.")
    ] = KernelsGroup.NAME,
    limit: Limit = 20,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Show which kernels, copies and collectives the devices ran.

    \b
    Example:
      trnscope kernels trace.json
      trnscope kernels trace.json --by stream
    """
    from trnscope.analysis.kernels import kernels as count_kernels
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.kernels import kernels_lines

    profile = open_profile(paths)
    result = count_kernels(profile, by.value)
    show(profile, result, kernels_lines, as_json=as_json, limit=limit)
