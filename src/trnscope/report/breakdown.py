"""Where each step's time went, as a table of parts that add up to the step."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.breakdown import (
    WHOLE_SPAN,
    Breakdown,
    BreakdownBasis,
    BreakdownPart,
    BreakdownRow,
)
from trnscope.model.units import format_ns, format_ratio, ratio
from trnscope.report.owners import Owners
from trnscope.report.table import Column, Table
from trnscope.report.view import View, cut_note, note, title

_BASIS = {
    BreakdownBasis.DEVICE: "by what the device did or waited for",
    BreakdownBasis.HOST: "by what its host thread did (no device work recorded)",
}


def part_name(key: str) -> str:
    """``exposed_memcpy`` → ``exposed copies``."""
    return key.replace("memcpy", "copies").replace("_", " ")


def breakdown_lines(result: Breakdown, view: View) -> Iterator[Text]:
    """The split of all steps together, then of each."""
    if result.basis is None:
        yield from title(view, "Breakdown")
        yield note("Nothing to split: the trace holds no slices.")
        return
    what = "The whole trace (no steps were found)" if _is_whole(result) else "Each step"
    yield from title(view, f"{what}, {_BASIS[result.basis]}")
    yield from _totals(result).lines(view.width)
    if len(result.rows) > 1:
        yield Text()
        yield from _rows(result, view).lines(view.width)
        yield from cut_note(view, len(result.rows), "row")
        yield from Owners.of(result.rows).notes()
    yield note("Parts of a row add up to its duration; shares are of that duration.")


def _is_whole(result: Breakdown) -> bool:
    return all(row.name == WHOLE_SPAN for row in result.rows)


def _totals(result: Breakdown) -> Table:
    """All rows added, one part a line, the largest first."""
    whole = sum(row.duration_ns for row in result.rows)
    count = len(result.rows)
    parts = [p for p in result.totals() if p.duration_ns or result.basis is BreakdownBasis.DEVICE]
    rows = [
        [
            part_name(part.key),
            format_ns(part.duration_ns),
            format_ns(part.duration_ns // count),
            format_ratio(ratio(part.duration_ns, whole)),
        ]
        for part in sorted(parts, key=_largest_first)
    ]
    what = result.rows[0].name if count == 1 else "step"
    rows.append([what, format_ns(whole), format_ns(whole // count), format_ratio(1.0)])
    return Table("part", [Column("total"), Column("mean"), Column("of step time")], rows)


def _largest_first(part: BreakdownPart) -> int:
    return -part.duration_ns


def _rows(result: Breakdown, view: View) -> Table:
    keys = [part.key for part in result.totals() if part.duration_ns]
    owners = Owners.of(result.rows)
    with_device = len({row.device for row in result.rows}) > 1
    columns = [Column(owners.head)] if owners.are_several else []
    columns += [Column("device")] if with_device else []
    columns += [Column("duration"), *(Column(part_name(key)) for key in keys)]
    shown = result.rows[: view.shown(len(result.rows))]
    return Table("step", columns, [_row(row, keys, owners, with_device) for row in shown])


def _row(row: BreakdownRow, keys: list[str], owners: Owners, with_device: bool) -> list[str]:
    parts = {part.key: part.duration_ns for part in row.parts}
    cells = [row.name]
    if owners.are_several:
        cells.append(owners.cell(row))
    if with_device:
        cells.append("host" if row.device is None else row.device.label)
    cells.append(format_ns(row.duration_ns))
    return cells + [format_ns(parts.get(key)) for key in keys]
