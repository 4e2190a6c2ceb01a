"""The string table that a Neuron importer fills."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trnscope.store.tables import U32


class Texts:
    """Numbers texts as they come."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self.all: list[str] = []
        """Every text, by id."""

    def intern(self, text: str) -> int:
        """The id of a text."""
        at = self._ids.setdefault(text, len(self.all))
        if at == len(self.all):
            self.all.append(text)
        return at

    def ids(self, texts: Sequence[str]) -> U32:
        """The ids of several texts."""
        return np.array([self.intern(text) for text in texts], np.uint32)
