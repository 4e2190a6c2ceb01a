"""``trnscope steps``: each step's duration and the device time it caused."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def steps(paths: Paths, limit: Limit = 50, as_json: Json = False, _debug: Debug = False) -> None:
    """Show how long each step took, on host and device.

    \b
    Example:
      trnscope steps trace.json
    """
    from trnscope.analysis.steps import steps as find_steps
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.steps import steps_lines

    profile = open_profile(paths)
    show(profile, find_steps(profile), steps_lines, as_json=as_json, limit=limit)
