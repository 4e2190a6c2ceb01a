"""How much communication and copying hides behind compute, as tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.text import Text

from trnscope.analysis.overlap import DeviceOverlap, Overlap, StreamOverlap
from trnscope.model.units import format_ns, format_ratio
from trnscope.report.owners import Owners
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
    owners = Owners.of(result.devices)
    yield from _devices(result, view, owners)
    yield from _streams(result, view, owners)
    yield from owners.notes()


def _devices(result: Overlap, view: View, owners: Owners) -> Iterator[Text]:
    """Those with most exposed time first; those with nothing to overlap are only counted."""
    devices = [device for device in result.devices if device.communication_ns or device.memcpy_ns]
    devices.sort(key=lambda device: -device.exposed_communication_ns - device.exposed_memcpy_ns)
    kinds = [kind for kind in _KINDS if any(kind.total(device) for device in devices)]
    rows = [
        [_name(device, owners), *(cell for kind in kinds for cell in kind.cells(device))]
        for device in devices[: view.shown(len(devices))]
    ]
    columns = [Column(head) for kind in kinds for head in kind.heads()]
    if rows:
        yield from Table("device", columns, rows).lines(view.width)
        yield from cut_note(view, len(devices), "device")
        yield note("overlapped: compute runs beside it; %: overlapped of all of its kind")
    left_out = len(result.devices) - len(devices)
    if left_out:
        yield note(f"{plural(left_out, 'device')} with neither communication nor copies left out")
    elif len(kinds) == 1:
        yield note(f"No device had any {kinds[0].other}.")


def _name(device: DeviceOverlap, owners: Owners) -> str:
    """The device, with its rank where there are several."""
    return owners.prefix(device) + device.device.label


@dataclass(frozen=True)
class _Kind:
    """The columns of one kind of work; left out where no device did any."""

    head: str
    other: str
    """What the trace lacks where these are the only columns."""
    total: Callable[[DeviceOverlap], int]
    overlapped: Callable[[DeviceOverlap], int]
    share: Callable[[DeviceOverlap], float | None]

    def heads(self) -> list[str]:
        return [self.head, "overlapped", "%", "exposed"]

    def cells(self, device: DeviceOverlap) -> list[str]:
        total, overlapped = self.total(device), self.overlapped(device)
        times = format_ns(total), format_ns(overlapped), format_ns(total - overlapped)
        return [times[0], times[1], format_ratio(self.share(device)), times[2]]


_KINDS = (
    _Kind(
        "comm.",
        "copies",
        lambda device: device.communication_ns,
        lambda device: device.overlapped_communication_ns,
        lambda device: device.communication_overlap_ratio,
    ),
    _Kind(
        "copies",
        "communication",
        lambda device: device.memcpy_ns,
        lambda device: device.overlapped_memcpy_ns,
        lambda device: device.memcpy_overlap_ratio,
    ),
)


def _streams(result: Overlap, view: View, owners: Owners) -> Iterator[Text]:
    """Pairs of streams by the time that both are busy; pairs that never are, are only counted."""
    pairs = [pair for device in result.devices for pair in _pairs(device)]
    if not pairs:
        return
    yield Text()
    both = sorted((pair for pair in pairs if pair.both_ns), key=lambda pair: -pair.both_ns)
    if both:
        rows = [_pair_row(pair, owners) for pair in both[: view.shown(len(both))]]
        columns = [Column(head) for head in ("stream", "busy", "and stream", "busy", "both busy")]
        yield from Table("device", columns, rows).lines(view.width)
        yield from cut_note(view, len(both), "pair of streams", "pairs of streams")
    never = len(pairs) - len(both)
    if never:
        yield note(f"{plural(never, 'pair')} of streams never busy at the same time left out")
    left_out = sum(device.num_streams_left_out for device in result.devices)
    if left_out:
        yield note(f"less busy, so in no pair: {plural(left_out, 'stream')}")


@dataclass(frozen=True)
class _Pair:
    """Two streams of a device, each with its busy time, and the time that both are busy."""

    device: DeviceOverlap
    first: StreamOverlap
    second: StreamOverlap
    both_ns: int


def _pairs(device: DeviceOverlap) -> Iterator[_Pair]:
    """Streams are told apart by their place: two may carry the same number, or none."""
    num_streams = (math.isqrt(8 * len(device.streams) + 1) - 1) // 2
    places = itertools.combinations_with_replacement(range(num_streams), 2)
    by_place = dict(zip(places, device.streams, strict=True))
    for (first, second), pair in by_place.items():
        if first != second:
            busy = by_place[first, first], by_place[second, second]
            yield _Pair(device, *busy, pair.both_busy_ns)


def _pair_row(pair: _Pair, owners: Owners) -> list[str]:
    return [
        _name(pair.device, owners),
        _stream(pair.first.stream),
        format_ns(pair.first.both_busy_ns),
        _stream(pair.second.stream),
        format_ns(pair.second.both_busy_ns),
        format_ns(pair.both_ns),
    ]


def _stream(stream: int | None) -> str:
    return NOT_RECORDED if stream is None else str(stream)
