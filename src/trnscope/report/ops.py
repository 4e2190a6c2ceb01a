"""Time by op as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.text import Text

from trnscope.analysis.op_groups import GroupBy
from trnscope.analysis.ops import OpRow, OpsTable
from trnscope.model.units import format_ns, format_ratio, ratio
from trnscope.report.frames import shown_frames
from trnscope.report.table import Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title, warning

_FRAMES_SHOWN = 8

_ORDERS: dict[str, Callable[[OpRow], tuple[int, str]]] = {
    "self-device": lambda row: (-(row.self_device_ns or 0), row.name),
    "device": lambda row: (-(row.device_total_ns or 0), row.name),
    "self-cpu": lambda row: (-row.self_cpu_ns, row.name),
    "cpu": lambda row: (-row.cpu_total_ns, row.name),
    "calls": lambda row: (-row.calls, row.name),
    "name": lambda row: (0, row.name),
}


def sorted_ops(result: OpsTable, order: str) -> OpsTable:
    """The same rows in another order: the largest first, names by alphabet."""
    return replace(result, rows=tuple(sorted(result.rows, key=_ORDERS[order])))


def ops_lines(result: OpsTable, view: View) -> Iterator[Text]:
    """Rows in the order of the result, with what their shares are of."""
    yield from title(view, f"Ops by {result.group_by.value}")
    if not result.rows:
        yield note("No ops recorded.")
        return
    yield from _table(result, view).lines(view.width)
    yield from cut_note(view, len(result.rows), "row")
    if result.group_by is GroupBy.SHAPE and all(row.input_shapes is None for row in result.rows):
        yield warning(
            "Input shapes were not recorded, so rows are by name alone; record with trnscope run "
            "--shapes, or record_shapes=True in torch.profiler."
        )
    yield note(
        f"self: without the calls inside; CPU %: of the {format_ns(result.self_cpu_ns)} "
        "that all rows took themselves"
    )
    if any(row.cpu_total_ns > result.self_cpu_ns for row in result.rows):
        yield note("CPU total: a call within one of the same name counts again, as torch counts it")
    yield from _device_notes(result)


def _table(result: OpsTable, view: View) -> Table:
    columns = [Column("calls"), Column("self CPU"), Column("CPU %"), Column("CPU total")]
    if result.has_device:
        columns += [Column("self device"), Column("device %"), Column("device total")]
    shown = result.rows[: view.shown(len(result.rows))]
    details = [list(_details(row)) for row in shown]
    return Table("op", columns, [_row(row, result) for row in shown], details)


def _row(row: OpRow, result: OpsTable) -> list[str]:
    cells = [
        f"{row.name} (annotation)" if row.key.is_annotation else row.name,
        f"{row.calls:,}",
        format_ns(row.self_cpu_ns),
        format_ratio(ratio(row.self_cpu_ns, result.self_cpu_ns)),
        format_ns(row.cpu_total_ns),
    ]
    if result.has_device:
        cells += [
            format_ns(row.self_device_ns),
            format_ratio(_of_device(row.self_device_ns, result)),
            format_ns(row.device_total_ns),
        ]
    return cells


def _of_device(part: int | None, result: OpsTable) -> float | None:
    if part is None or result.device_sum_ns is None:
        return None
    return ratio(part, result.device_sum_ns)


def _details(row: OpRow) -> Iterator[str]:
    if row.key.module is not None:
        yield row.key.module
    if row.input_shapes is not None:
        yield row.input_shapes
    frames, num_hidden = shown_frames(row.key.stack or (), _FRAMES_SHOWN)
    yield from frames
    if num_hidden:
        yield f"... {plural(num_hidden, 'more frame')}"


def _device_notes(result: OpsTable) -> Iterator[Text]:
    if result.device_sum_ns is None:
        yield note("No device work recorded, so no device columns.")
        return
    yield note(f"device %: of the {format_ns(result.device_sum_ns)} of all device work, added")
    if result.unattributed_device_ns:
        share = format_ratio(ratio(result.unattributed_device_ns, result.device_sum_ns))
        yield note(
            f"Not charged to any op: {format_ns(result.unattributed_device_ns)} ({share}) of "
            "device work whose launch or op is not in the trace"
        )
