"""``trnscope health``: how far a trace can be trusted."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def health(paths: Paths, limit: Limit = 0, as_json: Json = False, _debug: Debug = False) -> None:
    """Say what is missing or damaged, and which figures suffer.

    \b
    Example:
      trnscope health trace.json
    """
    from trnscope.analysis.health import health as check
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.health import health_lines

    profile = open_profile(paths)
    show(profile, check(profile), health_lines, as_json=as_json, limit=limit)
