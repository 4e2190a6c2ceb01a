"""Memory over time: levels, the peak and what was held then, as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.memory import Blocks, DeviceMemory, MemoryCounter, MemoryReport, Reserved
from trnscope.model.units import format_bytes, format_ratio
from trnscope.report.owners import Owners
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, cut_note, note, title

NO_MEMORY = (
    "No allocator events recorded: memory is unknown, not zero. Record them with "
    "trnscope run --memory, or profile(profile_memory=True)."
)
_OUTSIDE = "(outside of every op)"


def memory_lines(result: MemoryReport, view: View) -> Iterator[Text]:
    """Each device's levels, then the ops that held memory at its peak."""
    yield from title(view, "Memory")
    if not result.devices:
        yield note(NO_MEMORY)
    owners = Owners.of(result.devices)
    for device in result.devices:
        yield from _device(device, view, owners)
    yield from owners.notes()
    if result.counters:
        yield Text()
        yield from _counters(result.counters, view)


def _device(device: DeviceMemory, view: View, owners: Owners) -> Iterator[Text]:
    yield Text()
    owner = f", {owners.text(device)}" if owners.are_several else ""
    at_least = "" if device.is_start_exact else "at least "
    rows = [
        ["at the start", at_least + format_bytes(device.start_bytes)],
        ["at the peak", at_least + format_bytes(device.peak_bytes)],
        ["at the end", at_least + format_bytes(device.end_bytes)],
        ["end less start", format_bytes(device.net_bytes)],
        *_reserved(device.reserved),
    ]
    yield from Table(f"allocated on {device.device}{owner}", [Column("bytes")], rows).lines(
        view.width
    )
    yield note(
        f"{plural(device.num_allocations, 'allocation')}, {plural(device.num_frees, 'free')}; "
        f"the peak was reached in {device.peak_op or _OUTSIDE}"
    )
    if not device.is_start_exact:
        yield note("The start is what the frees of older blocks explain; levels can be higher.")
    yield from _blocks("allocated before the window and freed in it", device.freed_from_before)
    yield from _blocks("allocated in the window and not freed in it", device.never_freed)
    yield Text()
    yield from _ops(device, view)


def _reserved(reserved: Reserved | None) -> list[list[str]]:
    """What the caching allocator held; no rows where that was not recorded."""
    if reserved is None:
        return []
    return [
        ["reserved at most", format_bytes(reserved.peak_bytes)],
        ["reserved when most was allocated", format_bytes(reserved.at_peak_bytes)],
        ["of it unused", format_ratio(reserved.unused_at_peak_ratio)],
    ]


def _blocks(what: str, blocks: Blocks) -> Iterator[Text]:
    if blocks.count:
        yield note(f"{plural(blocks.count, 'block')} {what}: {format_bytes(blocks.size_bytes)}")


def _ops(device: DeviceMemory, view: View) -> Iterator[Text]:
    rows = [
        [
            op.name or _OUTSIDE,
            format_bytes(op.held_at_peak_bytes),
            f"{op.num_allocations:,}",
            format_bytes(op.allocated_bytes),
            f"{op.num_frees:,}",
            format_bytes(op.freed_bytes),
            format_bytes(op.net_bytes),
        ]
        for op in device.ops[: view.shown(len(device.ops))]
    ]
    heads = ("held at peak", "allocations", "allocated", "frees", "freed", "net")
    yield from Table("op", [Column(head) for head in heads], rows).lines(view.width)
    yield from cut_note(view, len(device.ops), "op")


def _counters(counters: tuple[MemoryCounter, ...], view: View) -> Iterator[Text]:
    rows = [
        [
            counter.name,
            f"{counter.num_samples:,}",
            _number(counter.min_value),
            _number(counter.max_value),
            _number(counter.last_value),
        ]
        for counter in counters[: view.shown(len(counters))]
    ]
    heads = ("samples", "least", "most", "last")
    yield from Table("counter", [Column(head) for head in heads], rows).lines(view.width)
    yield from cut_note(view, len(counters), "counter")
    yield note("Counters are in the unit of the tool that wrote them.")


def _number(value: float) -> str:
    return NOT_RECORDED if value != value else f"{value:,.6g}"
