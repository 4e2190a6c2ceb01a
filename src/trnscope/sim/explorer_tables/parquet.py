"""Parquet files of described tables: a file appears with its first rows and grows by groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trnscope.sim.explorer_tables.columns import Table
from trnscope.sim.explorer_tables.device_columns import DEVICE_TABLES
from trnscope.sim.explorer_tables.summary_columns import SUMMARY
from trnscope.sim.explorer_tables.system_columns import SYSTEM_TABLES
from trnscope.sim.explorer_tables.usage_columns import USAGE_TABLES

ROWS_PER_GROUP = 1 << 16
_ROWS_AT_ONCE = 1 << 13

TABLES: dict[str, Table] = {
    one.name: one for one in (*DEVICE_TABLES, *USAGE_TABLES, SUMMARY, *SYSTEM_TABLES)
}
"""Every table that is written."""

# "number (float)" holds more digits than 32 bits do in the figures that Neuron Explorer prints.
_TYPES: dict[str, Any] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "texts": pa.list_(pa.string()),
}


def arrow_schema(table: Table) -> Any:
    """Names and types of a table's columns; required ones are not nullable."""
    return pa.schema(
        [pa.field(c.name, _TYPES[c.type], nullable=not c.required) for c in table.columns]
    )


class TableWriter:
    """Writes one table of a profile."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.parquet"
        self.schema = arrow_schema(TABLES[name])
        self._writer: Any = None
        self._rows: list[Mapping[str, Any]] = []
        self._waiting: list[Any] = []
        self._num_waiting = 0
        self.num_rows = 0
        """Rows so far."""

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows by column name; a column left out is null."""
        for row in rows:
            self._rows.append(row)
            self.num_rows += 1
            if len(self._rows) >= _ROWS_AT_ONCE:
                self._convert()

    def add_batch(self, batch: Any) -> None:
        """Add rows that are columns already."""
        self.num_rows += batch.num_rows
        self._keep(batch)

    def _convert(self) -> None:
        rows, self._rows = self._rows, []
        columns = [[row.get(name) for row in rows] for name in self.schema.names]
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, self.schema, strict=True)
        ]
        self._keep(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def _keep(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._num_waiting += batch.num_rows
        if self._num_waiting >= ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what waits; a table without rows leaves no file."""
        if self._rows:
            self._convert()
        self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, self.schema, compression="zstd")
        self._writer.write_table(pa.Table.from_batches(self._waiting, self.schema))
        self._waiting, self._num_waiting = [], 0


class TableSet:
    """The tables of one folder, each opened when it gets rows."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._writers: dict[str, TableWriter] = {}

    def __getitem__(self, name: str) -> TableWriter:
        if name not in self._writers:
            self._writers[name] = TableWriter(self.folder, name)
        return self._writers[name]

    @property
    def num_rows(self) -> int:
        """Rows of all tables."""
        return sum(writer.num_rows for writer in self._writers.values())

    def close(self) -> None:
        """Finish every file, and describe the tables that have rows."""
        written = [name for name, writer in self._writers.items() if writer.num_rows]
        self["SchemaFields"].add(schema_rows((*written, "SchemaFields")))
        for writer in self._writers.values():
            writer.close()


_TYPE_WORDS = {
    "int64": ("integer", "int64"),
    "int32": ("integer", "int32"),
    "float": ("number", "float"),
    "bool": ("boolean", None),
    "text": ("string", None),
    "texts": ("array of string", None),
}


def schema_rows(names: Iterable[str]) -> Iterable[dict[str, Any]]:
    """Rows of SchemaFields for some tables."""
    for name in names:
        table = TABLES[name]
        for column in table.columns:
            kind, width = _TYPE_WORDS[column.type]
            yield {
                "table_name": name,
                "table_description": table.text,
                "field_name": column.name,
                "field_description": column.text,
                "field_type": kind,
                "field_required": column.required,
                "field_format": width,
                "field_unit": column.unit,
            }
