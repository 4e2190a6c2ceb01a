"""Rows that come again for every execution of a program, moved in time and numbered anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trnscope.sim.explorer_tables.parquet import TABLES, arrow_schema

Moves = Mapping[str, npt.NDArray[Any] | Sequence[Any]]
"""By name: one value for each execution."""


class MovableRows:
    """Rows of one table.

    ``moved`` maps a column to the name of what is added to it; ``same`` maps a column to the
    name of what all rows of an execution have in it. All other columns stay as they are.
    """

    def __init__(
        self,
        table: str,
        rows: Sequence[Mapping[str, Any]],
        moved: Mapping[str, str],
        same: Mapping[str, str],
    ) -> None:
        self.num_rows = len(rows)
        self._schema = arrow_schema(TABLES[table])
        self._moved = moved
        self._same = same
        self._base = {name: np.array([row[name] for row in rows], np.int64) for name in moved}
        self._fixed = {
            field.name: pa.array([row.get(field.name) for row in rows], field.type)
            for field in self._schema
            if field.name not in moved and field.name not in same
        }

    def at(self, moves: Moves, times: int) -> Any:
        """The rows of ``times`` executions as one batch."""
        arrays = [self._column(field, moves, times) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, field: Any, moves: Moves, times: int) -> Any:
        if field.name in self._moved:
            by = np.asarray(moves[self._moved[field.name]], np.int64)
            return pa.array((by[:, None] + self._base[field.name][None, :]).ravel(), field.type)
        if field.name in self._same:
            values = pa.array(moves[self._same[field.name]], field.type)
            return values.take(pa.array(np.repeat(np.arange(times), self.num_rows)))
        fixed = self._fixed[field.name]
        if fixed.null_count == self.num_rows:
            return pa.nulls(times * self.num_rows, field.type)
        return pa.concat_arrays([fixed] * times)
