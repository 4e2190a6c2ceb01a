"""Columns that grow on disk while a trace is read, so that memory stays bounded."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_SHIFT_BYTES = 8 << 20


class SpilledTable:
    """Append-only columns in one folder, one raw file a column; mapped once complete."""

    def __init__(self, directory: Path, name: str, columns: Mapping[str, Any]) -> None:
        self.num_rows = 0
        self._dtypes = {column: np.dtype(dtype) for column, dtype in columns.items()}
        self._paths = {column: directory / f"{name}.{column}" for column in columns}
        self._files = {column: path.open("wb") for column, path in self._paths.items()}
        self._maps: list[mmap.mmap] = []

    def append(self, columns: Mapping[str, npt.NDArray[Any]]) -> int:
        """Add rows; returns the index of the first. All columns have one length."""
        lengths = {values.size for values in columns.values()}
        if len(lengths) != 1 or columns.keys() != self._files.keys():
            raise ValueError("a batch needs every column, in one length")
        for name, values in columns.items():
            data = np.ascontiguousarray(values, dtype=self._dtypes[name])
            self._files[name].write(data.data.cast("B"))
        first, self.num_rows = self.num_rows, self.num_rows + lengths.pop()
        return first

    def shift(self, column: str, amount: int) -> None:
        """Add ``amount`` to every value that a column holds so far."""
        self._files[column].flush()
        with self._paths[column].open("r+b") as file:
            while data := file.read(_SHIFT_BYTES):
                file.seek(-len(data), os.SEEK_CUR)
                file.write((np.frombuffer(data, self._dtypes[column]) + amount).data.cast("B"))

    def map(self) -> dict[str, npt.NDArray[Any]]:
        """All columns, read-only; nothing can be appended after this."""
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, file in self._files.items():
            file.close()
            columns[name] = self._map_column(name)
        return columns

    def _map_column(self, name: str) -> npt.NDArray[Any]:
        dtype = self._dtypes[name]
        if self.num_rows == 0:
            return np.empty(0, dtype)
        with self._paths[name].open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype)

    def release_pages(self) -> None:
        """Let the kernel take the touched pages back."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)
