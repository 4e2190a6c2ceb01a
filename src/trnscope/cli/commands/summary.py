"""``trnscope summary``: what is in a profile and where its time went, on one page."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def summary(paths: Paths, limit: Limit = 10, as_json: Json = False, _debug: Debug = False) -> None:
    """Say what is in a trace and where its time went.

    \b
    Example:
      trnscope summary trace.json
      trnscope summary "run/rank*.json.gz" --json
    """
    from trnscope.analysis.breakdown import breakdown
    from trnscope.analysis.summary import summarize
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show, show_sentence
    from trnscope.report.summary import summary_lines

    profile = open_profile(paths)
    show(profile, summarize(profile), summary_lines, as_json=as_json, limit=limit)
    if not as_json:
        show_sentence(profile, breakdown(profile))
