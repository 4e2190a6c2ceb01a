"""How figures of several files are told apart: by rank where each states its own, else by file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from rich.text import Text

from trnscope.report.view import note


class Owned(Protocol):
    """A figure of one file."""

    @property
    def source(self) -> int:
        """The file's place in the list of files."""

    @property
    def rank(self) -> int | None:
        """The rank that the file states."""


@dataclass(frozen=True)
class Owners:
    """The files behind some rows of a table."""

    ranks: Mapping[int, int | None]
    """Each file's rank, by its place in the list of files."""

    @staticmethod
    def of(rows: Iterable[Owned]) -> Owners:
        """The owners of these rows."""
        return Owners({row.source: row.rank for row in rows})

    @property
    def are_several(self) -> bool:
        """Whether rows must say whose they are."""
        return len(self.ranks) > 1

    @property
    def by_rank(self) -> bool:
        """Whether ranks tell the files apart: each states one, and no two the same."""
        return None not in self.ranks.values() and len(set(self.ranks.values())) == len(self.ranks)

    @property
    def head(self) -> str:
        """The head of a column of :meth:`cell`."""
        return "rank" if self.by_rank else "file"

    def cell(self, row: Owned) -> str:
        """``3``: the rank, or the place in the list of files."""
        return str(row.rank if self.by_rank else row.source + 1)

    def text(self, row: Owned) -> str:
        """``rank 3``, or ``file 1``."""
        return f"{self.head} {self.cell(row)}"

    def prefix(self, row: Owned) -> str:
        """The same before a name, where there are several."""
        return f"{self.text(row)} " if self.are_several else ""

    def notes(self) -> Iterator[Text]:
        """What a file's number means, where one is shown."""
        if self.are_several and not self.by_rank:
            yield note("file: its place in the list of files; ranks do not tell the files apart")
