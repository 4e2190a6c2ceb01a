"""Two profiles side by side as text: the steps, what moved, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from trnscope.analysis.compare import CONFIDENCE, LEAST_STEPS, Comparison, TimeChange
from trnscope.model.units import format_bytes, format_ns
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.view import View, cut_note, note, title, warning

_WHAT = {
    "devices": "devices",
    "ranks": "number of ranks",
    "clock": "clock",
    "writer": "format of the traces",
    "shapes": "input shapes",
    "complete": "completeness",
}


def comparison_lines(result: Comparison, view: View) -> Iterator[Text]:
    """A sentence, what differs besides the times, then parts, ops, kernels and memory."""
    yield from title(view, "Comparison")
    yield Text(_sentence(result), style="bold")
    for one in result.differences:
        yield warning(f"Not the same {_WHAT[one.what]}: {one.before} before, {one.after} after.")
    yield from _table(
        "Parts of a mean step", "part", result.parts, View(view.width), with_calls=False
    )
    whose = "own device time" if result.on_device else "own CPU time"
    each = "per step" if result.per_step else "in all"
    yield from _table(f"Ops, {whose} {each}", "op", result.ops, view)
    yield from _table(f"Kernels, time {each}", "kernel", result.kernels, view)
    if result.peaks:
        yield Text()
        yield from title(View(), "Memory at the peak")
        rows = [
            [peak.device, format_bytes(peak.before_bytes), format_bytes(peak.after_bytes)]
            for peak in result.peaks
        ]
        yield from Table("device", [Column("before"), Column("after")], rows).lines(view.width)


def _sentence(result: Comparison) -> str:
    before, after, ratio = result.before, result.after, result.ratio
    if ratio is None:
        return "A side has no steps: the figures are sums over the whole profiles."
    faster = ratio.ratio < 1
    percent = f"{abs(1 - ratio.ratio):.1%}".replace("%", " %")
    text = (
        f"The median step went from {format_ns(before.median_ns)} ({before.num_steps} steps) to "
        f"{format_ns(after.median_ns)} ({after.num_steps} steps): {percent} "
        f"{'shorter' if faster else 'longer'}"
    )
    if ratio.low is None or ratio.high is None:
        return f"{text}. No interval: a side has fewer than {LEAST_STEPS} steps."
    span = f"{ratio.low:.3f} to {ratio.high:.3f}"
    unsure = ratio.low <= 1 <= ratio.high
    doubt = ", which may be none at all" if unsure else ""
    return f"{text}; {CONFIDENCE:.0%} of resampled ratios lie from {span}{doubt}."


def _table(
    heading: str,
    head: str,
    rows: Sequence[TimeChange],
    view: View,
    *,
    with_calls: bool = True,
) -> Iterator[Text]:
    moved = [row for row in rows if row.change_ns != 0 or not with_calls]
    if not moved:
        return
    yield Text()
    yield from title(View(), heading)
    columns = [Column("before"), Column("after"), Column("change")]
    if with_calls:
        columns += [Column("calls before"), Column("calls after")]
    shown = moved[: view.shown(len(moved))]
    yield from Table(head, columns, [_row(row, with_calls) for row in shown]).lines(view.width)
    yield from cut_note(view, len(moved), "row")
    alone = [row for row in moved if row.before_ns is None or row.after_ns is None]
    if with_calls and alone:
        gone = sum(row.before_ns or 0 for row in alone)
        new = sum(row.after_ns or 0 for row in alone)
        yield note(
            f"Names on one side only: {format_ns(gone)} before, {format_ns(new)} after; they may "
            "be renamed or fused."
        )


def _row(row: TimeChange, with_calls: bool) -> list[str]:
    sign = "+" if row.change_ns > 0 else ""
    name = row.name.replace("_", " ") if not with_calls else row.name
    cells = [name, format_ns(row.before_ns), format_ns(row.after_ns)]
    cells.append(f"{sign}{format_ns(row.change_ns)}")
    if with_calls:
        cells += [_calls(row.calls_before), _calls(row.calls_after)]
    return cells


def _calls(calls: float | None) -> str:
    return NOT_RECORDED if calls is None else f"{calls:,.4g}"
