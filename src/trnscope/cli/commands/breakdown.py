"""``trnscope breakdown``: each step's time, split into parts that add up to it."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def breakdown(
    paths: Paths, limit: Limit = 50, as_json: Json = False, _debug: Debug = False
) -> None:
    """Split each step into parts that add up to it.

    \b
    Example:
      trnscope breakdown trace.json
    """
    from trnscope.analysis.breakdown import breakdown as split
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.breakdown import breakdown_lines

    profile = open_profile(paths)
    show(profile, split(profile), breakdown_lines, as_json=as_json, limit=limit)
