"""``trnscope roofline``: what each op reaches of what the device can do, and what binds it."""

from __future__ import annotations

from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Paths


def roofline(
    paths: Paths,
    hardware: Annotated[
        str | None,
        typer.Option(
            "--hardware",
            metavar="NAME",
            help="The chip whose peaks to use, such as h100-sxm. [default: as the trace names it]",
        ),
    ] = None,
    peak_flops: Annotated[
        float | None,
        typer.Option(
            "--peak-flops",
            metavar="FLOP/S",
            help="Peak of one device for every type, such as 989e12.",
        ),
    ] = None,
    peak_bandwidth: Annotated[
        float | None,
        typer.Option(
            "--peak-bandwidth",
            metavar="B/S",
            help="Peak memory bandwidth of one device, such as 3.35e12.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--top", "--limit", "-n", min=0, help="Rows to show; 0 shows all."),
    ] = 20,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Show how near each op comes to what the device can do, and which limit it meets.

    \b
    Example:
      trnscope roofline trace.json
      trnscope roofline cpu-trace.json --peak-flops 1.5e12 --peak-bandwidth 40e9
    """
    from trnscope.analysis.roofline import roofline as hold_against
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show, show_json

    profile = open_profile(paths)
    result = hold_against(profile, hardware, peak_flops=peak_flops, peak_bandwidth=peak_bandwidth)
    if as_json:
        show_json(profile, result)
        return
    from trnscope.report.roofline import roofline_lines

    show(profile, result, roofline_lines, as_json=False, limit=limit)
