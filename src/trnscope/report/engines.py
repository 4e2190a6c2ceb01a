"""Engines of a NeuronCore and the profiler's own figures, as parts of the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from trnscope.analysis.engines import EngineSummary
from trnscope.analysis.reported import ReportedFigures
from trnscope.model.units import format_bytes, format_ns, format_ratio
from trnscope.report.owners import Owners
from trnscope.report.table import Column, Table
from trnscope.report.text import plural, printable
from trnscope.report.view import View, cut_note, note

_CHOSEN = (
    ("mfu_estimated_ratio", "MFU"),
    ("hfu_estimated_ratio", "HFU"),
    ("mbu_estimated_ratio", "MBU"),
    ("total_time_ns", "total time"),
    ("total_exec_time_ns", "time of executions"),
    ("tensor_engine_active_time_ratio", "tensor engine active"),
    ("vector_engine_active_time_ratio", "vector engine active"),
    ("scalar_engine_active_time_ratio", "scalar engine active"),
    ("gpsimd_engine_active_time_ratio", "gpsimd engine active"),
    ("dma_active_time_ratio", "DMA active"),
    ("cc_op_active_time_ratio", "collectives active"),
    ("model_flops", "model FLOPs"),
    ("hbm_read_bytes", "read from HBM"),
    ("hbm_write_bytes", "written to HBM"),
    ("spill_save_bytes", "spilled"),
)
_SIDE_BY_SIDE = 3


def engine_lines(rows: Sequence[EngineSummary], view: View) -> Iterator[Text]:
    """One row an engine; nothing where no device was profiled."""
    if not rows:
        return
    owners = Owners.of(rows)
    several = len({(row.source, row.device) for row in rows}) > 1
    cells = [
        [
            f"{owners.prefix(row)}{row.device.label} {row.name}" if several else row.name,
            f"{row.num_instructions:,}",
            format_ns(row.busy_ns),
            format_ratio(row.busy_ratio),
            format_ns(row.sum_ns),
        ]
        for row in rows[: view.shown(len(rows))]
    ]
    columns = [Column("instructions"), Column("busy"), Column("of window"), Column("sum")]
    yield from Table("engine", columns, cells).lines(view.width)
    yield from cut_note(view, len(rows), "engine")
    yield note(
        f"of window: of the {format_ns(rows[0].window_ns)} in which programs ran"
        if len({row.window_ns for row in rows}) == 1
        else "of window: of the time in which programs ran on that device"
    )
    yield Text()


def reported_lines(blocks: Sequence[ReportedFigures], view: View) -> Iterator[Text]:
    """The profiler's own figures that say most; nothing where it gave none."""
    shown = blocks[:_SIDE_BY_SIDE]
    if not shown:
        return
    by_block = [dict(block.figures) for block in shown]
    keys = [(key, name) for key, name in _CHOSEN if any(key in figures for figures in by_block)]
    columns = [Column(printable(block.of) or "profile") for block in shown]
    cells = [[name, *(_value(key, figures.get(key)) for figures in by_block)] for key, name in keys]
    yield from Table("the profiler's figures", columns, cells).lines(view.width)
    left = len({key for block in blocks for key, _ in block.figures}) - len(keys)
    more = f"{plural(left, 'more figure')} of it in --json" if left > 0 else ""
    if len(blocks) > len(shown):
        more += f"{'; ' if more else ''}{len(blocks) - len(shown)} more blocks there"
    if more:
        yield note(more)
    yield Text()


def _value(key: str, value: int | float | None) -> str:
    if value is None:
        return "-"
    if key.endswith("_ratio"):
        return format_ratio(value)
    if key.endswith("_ns"):
        return format_ns(round(value))
    return format_bytes(round(value)) if key.endswith("_bytes") else f"{value:,.0f}"
