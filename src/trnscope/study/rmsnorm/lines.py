"""The RMSNorm study for a terminal: torch's own tables, then all ways side by side."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.model.units import format_bytes, format_ns
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.text import printable
from trnscope.report.view import View, note, title
from trnscope.study.rmsnorm.plan import NUM_CALLS, ROWS, WIDTH
from trnscope.study.rmsnorm.run import MeasuredWay, NormStudy


def study_lines(study: NormStudy, view: View) -> Iterator[Text]:
    """The three tables, the comparison, and what it says."""
    for way in study.ways:
        yield from title(view, f"torch's key_averages(), {NUM_CALLS} calls, {way.way.value}")
        yield from (Text(printable(line.rstrip())) for line in way.table.splitlines() if line)
        yield Text()
    yield from title(view, f"One call of RMSNorm on {study.device}, {ROWS} x {WIDTH} float32")
    yield from _table(study).lines(view.width)
    yield note(_clock_note(study))
    yield from _sentence(study)


def _table(study: NormStudy) -> Table:
    columns = [Column(head) for head in ("executions", "HBM traffic", "device", "host", "call")]
    columns.append(Column("largest difference"))
    return Table("way", columns, [_row(way) for way in study.ways])


def _row(way: MeasuredWay) -> list[str]:
    return [
        way.way.value,
        NOT_RECORDED if way.executions is None else f"{way.executions:g}",
        NOT_RECORDED if way.hbm_bytes is None else format_bytes(way.hbm_bytes),
        NOT_RECORDED if way.device_ns is None else format_ns(way.device_ns),
        format_ns(way.host_ns),
        format_ns(way.call_ns),
        f"{way.max_difference:.1e}",
    ]


def _clock_note(study: NormStudy) -> str:
    if study.simulated_by is None:
        return "host: in ops and runtime calls, without waiting; call: from one to the next."
    return (
        "All times in this table are virtual: host, device and call come from the hardware model. "
        "In torch's tables above only the NEURON columns do; their CPU columns are this machine's."
    )


def _sentence(study: NormStudy) -> Iterator[Text]:
    slowest = max(study.ways, key=lambda way: way.call_ns)
    fastest = min(study.ways, key=lambda way: way.call_ns)
    if fastest.call_ns == 0:
        return
    times = slowest.call_ns / fastest.call_ns
    how = ""
    if slowest.executions is not None and fastest.executions is not None:
        how = f", with {_executions(fastest.executions)} a call instead of {slowest.executions:g}"
    simulated = " (simulated)" if study.simulated_by is not None else ""
    yield Text(
        f"{fastest.way.value} is the fastest: {times:.1f} times as fast as "
        f"{slowest.way.value}{how}{simulated}.",
        style="bold",
    )


def _executions(count: float) -> str:
    return "one execution" if count == 1 else f"{count:g} executions"
