"""``trnscope memory``: what each allocator held, and for which ops."""

from __future__ import annotations

from trnscope.cli.options import Debug, Json, Limit, Paths


def memory(paths: Paths, limit: Limit = 20, as_json: Json = False, _debug: Debug = False) -> None:
    """Show memory over time: start, peak, end, and who held it.

    \b
    Example:
      trnscope memory trace.json
    """
    from trnscope.analysis.memory import memory as measure
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.memory import memory_lines

    profile = open_profile(paths)
    show(profile, measure(profile), memory_lines, as_json=as_json, limit=limit)
