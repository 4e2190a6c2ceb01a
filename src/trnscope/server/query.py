"""The first rows of a query, as a page can show them."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.opened import OpenedProfile
from trnscope.store.sql import connect

MAX_EXACT = 1 << 53
"""Larger whole numbers lose digits in a browser; they are sent as text (ECMA-262: Number)."""


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a result, and whether there are more."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    has_more: bool

    def to_json(self) -> dict[str, object]:
        """The document of the SQL view."""
        return {
            "schema": 1,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "has_more": self.has_more,
        }


def first_rows(profile: OpenedProfile, text: str, limit: int) -> FirstRows:
    """The first ``limit`` rows, every digit of them kept; raises :class:`UsageError`."""
    with connect(profile) as session:
        document = session.query(text, limit + 1).to_json()
    rows = tuple(tuple(_exact(cell) for cell in row) for row in document["rows"])
    return FirstRows(tuple(document["columns"]), rows[:limit], len(rows) > limit)


def _exact(cell: object) -> object:
    if isinstance(cell, int) and not isinstance(cell, bool) and abs(cell) > MAX_EXACT:
        return str(cell)
    return str(cell) if isinstance(cell, list | dict) else cell
