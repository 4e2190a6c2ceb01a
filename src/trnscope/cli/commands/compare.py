"""``trnscope compare``: two profiles of the same work, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trnscope.cli.options import Debug, Json, Limit

if TYPE_CHECKING:
    from trnscope.analysis.compare import Comparison

GATE_FAILED = 3


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A trace, or the folder of a recorded run.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The one to hold against it.")],
    fail_if_slower: Annotated[
        str | None,
        typer.Option(
            "--fail-if-slower",
            metavar="PERCENT",
            help="End with 3 if the median step is certainly longer by more than this.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = 15,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Show what changed from one run to another: steps, their parts, ops, kernels, memory.

    Ops and kernels are matched by name. What was not the same besides the times (devices, shapes,
    ranks, clocks) is said first.

    \b
    Example:
      trnscope compare runs/before runs/after
      trnscope compare runs/main runs/branch --fail-if-slower 3%
    """
    from trnscope.analysis.compare import compare as compare_profiles
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.compare import comparison_lines

    allowed = None if fail_if_slower is None else _parse_percent(fail_if_slower)
    first, second = open_profile([before]), open_profile([after])
    result = compare_profiles(first, second)
    marked = second if second.simulated_by is not None or first.simulated_by is None else first
    show(marked, result, comparison_lines, as_json=as_json, limit=limit)
    if allowed is not None:
        _gate(result, allowed)


def _parse_percent(text: str) -> float:
    from trnscope.errors import UsageError

    try:
        value = float(text.rstrip("% "))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--fail-if-slower {text}: is no percentage", "such as 3%")
    return value / 100


def _gate(result: Comparison, allowed: float) -> None:
    """End with 3 where even the low end of the interval is above what is allowed."""
    from trnscope.cli.output import print_warning
    from trnscope.errors import UsageError

    ratio = result.ratio
    if ratio is None or ratio.low is None:
        raise UsageError(
            "too few steps to judge whether it is slower", "record at least 5 on each side"
        )
    if ratio.low > 1 + allowed:
        print_warning(f"the median step is longer by more than {100 * allowed:g} %: the gate fails")
        raise typer.Exit(GATE_FAILED)
