"""Tables for a terminal: the first column is a name and gives way, numbers never do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from trnscope.report.text import printable, shorten

_GAP = "  "
_NAME_LEAST = 16
NOT_RECORDED = "-"
"""What a table shows where the trace holds no value. It never stands for zero."""


@dataclass(frozen=True)
class Column:
    """One column of numbers; ``head`` names the quantity and, where one is used, the unit."""

    head: str
    is_text: bool = False
    """Text columns are aligned left; numbers right."""


@dataclass(frozen=True)
class Table:
    """Rows of text under heads. Heads and cells are made printable here: callers pass raw names."""

    name_head: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    """Each row: the name, then one cell per column."""
    details: Sequence[Sequence[str]] = ()
    """For each row, lines to print under it (a stack, the shapes); empty for none at all."""

    def lines(self, width: int | None) -> Iterator[Text]:
        """The table within ``width`` cells (absent: names are kept whole)."""
        rows = [[printable(cell) for cell in row] for row in self.rows]
        heads = [printable(head) for head in (self.name_head, *(c.head for c in self.columns))]
        widths = [max(cell_len(row[at]) for row in [heads, *rows]) for at in range(len(heads))]
        widths[0] = self._name_width(widths, width)
        yield Text(self._line(heads, widths), style="bold")
        yield Text("─" * (sum(widths) + len(_GAP) * (len(widths) - 1)), style="dim")
        for at, row in enumerate(rows):
            yield Text(self._line(row, widths))
            yield from self._details(at, width)

    def _details(self, at: int, width: int | None) -> Iterator[Text]:
        for detail in self.details[at] if self.details else ():
            text = printable(detail)
            room = text if width is None else shorten(text, max(width - 4, _NAME_LEAST))
            yield Text(f"    {room}", style="dim")

    @staticmethod
    def _name_width(widths: list[int], width: int | None) -> int:
        if width is None:
            return widths[0]
        rest = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
        return min(widths[0], max(width - rest, _NAME_LEAST))

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        parts = [_pad(shorten(cells[0], widths[0]), widths[0], left=True)]
        for column, cell, size in zip(self.columns, cells[1:], widths[1:], strict=True):
            parts.append(_pad(cell, size, left=column.is_text))
        return _GAP.join(parts).rstrip()


def _pad(cell: str, width: int, *, left: bool) -> str:
    fill = " " * (width - cell_len(cell))
    return cell + fill if left else fill + cell
