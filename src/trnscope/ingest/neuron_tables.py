"""The Parquet tables of one folder that Neuron Explorer wrote.

A table may be missing, split into numbered files, lack columns, or hold integers as floats or
text: what is not there is absent, never zero.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trnscope.ingest.neuron_rows import ABSENT, Texts
from trnscope.store.tables import F64, I64

_ROWS_PER_BATCH = 1 << 16
_FILE = re.compile(r"(?P<table>[A-Z][A-Za-z]*?)(?:_(?P<part>\d+))?\.parquet")
_EVENT_TABLES = (
    "SystemProfileEvents",
    "Instruction",
    "DmaPacketAggregated",
    "DmaPacket",
    "ActiveTime",
    "CcOp",
    "ExecutionInfo",
)
_MARKS = (*_EVENT_TABLES, "Summary", "OpcodeSummary", "Metadata", "SystemProfileMetadata")


def table_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each table, parts in order; empty for a folder without any."""
    found: defaultdict[str, list[tuple[int, Path]]] = defaultdict(list)
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match is not None and path.is_file():
            found[match["table"]].append((int(match["part"] or -1), path))
    return {table: [path for _, path in sorted(parts)] for table, parts in sorted(found.items())}


def is_explorer_folder(files: dict[str, list[Path]]) -> bool:
    """Whether these are tables of Neuron Explorer: any that only it writes."""
    return any(table in files for table in _MARKS)


class NeuronTables:
    """Reads the tables of one folder, batch by batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files = table_files(folder)
        self.damaged: dict[str, str] = {}
        """File name to what is wrong with it; such a file is left out from there on."""
        self.num_rows = 0
        """Rows handed out."""

    def has(self, table: str) -> bool:
        """Whether there is a file of the table."""
        return table in self._files

    @property
    def num_bytes(self) -> int:
        """Size of all files."""
        return sum(path.stat().st_size for parts in self._files.values() for path in parts)

    def estimate_rows(self) -> int:
        """Rows of the tables that hold events, by their footers."""
        total = 0
        for table in _EVENT_TABLES:
            for path in self._files.get(table, ()):
                file = self._opened(path)
                total += 0 if file is None else file.metadata.num_rows
        return total

    def batches(self, table: str, columns: Sequence[str]) -> Iterator[ArrowRows]:
        """The rows of a table, with those of the columns that it has."""
        for path in self._files.get(table, ()):
            file = self._opened(path)
            if file is None:
                continue
            present = [name for name in columns if name in file.schema_arrow.names]
            try:
                for batch in file.iter_batches(_ROWS_PER_BATCH, columns=present):
                    self.num_rows += batch.num_rows
                    yield ArrowRows(batch)
            except (pa.ArrowException, OSError) as error:
                self.damaged[path.name] = str(error).splitlines()[0]

    def objects(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table with all their columns."""
        for path in self._files.get(table, ()):
            file = self._opened(path)
            columns = [] if file is None else file.schema_arrow.names
            for rows in self._only(path, columns):
                yield from rows.objects()

    def _only(self, path: Path, columns: Sequence[str]) -> Iterator[ArrowRows]:
        file = self._opened(path)
        if file is None:
            return
        try:
            for batch in file.iter_batches(_ROWS_PER_BATCH, columns=list(columns)):
                self.num_rows += batch.num_rows
                yield ArrowRows(batch)
        except (pa.ArrowException, OSError) as error:
            self.damaged[path.name] = str(error).splitlines()[0]

    def first(self, table: str) -> dict[str, Any]:
        """The first row of a table; empty where there is none."""
        return next(self.objects(table), {})

    def _opened(self, path: Path) -> Any:
        try:
            return pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            self.damaged[path.name] = str(error).splitlines()[0]
            return None


class ArrowRows:
    """Some rows of a Parquet table."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    @property
    def size(self) -> int:
        """How many."""
        return int(self._batch.num_rows)

    def _column(self, name: str) -> Any:
        at = self._batch.schema.get_field_index(name)
        if at < 0:
            return None
        column = self._batch.column(at)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def ints(self, column: str) -> I64:
        """Integers; ABSENT where a row has none."""
        values = self._column(column)
        if values is None or pa.types.is_null(values.type):
            return np.full(self.size, ABSENT, np.int64)
        if pa.types.is_floating(values.type):
            return _rounded(np.asarray(values.to_numpy(zero_copy_only=False), np.float64))
        if not pa.types.is_integer(values.type):
            values = _parsed(values)
        # An unsigned number beyond 63 bits is no time, size or row number.
        whole = pc.cast(values, pa.int64(), safe=False)
        return np.asarray(pc.fill_null(whole, ABSENT).to_numpy(zero_copy_only=False), np.int64)

    def floats(self, column: str) -> F64:
        """Numbers; NaN where a row has none."""
        values = self._column(column)
        if values is None or not (
            pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
        ):
            return np.full(self.size, np.nan, np.float64)
        numbers = pc.cast(values, pa.float64(), safe=False)
        return np.asarray(pc.fill_null(numbers, np.nan).to_numpy(zero_copy_only=False), np.float64)

    def texts(self, column: str) -> Texts:
        """Texts, each distinct one once; an empty text is none."""
        values = self._column(column)
        if values is None or pa.types.is_null(values.type):
            return np.full(self.size, -1, np.intp), []
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            values = pc.cast(values, pa.string()) if not pa.types.is_nested(values.type) else None
        if values is None:
            return np.full(self.size, -1, np.intp), []
        coded = values.dictionary_encode()
        texts: list[str] = coded.dictionary.to_pylist()
        codes = np.asarray(
            pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False), np.intp
        ).copy()
        if "" in texts:
            codes[codes == texts.index("")] = -1
        return codes, texts

    def objects(self) -> list[dict[str, Any]]:
        """The rows as objects; integers keep all digits."""
        rows: list[dict[str, Any]] = self._batch.to_pylist()
        return rows


def _rounded(values: F64) -> I64:
    known = np.isfinite(values) & (np.abs(values) < float(1 << 62))
    return np.where(known, np.rint(np.where(known, values, 0)), ABSENT).astype(np.int64)


def _parsed(values: Any) -> Any:
    """Integers from texts and booleans; null for anything else."""
    if pa.types.is_boolean(values.type):
        return values
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return pa.nulls(len(values), pa.int64())
    digits = pc.utf8_trim_whitespace(values)
    is_number = pc.match_substring_regex(digits, r"^-?\d{1,18}$")
    return pc.cast(pc.if_else(is_number, digits, None), pa.int64())
