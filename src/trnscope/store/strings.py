"""The string table of a trace: every name and text once, addressed by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.store.tables import I64, U8


class Strings(Sequence[str]):
    """Read-only strings over mapped UTF-8 bytes; ``ends[i]`` is the end of string ``i``."""

    def __init__(self, ends: I64, data: U8) -> None:
        self._ends = ends
        self._data = data
        self._bytes = data.data

    def __len__(self) -> int:
        return int(self._ends.size)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = int(index)
        if not 0 <= at < len(self):
            raise IndexError(f"string {at} of {len(self)}")
        first = 0 if at == 0 else self._ends.item(at - 1)
        return str(self._bytes[first : self._ends.item(at)], "utf-8", "surrogatepass")

    def take(self, ids: Iterable[int] | npt.NDArray[Any]) -> list[str]:
        """The strings of these ids."""
        at = ids.astype(np.int64) if isinstance(ids, np.ndarray) else np.fromiter(ids, np.int64)
        if at.size == 0:
            return []
        if at.min() < 0 or at.max() >= len(self):
            raise IndexError(f"strings {at.min()} to {at.max()} of {len(self)}")
        first = np.where(at == 0, 0, self._ends[at - 1]).tolist()
        return [
            str(self._bytes[low:high], "utf-8", "surrogatepass")
            for low, high in zip(first, self._ends[at].tolist(), strict=True)
        ]

    def with_words(self, words: Sequence[str], among: U8) -> U8:
        """Flags, one a string: in ``among``, and holding one of the ASCII words in any case."""
        return _native.texts_with(self._ends, self._data, among, [w.lower() for w in words])


@dataclass(frozen=True)
class EncodedStrings:
    """A string table as :class:`Strings` reads it."""

    ends: I64
    """Where each string ends in ``data``."""
    data: U8
    """UTF-8, joined."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> EncodedStrings:
        """Encode a list of strings."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
        return cls(ends, np.frombuffer(b"".join(encoded), np.uint8))
