"""Rows of a table with whatever columns and types its writer chose; absent is a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from trnscope.ingest.neuron_values import as_float, as_int, as_text
from trnscope.ingest.rows import START_LIMIT_NS
from trnscope.store.tables import F64, I64, Bool

ABSENT = int(np.iinfo(np.int64).min)
"""Stands for no value in a column of integers."""

Texts = tuple[npt.NDArray[np.intp], list[str]]
"""Place of each row's text in the list; -1 where it has none."""


def is_time(values: I64) -> Bool:
    """Which of these are there and usable as a time."""
    return (values > -START_LIMIT_NS) & (values < START_LIMIT_NS)


class Rows(Protocol):
    """Some rows of one table."""

    @property
    def size(self) -> int:
        """How many."""

    def ints(self, column: str) -> I64:
        """Integers; ABSENT where a row has none."""

    def floats(self, column: str) -> F64:
        """Numbers; NaN where a row has none."""

    def texts(self, column: str) -> Texts:
        """Texts, each distinct one once."""


class ObjectRows:
    """Rows that are objects of a JSON document. ``names`` maps a column to the document's key."""

    def __init__(
        self, rows: Sequence[Mapping[str, Any]], names: Mapping[str, str] | None = None
    ) -> None:
        self._rows = rows
        self._names = names or {}

    @property
    def size(self) -> int:
        """How many."""
        return len(self._rows)

    def _values(self, column: str) -> list[Any]:
        key = self._names.get(column, column)
        return [row.get(key) for row in self._rows]

    def ints(self, column: str) -> I64:
        """Integers; ABSENT where a row has none that fits 63 bits."""
        found = [as_int(value) for value in self._values(column)]
        return np.array(
            [ABSENT if n is None or not -(1 << 63) < n < 1 << 63 else n for n in found], np.int64
        )

    def floats(self, column: str) -> F64:
        """Numbers; NaN where a row has none."""
        found = [as_float(value) for value in self._values(column)]
        return np.array([np.nan if number is None else number for number in found], np.float64)

    def texts(self, column: str) -> Texts:
        """Texts, each distinct one once."""
        places: dict[str, int] = {}
        codes = [
            -1 if (text := as_text(value)) is None else places.setdefault(text, len(places))
            for value in self._values(column)
        ]
        return np.array(codes, np.intp), list(places)
