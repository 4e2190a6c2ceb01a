"""Tables for a terminal: the first column is a name and gives way, numbers never do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from trnscope.report.text import printable, shorten, shorten_name

_GAP = "  "
_NAME_LEAST = 28
"""Cells that a name gets beside its numbers; where there are fewer, it gets a line of its own."""
NOT_RECORDED = "-"
"""What a table shows where the trace holds no value. It never stands for zero."""

Cells = Sequence[str]


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
    rows: Sequence[Cells]
    """Each row: the name, then one cell per column."""
    details: Sequence[Sequence[str]] = ()
    """For each row, lines to print under it (a stack, the shapes); empty for none at all."""

    def lines(self, width: int | None) -> Iterator[Text]:
        """The table within ``width`` cells (absent: names are kept whole).

        Where names would get too little room, heads are broken into several lines, and where
        that is not enough, each name stands on a line of its own above its numbers.
        """
        heads = [printable(head) for head in (self.name_head, *(c.head for c in self.columns))]
        rows = [[printable(cell) for cell in row] for row in self.rows]
        layout = _choose_layout(heads, rows, width)
        is_text = [True, *(column.is_text for column in self.columns)]
        for line in layout.heads(heads, is_text):
            yield Text(line, style="bold")
        yield Text("─" * layout.width, style="dim")
        for at, row in enumerate(rows):
            for line in layout.row(row, is_text):
                yield Text(line)
            yield from self._details(at, width)

    def _details(self, at: int, width: int | None) -> Iterator[Text]:
        for detail in self.details[at] if self.details else ():
            text = printable(detail)
            room = text if width is None else shorten(text, max(width - 4, _NAME_LEAST))
            yield Text(f"    {room}", style="dim")


@dataclass(frozen=True)
class _SideBySide:
    """Each row on one line; a head may take several."""

    widths: Sequence[int]

    @property
    def width(self) -> int:
        return _sum(self.widths)

    def heads(self, heads: Cells, is_text: Sequence[bool]) -> Iterator[str]:
        broken = [_broken(head, size) for head, size in zip(heads, self.widths, strict=True)]
        height = max(map(len, broken))
        for cells in zip(*([""] * (height - len(lines)) + lines for lines in broken), strict=True):
            yield _line(cells, self.widths, is_text)

    def row(self, row: Cells, is_text: Sequence[bool]) -> Iterator[str]:
        name = shorten_name(row[0], self.widths[0])
        yield _line([name, *row[1:]], self.widths, is_text)


@dataclass(frozen=True)
class _Stacked:
    """Each name on a line of its own, its numbers on as many lines below as they need."""

    width: int
    grid: Sequence[int]
    """Widths of the numbers that stand side by side."""

    def heads(self, heads: Cells, is_text: Sequence[bool]) -> Iterator[str]:
        return self.row(heads, is_text)

    def row(self, row: Cells, is_text: Sequence[bool]) -> Iterator[str]:
        yield shorten_name(row[0], self.width)
        size = len(self.grid)
        for at in range(1, len(row), size):
            cells = row[at : at + size]
            yield _GAP + _line(cells, self.grid[: len(cells)], is_text[at : at + size])


def _choose_layout(
    heads: Cells, rows: Sequence[Cells], width: int | None
) -> _SideBySide | _Stacked:
    """The first layout in which names have room."""
    longest = [max((cell_len(row[at]) for row in rows), default=0) for at in range(len(heads))]
    whole = [max(size, cell_len(head)) for size, head in zip(longest, heads, strict=True)]
    if width is None:
        return _SideBySide(whole)
    words = [max(map(cell_len, head.split(" "))) for head in heads]
    broken = [max(pair) for pair in zip(longest, words, strict=True)]
    for sizes in (whole, [whole[0], *broken[1:]]):
        room = width - _sum([0, *sizes[1:]])
        if room >= min(sizes[0], _NAME_LEAST):
            return _SideBySide([min(sizes[0], room), *sizes[1:]])
    grid = _grid(whole[1:], width - len(_GAP))
    return _Stacked(min(width, max(whole[0], len(_GAP) + _sum(grid))), grid)


def _grid(widths: Sequence[int], room: int) -> list[int]:
    """Widths of the columns that stand side by side: as few lines as fit, evenly filled."""
    for num_lines in range(1, len(widths) + 1):
        size = -(-len(widths) // num_lines)
        grid = [max(widths[at::size]) for at in range(size)]
        if _sum(grid) <= room:
            return grid
    return [max(widths, default=0)]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _broken(head: str, width: int) -> list[str]:
    """The head in lines of at most ``width`` cells, broken at spaces."""
    lines: list[str] = []
    for word in head.split(" "):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shorten(word, width))
    return lines


def _line(cells: Cells, widths: Sequence[int], is_text: Sequence[bool]) -> str:
    columns = zip(cells, widths, is_text, strict=True)
    return _GAP.join(_pad(cell, size, left=left) for cell, size, left in columns).rstrip()


def _pad(cell: str, width: int, *, left: bool) -> str:
    fill = " " * (width - cell_len(cell))
    return cell + fill if left else fill + cell
