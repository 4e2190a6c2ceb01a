"""How much communication and copying hides behind compute, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.overlap import DeviceOverlap, Overlap, StreamOverlap
from trnscope.model.units import format_ns, format_ratio
from trnscope.report.steps import rank_text
from trnscope.report.summary import NO_DEVICE
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title


def overlap_lines(result: Overlap, view: View) -> Iterator[Text]:
    """Overlap by device, then by pair of streams where a device has several."""
    yield from title(view, "Overlap with compute")
    if not result.devices:
        yield note(NO_DEVICE)
        return
    rows = [[_name(device, result), *_cells(device)] for device in result.devices]
    columns = [Column(head) for head in ("comm.", "overlapped", "%", "exposed")]
    columns += [Column(head) for head in ("copies", "overlapped", "%", "exposed")]
    yield from Table("device", columns, rows[: view.shown(len(rows))]).lines(view.width)
    yield from cut_note(view, len(rows), "device")
    yield note("overlapped: compute runs beside it; %: overlapped of all communication (copies)")
    yield from _streams(result, view)


def _name(device: DeviceOverlap, result: Overlap) -> str:
    """The device, with its rank where there are several."""
    if len({each.source for each in result.devices}) == 1:
        return device.device.label
    return f"rank {rank_text(device.rank, device.source)} {device.device.label}"


def _cells(device: DeviceOverlap) -> list[str]:
    return [
        format_ns(device.communication_ns),
        format_ns(device.overlapped_communication_ns),
        format_ratio(device.communication_overlap_ratio),
        format_ns(device.exposed_communication_ns),
        format_ns(device.memcpy_ns),
        format_ns(device.overlapped_memcpy_ns),
        format_ratio(device.memcpy_overlap_ratio),
        format_ns(device.exposed_memcpy_ns),
    ]


def _streams(result: Overlap, view: View) -> Iterator[Text]:
    rows = [
        [_name(device, result), *_pair(pair)]
        for device in result.devices
        for pair in device.streams
        if len(device.streams) > 1
    ]
    if not rows:
        return
    yield Text()
    columns = [Column("stream"), Column("and"), Column("both busy")]
    yield from Table("device", columns, rows[: view.shown(len(rows))]).lines(view.width)
    yield from cut_note(view, len(rows), "pair of streams", "pairs of streams")
    left_out = sum(device.num_streams_left_out for device in result.devices)
    if left_out:
        yield note(f"less busy, so in no pair: {plural(left_out, 'stream')}")


def _pair(pair: StreamOverlap) -> list[str]:
    same = pair.stream == pair.other
    other = "itself" if same else _stream(pair.other)
    return [_stream(pair.stream), other, format_ns(pair.both_busy_ns)]


def _stream(stream: int | None) -> str:
    return NOT_RECORDED if stream is None else str(stream)
