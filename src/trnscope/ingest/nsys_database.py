"""Reads tables of an Nsight Systems SQLite export column by column, whatever is absent.

Which tables and columns an export has depends on its version, on what was traced and on
whether anything was recorded at all; each one asked for here may be missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from trnscope.store.tables import I64

ABSENT = int(np.iinfo(np.int64).min)
"""Stands for NULL, or for a column that is not there, inside integer columns of this reader."""

_ROWS_PER_BATCH = 65_536
_IDS_PER_LOOKUP = 500


class NsysDatabase:
    """An export opened read-only; nothing is written beside it, not even a journal."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True
        )
        self.num_repaired_texts = 0
        """Texts that were not UTF-8; the bad bytes became U+FFFD."""
        self._connection.text_factory = self._decode
        found = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        )
        self.tables = frozenset(name for (name,) in found)

    def __enter__(self) -> NsysDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self.num_repaired_texts += 1
            return data.decode("utf-8", "replace")

    def columns(self, table: str) -> frozenset[str]:
        """Column names of a table; empty where there is no such table."""
        rows = self._connection.execute(f"PRAGMA table_info({_quoted(table)})")
        return frozenset(row[1] for row in rows)

    def has_rows(self, table: str) -> bool:
        """Whether the table exists and holds anything."""
        if table not in self.tables:
            return False
        sql = f"SELECT 1 FROM {_quoted(table)} LIMIT 1"
        return self._connection.execute(sql).fetchone() is not None

    def estimate_rows(self, table: str) -> int:
        """Rows of a table without reading it: its highest row id; 0 where it has none."""
        if table not in self.tables:
            return 0
        try:
            sql = f"SELECT max(_rowid_) FROM {_quoted(table)}"
            return int(self._connection.execute(sql).fetchone()[0] or 0)
        except sqlite3.OperationalError:  # a view has no row ids
            return 0

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, I64]]:
        """Integer columns in batches; ``ABSENT`` for NULL and for a column not there."""
        for batch, _ in self.batches_with_text(table, columns, None):
            yield batch

    def batches_with_text(
        self, table: str, columns: Sequence[str], text: str | None
    ) -> Iterator[tuple[dict[str, I64], Sequence[str | None]]]:
        """As :meth:`batches`, with one text column besides (null for each row without)."""
        present = self.columns(table)
        asked = [name for name in columns if name in present]
        terms = [f"coalesce(CAST({_quoted(name)} AS INTEGER), {ABSENT})" for name in asked]
        terms.append(f"CAST({_quoted(text)} AS TEXT)" if text in present else "NULL")
        if not present:
            return
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(f"SELECT {', '.join(terms)} FROM {_quoted(table)}")
            while rows := cursor.fetchmany(_ROWS_PER_BATCH):
                *values, texts = zip(*rows, strict=True)
                batch = {name: np.full(len(rows), ABSENT, np.int64) for name in columns}
                for name, column in zip(asked, values, strict=True):
                    batch[name] = np.array(column, np.int64)
                yield batch, texts

    def rows(self, table: str, columns: Sequence[str], where: str = "1") -> list[tuple[Any, ...]]:
        """A small table's rows; null for a column that is not there, none without the table."""
        present = self.columns(table)
        if not present:
            return []
        terms = [_quoted(name) if name in present else "NULL" for name in columns]
        sql = f"SELECT {', '.join(terms)} FROM {_quoted(table)} WHERE {where}"
        return self._connection.execute(sql).fetchall()

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of ``StringIds`` by id, for those that are there."""
        found: dict[int, str] = {}
        if not {"id", "value"} <= self.columns("StringIds"):
            return found
        for first in range(0, len(ids), _IDS_PER_LOOKUP):
            some = ids[first : first + _IDS_PER_LOOKUP]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT id, CAST(value AS TEXT) FROM StringIds WHERE id IN ({marks})"
            found.update((i, t) for i, t in self._connection.execute(sql, some) if t is not None)
        return found


def _quoted(name: str | None) -> str:
    return '"' + (name or "").replace('"', '""') + '"'
