"""``trnscope overlap``: show how much communication and copying hides behind compute."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def overlap(paths: Paths, limit: Limit = 50, as_json: Json = False, _debug: Debug = False) -> None:
    """Show how much communication hides behind compute.

    \b
    Example:
      trnscope overlap trace.json
    """
    from trnscope.analysis.overlap import overlap as find_overlap
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.overlap import overlap_lines

    profile = open_profile(paths)
    show(profile, find_overlap(profile), overlap_lines, as_json=as_json, limit=limit)
