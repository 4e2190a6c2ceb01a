"""Tables on disk: one Arrow IPC stream with a single record batch a file, read by mapping.

Any Arrow reader opens the files. Columns are written in any order and in pieces, so that a
table need not fit in memory; the layout is also kept by us, so that reopening needs no Arrow
library and touches no column that is not asked for.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_ALIGNMENT = 64
_CONTINUATION = b"\xff\xff\xff\xff"
# Numbers that Arrow's Message.fbs and Schema.fbs give to what is used here.
_METADATA_V5 = 4
_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _FLOAT = 2, 3
_FLOAT_PRECISION = {4: 1, 8: 2}


@dataclass(frozen=True)
class ColumnLayout:
    """Where one fixed-width column lies in its file."""

    name: str
    dtype: str
    offset: int
    num_rows: int


def end_of(columns: Sequence[ColumnLayout]) -> int:
    """The length that a table's file has at least, in bytes."""
    return max((c.offset + c.num_rows * np.dtype(c.dtype).itemsize for c in columns), default=0)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _message(b: Any, header_type: int, header: int, body: int) -> bytes:
    """Finish a Message around its ``header``; ``body`` bytes of data follow it."""
    b.StartObject(5)
    b.PrependInt16Slot(0, _METADATA_V5, 0)
    b.PrependUint8Slot(1, header_type, 0)
    b.PrependUOffsetTRelativeSlot(2, header, 0)
    b.PrependInt64Slot(3, body, 0)
    b.Finish(b.EndObject())
    return bytes(b.Output())


