"""The string table of a trace: every name and text once, addressed by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.store.tables import I64, U8


class Strings(Sequence[str]):
    """Read-only strings over mapped UTF-8 bytes; ``ends[i]`` is the end of string ``i``."""

    def __init__(self, ends: I64, data: U8) -> None:
        self._ends = ends
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

    @cached_property
    def array(self) -> npt.NDArray[np.object_]:
        """All strings as an object array."""
        texts = np.empty(len(self), dtype=object)
        texts[:] = list(self)
        return texts

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(self)}

    def find(self, text: str) -> int | None:
        """The id of a string; null where the trace does not hold it."""
        return self._ids.get(text)


def encode_strings(texts: Sequence[str]) -> tuple[I64, U8]:
    """Ends and bytes of a string table, as :class:`Strings` reads them."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
    return ends, np.frombuffer(b"".join(encoded), np.uint8)
