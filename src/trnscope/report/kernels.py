"""Device work by kernel, device or stream as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.kernels import KernelRow, KernelsTable
from trnscope.model.units import format_ns, format_ratio
from trnscope.report.summary import NO_DEVICE
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.view import View, cut_note, note, title

_COLUMNS = (
    Column("kind", is_text=True),
    Column("count"),
    Column("sum"),
    Column("%"),
    Column("mean"),
    Column("longest"),
)


def kernels_lines(result: KernelsTable, view: View) -> Iterator[Text]:
    """Rows by summed time, and what the shares are of."""
    yield from title(view, f"Device work by {result.group_by.value}")
    if not result.has_device:
        yield note(NO_DEVICE)
        return
    rows = [_row(row) for row in result.rows[: view.shown(len(result.rows))]]
    yield from Table(result.group_by.value, _COLUMNS, rows).lines(view.width)
    yield from cut_note(view, len(result.rows), "row")
    yield note(f"%: of the {format_ns(result.sum_ns)} of all device work, added")
    yield note(f"Devices were busy for {format_ns(result.busy_ns)}: overlapping work counted once")
    yield note("Percentiles, streams and launch configurations of each row: --json")


def _row(row: KernelRow) -> list[str]:
    share = row.share_of_sum_ratio
    return [
        row.name,
        row.kind,
        f"{row.count:,}",
        format_ns(row.sum_ns),
        NOT_RECORDED if share is None else format_ratio(share),
        format_ns(row.mean_ns),
        format_ns(row.max_ns),
    ]