def _offset_vector(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _field(b: Any, name: str, dtype: np.dtype[Any]) -> int:
    """The Field table of a column that has no nulls."""
    text = b.CreateString(name)
    children = _offset_vector(b, ())  # Arrow's reader wants the vector, though it is empty
    b.StartObject(2)
    if dtype.kind == "f":
        b.PrependInt16Slot(0, _FLOAT_PRECISION[dtype.itemsize], 0)
    else:
        b.PrependInt32Slot(0, 8 * dtype.itemsize, 0)
        b.PrependBoolSlot(1, dtype.kind == "i", False)
    number_type = b.EndObject()
    b.StartObject(7)
    b.PrependUOffsetTRelativeSlot(0, text, 0)
    b.PrependBoolSlot(1, True, False)
    b.PrependUint8Slot(2, _FLOAT if dtype.kind == "f" else _INT, 0)
    b.PrependUOffsetTRelativeSlot(3, number_type, 0)
    b.PrependUOffsetTRelativeSlot(5, children, 0)
    return int(b.EndObject())


@lru_cache
def _schema_message(columns: tuple[tuple[str, np.dtype[Any]], ...]) -> bytes:
    """The flatbuffer of a Schema message. Written here, since Arrow's library loads slowly."""
    import flatbuffers

    b = flatbuffers.Builder(1024)
    fields = _offset_vector(b, [_field(b, name, dtype) for name, dtype in columns])
    b.StartObject(4)
    b.PrependUOffsetTRelativeSlot(1, fields, 0)
    return _message(b, _SCHEMA, b.EndObject(), 0)


def _record_batch_message(num_rows: int, buffers: Sequence[tuple[int, int]], body: int) -> bytes:
    """The flatbuffer of a RecordBatch message without nulls.

    ``buffers`` holds (offset, length) of each column's data within a body of ``body`` bytes.
    """
    import flatbuffers

    b = flatbuffers.Builder(1024)
    b.StartVector(16, 2 * len(buffers), 8)
    for offset, length in reversed(buffers):
        for start, size in ((offset, length), (offset, 0)):  # data, then the empty validity
            b.Prep(8, 16)
            b.PrependInt64(size)
            b.PrependInt64(start)
    buffer_vector = b.EndVector()
    b.StartVector(16, len(buffers), 8)
    for _ in buffers:
        b.Prep(8, 16)
        b.PrependInt64(0)
        b.PrependInt64(num_rows)
    node_vector = b.EndVector()
    b.StartObject(5)
    b.PrependInt64Slot(0, num_rows, 0)
    b.PrependUOffsetTRelativeSlot(1, node_vector, 0)
    b.PrependUOffsetTRelativeSlot(2, buffer_vector, 0)
    return _message(b, _RECORD_BATCH, b.EndObject(), body)


def _framed(message: bytes, padded: int) -> bytes:
    return _CONTINUATION + padded.to_bytes(4, "little") + message.ljust(padded, b"\0")


def _header(columns: Mapping[str, np.dtype[Any]], num_rows: int) -> tuple[bytes, list[int], int]:
    """Everything before the body, the body offset of each column, and the body's length."""
    sizes = [num_rows * dtype.itemsize for dtype in columns.values()]
    ends = np.cumsum([_aligned(size) for size in sizes]).tolist()
    offsets, body = [0, *ends[:-1]], ends[-1]
    schema = _schema_message(tuple(columns.items()))
    head = _framed(schema, -(-len(schema) // 8) * 8)
    message = _record_batch_message(num_rows, list(zip(offsets, sizes, strict=True)), body)
    padded = _aligned(len(head) + 8 + len(message)) - len(head) - 8
    return head + _framed(message, padded), offsets, body


class ColumnFileWriter:
    """Writes one table of ``num_rows`` rows; pieces of columns come in any order."""

    def __init__(self, path: Path, columns: Mapping[str, Any], num_rows: int) -> None:
        dtypes = {name: np.dtype(dtype) for name, dtype in columns.items()}
        head, offsets, body = _header(dtypes, num_rows)
        self.layout = tuple(
            ColumnLayout(name, dtype.str, len(head) + offset, num_rows)
            for (name, dtype), offset in zip(dtypes.items(), offsets, strict=True)
        )
        self._by_name = {column.name: column for column in self.layout}
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.pwrite(self._fd, head, 0)
        os.pwrite(self._fd, _CONTINUATION + bytes(4), len(head) + body)

    def write(self, column: str, first_row: int, values: npt.NDArray[Any]) -> None:
        """Put ``values`` at ``first_row``; they must have the column's type."""
        at = self._by_name[column]
        dtype = np.dtype(at.dtype)
        if values.dtype != dtype or first_row + values.size > at.num_rows:
            raise ValueError(f"column {column}: {values.dtype}[{values.size}] does not fit")
        view = np.ascontiguousarray(values).data.cast("B")
        offset = at.offset + first_row * dtype.itemsize
        while view.nbytes:
            written = os.pwrite(self._fd, view, offset)
            view, offset = view[written:], offset + written

    def fileno(self) -> int:
        """The open file, for native code that writes columns by the offsets of ``layout``."""
        return self._fd

    def __enter__(self) -> ColumnFileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def write_table(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> tuple[ColumnLayout, ...]:
    """Write a whole table at once; all columns have one length."""
    num_rows = next(iter(columns.values())).size
    with ColumnFileWriter(path, {k: v.dtype for k, v in columns.items()}, num_rows) as file:
        for name, values in columns.items():
            file.write(name, 0, values)
        return file.layout


class MappedTable:
    """A table's columns as read-only arrays over the mapped file."""

    def __init__(self, path: Path, layout: Sequence[ColumnLayout]) -> None:
        self._layout = {column.name: column for column in layout}
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def column(self, name: str) -> npt.NDArray[Any]:
        """One column, without a copy."""
        at = self._layout[name]
        return np.frombuffer(self._map, np.dtype(at.dtype), at.num_rows, at.offset)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by name."""
        return {name: self.column(name) for name in self._layout}

    def release_pages(self) -> None:
        """Let the kernel take the touched pages back; they are read again when needed."""
        self._map.madvise(mmap.MADV_DONTNEED)
