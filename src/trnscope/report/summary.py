"""What is in a profile and where its time went, on one page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from trnscope.analysis.devices import DeviceSummary
from trnscope.analysis.summary import Summary
from trnscope.model.source import TraceSource
from trnscope.model.units import format_ns, format_ratio, ratio
from trnscope.report.engines import engine_lines, reported_lines
from trnscope.report.health import health_line
from trnscope.report.owners import Owners
from trnscope.report.steps import NO_STEPS, steps_table
from trnscope.report.table import Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title

NO_DEVICE = "No device work recorded: device time is unknown, not zero."


def summary_lines(result: Summary, view: View) -> Iterator[Text]:
    """Files, health, devices and steps."""
    yield from title(view, "Summary")
    yield from _sources(result.sources, view)
    over = "" if len(result.sources) == 1 else ", first start to last end over all files"
    yield Text(f"Span of all work{over}: {format_ns(result.span_ns)}")
    yield health_line(result.health)
    yield Text()
    yield from _devices(result, view)
    yield Text()
    yield from engine_lines(result.engines, view)
    yield from reported_lines(result.reported, view)
    yield from _steps(result, view)


def _sources(sources: tuple[TraceSource, ...], view: View) -> Iterator[Text]:
    names = _names(sources)
    rows = [
        [name, source.format, _rank(source), f"{source.num_events:,}"]
        for name, source in zip(names, sources, strict=True)
    ]
    columns = [Column("format", is_text=True), Column("rank"), Column("events")]
    yield from Table("file", columns, rows[: view.shown(len(rows))]).lines(view.width)
    yield from cut_note(view, len(rows), "file")


def _names(sources: tuple[TraceSource, ...]) -> list[str]:
    """The paths; of several files numbered, and without the folder that all of them are in."""
    if len(sources) == 1:
        return [sources[0].path]
    paths = [os.path.abspath(source.path) for source in sources]  # noqa: PTH100
    folder = os.path.commonpath([Path(path).parent for path in paths])
    return [f"{at}: {Path(path).relative_to(folder)}" for at, path in enumerate(paths, 1)]


def _rank(source: TraceSource) -> str:
    if source.rank is None:
        return "-"
    return str(source.rank) if source.world_size is None else f"{source.rank}/{source.world_size}"


def _devices(result: Summary, view: View) -> Iterator[Text]:
    if not result.devices:
        yield note(NO_DEVICE)
        return
    owners = Owners.of(result.devices)
    if len(result.devices) <= _SIDE_BY_SIDE:
        yield from _side_by_side(result.devices, owners).lines(view.width)
    else:
        yield from _one_a_row(result.devices, view, owners).lines(view.width)
        yield from cut_note(view, len(result.devices), "device")
    yield from owners.notes()
    yield note(
        "busy: at least one piece of device work runs; idle: the rest between the first and the "
        "last of it"
    )
    yield note("sum: durations added; work that runs at the same time counts several times")
    yield note("exposed: no compute runs beside it; unlinked: its launch is not in the trace")


def _side_by_side(devices: tuple[DeviceSummary, ...], owners: Owners) -> Table:
    """Quantities down, devices across: fits any terminal while there are few devices."""
    cells = [_device_cells(device) for device in devices]
    rows = [[head, *values] for head, *values in zip(_DEVICE_HEADS, *cells, strict=True)]
    return Table("device", [Column(_device_name(device, owners)) for device in devices], rows)


def _one_a_row(devices: tuple[DeviceSummary, ...], view: View, owners: Owners) -> Table:
    rows = [
        [_device_name(device, owners), *_device_cells(device)]
        for device in devices[: view.shown(len(devices))]
    ]
    return Table("device", [Column(head) for head in _DEVICE_HEADS], rows)


_SIDE_BY_SIDE = 3
_DEVICE_HEADS = (
    "kernels",
    "busy",
    "of busy + idle",
    "idle",
    "sum",
    "compute",
    "communication",
    "exposed comm.",
    "copies",
    "exposed copies",
    "unlinked",
)


def _device_name(device: DeviceSummary, owners: Owners) -> str:
    name = device.device.label + (" (simulated)" if device.device.simulated else "")
    return owners.prefix(device) + name


def _device_cells(device: DeviceSummary) -> list[str]:
    """The cells under (or beside) :data:`_DEVICE_HEADS`."""
    return [
        f"{device.num_kernels:,}",
        format_ns(device.busy_ns),
        format_ratio(ratio(device.busy_ns, device.busy_ns + device.idle_ns)),
        format_ns(device.idle_ns),
        format_ns(device.sum_ns),
        format_ns(device.compute_ns),
        format_ns(device.communication_ns),
        format_ns(device.exposed_communication_ns),
        format_ns(device.memcpy_ns),
        format_ns(device.exposed_memcpy_ns),
        format_ns(device.unlinked_ns),
    ]


def _steps(result: Summary, view: View) -> Iterator[Text]:
    if not result.steps:
        yield note(NO_STEPS)
        return
    yield from steps_table(result.steps, view).lines(view.width)
    yield from cut_note(view, len(result.steps), "step")
    total = sum(step.duration_ns for step in result.steps)
    mean = format_ns(total // len(result.steps))
    yield note(f"{plural(len(result.steps), 'step')}, {mean} each on average")
