"""``trnscope launch``: show how long device work waits after its launch, and how much is queued."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def launch(paths: Paths, limit: Limit = 50, as_json: Json = False, _debug: Debug = False) -> None:
    """Show how long device work waits after its launch.

    \b
    Example:
      trnscope launch trace.json
    """
    from trnscope.analysis.launch import launches as find_launches
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.launch import launch_lines

    profile = open_profile(paths)
    show(profile, find_launches(profile), launch_lines, as_json=as_json, limit=limit)
