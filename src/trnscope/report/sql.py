"""The rows of a query as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from trnscope.report.table import Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title
from trnscope.store.sql import QueryResult

_LONGEST_CELL = 200


def query_lines(result: QueryResult, view: View) -> Iterator[Text]:
    """Columns in the order of the query; numbers are printed as they are, NULL as NULL."""
    if view.incomplete is not None or view.simulated is not None:
        yield from title(view, "Query")
    if not result.columns:
        yield note("The query returned nothing.")
        return
    rows = [[_cell(value) for value in row] for row in result.rows[: view.shown(len(result.rows))]]
    first, *others = result.columns
    columns = [Column(name, is_text=_is_text(result, at)) for at, name in enumerate(others, 1)]
    yield from Table(first, columns, rows).lines(view.width)
    yield from cut_note(view, len(result.rows), "row")
    if not result.rows:
        yield note(plural(0, "row"))


def _is_text(result: QueryResult, at: int) -> bool:
    return not any(isinstance(row[at], int | float) for row in result.rows[:100])


def _cell(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL] + "…"
