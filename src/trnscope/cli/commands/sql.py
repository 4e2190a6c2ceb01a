"""``trnscope sql``: one query over the documented views."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Limit, Paths


def sql(
    paths: Paths,
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="One SELECT in DuckDB's dialect; - reads it from standard input.",
            show_default=False,
        ),
    ],
    limit: Limit = 50,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Ask a trace anything, in SQL.

    A query sees the views of docs/reference/sql-views.md and nothing else, no file, no network.

    \b
    Example:
      trnscope sql trace.json "SELECT name, sum(dur_ns) AS ns FROM kernels GROUP BY 1 ORDER BY 2"
    """
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.show import show
    from trnscope.report.sql import query_lines
    from trnscope.store.sql import connect

    text = sys.stdin.read() if query == "-" else query
    profile = open_profile(paths)
    with connect(profile) as session:
        result = session.query(text)
    show(profile, result, query_lines, as_json=as_json, limit=limit, whole_names=True)
