"""The fastest honest reader that msgspec allows: decode typed events, add up, print the answer.

Three ways, each a whole process: ``whole`` decodes the mapped file in one call, ``windows``
cuts it between events and decodes about 8 MB at a time, ``processes`` does the windows on every
core. Fields that the answer does not need are skipped by msgspec itself. The benchmark compares
with whichever is fastest at that size.
"""

from __future__ import annotations

import gc
import json
import mmap
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

WINDOW_BYTES = 8 << 20
OPENING = b'"traceEvents": ['
LAYOUTS = ((b"\n  },\n  {", b"\n  ],"), (b'},\n{"ph"', b"\n],"))
"""What separates two events and what ends the list: torch's C++ writer, its Python writer."""

Totals = dict[tuple[str, str], tuple[int, float]]


class Event(msgspec.Struct, gc=False):
    """What the answer needs of an event."""

    ph: str
    name: str = ""
    cat: str = ""
    dur: float = 0.0


class Document(msgspec.Struct):
    """A trace file."""

    traceEvents: list[Event]


def add_up(events: Iterable[Event], counts: dict[tuple[str, str], list[float]]) -> None:
    """Durations by (category, name), in microseconds."""
    for event in events:
        if event.ph == "X":
            key = (event.cat, event.name)
            found = counts.get(key)
            if found is None:
                counts[key] = [event.dur]
            else:
                found.append(event.dur)


def summed(counts: dict[tuple[str, str], list[float]]) -> Totals:
    """Count and sum of each group."""
    return {key: (len(durations), sum(durations)) for key, durations in counts.items()}


def merged(parts: Iterable[tuple[Totals, int]]) -> tuple[Totals, int]:
    """Totals and number of events over all parts."""
    totals: Totals = {}
    num_events = 0
    for part, num in parts:
        num_events += num
        for key, (count, total) in part.items():
            old_count, old_total = totals.get(key, (0, 0.0))
            totals[key] = (old_count + count, old_total + total)
    return totals, num_events


def mapped(path: Path) -> mmap.mmap:
    """The file, mapped read-only."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def read_whole(path: Path) -> tuple[Totals, int]:
    """All events at once."""
    document = msgspec.json.decode(mapped(path), type=Document)
    counts: dict[tuple[str, str], list[float]] = {}
    add_up(document.traceEvents, counts)
    return summed(counts), len(document.traceEvents)


def cuts(path: Path) -> list[tuple[int, int]]:
    """Byte ranges of whole events, each about ``WINDOW_BYTES``."""
    data = mapped(path)
    start = data.find(b"{", data.find(OPENING) + len(OPENING))
    head = data[start : start + (1 << 16)]
    separator, closing = next(layout for layout in LAYOUTS if layout[0] in head)
    end = data.rfind(closing)
    up_to = separator.index(b",")
    ranges = []
    while end - start > WINDOW_BYTES:
        found = data.find(separator, start + WINDOW_BYTES, end)
        if found < 0:
            break
        ranges.append((start, found + up_to))
        start = found + separator.index(b"{")
    return [*ranges, (start, end)]


def read_range(file_number: int, byte_range: tuple[int, int]) -> bytearray:
    """A JSON list of the events of one range."""
    start, end = byte_range
    text = bytearray(end - start + 2)
    text[0], text[-1] = ord("["), ord("]")
    view = memoryview(text)[1:-1]
    done = 0
    while done < len(view):
        done += os.preadv(file_number, [view[done:]], start + done)
    return text


def read_ranges(path: Path, ranges: list[tuple[int, int]]) -> tuple[Totals, int]:
    """Events range by range."""
    decoder = msgspec.json.Decoder(list[Event])
    counts: dict[tuple[str, str], list[float]] = {}
    num_events = 0
    file_number = os.open(path, os.O_RDONLY)
    for byte_range in ranges:
        events = decoder.decode(read_range(file_number, byte_range))
        num_events += len(events)
        add_up(events, counts)
    os.close(file_number)
    return summed(counts), num_events


def read_windows(path: Path) -> tuple[Totals, int]:
    """All events, a window at a time."""
    return read_ranges(path, cuts(path))


def read_processes(path: Path) -> tuple[Totals, int]:
    """All events, windows spread over the cores."""
    ranges = cuts(path)
    num = os.cpu_count() or 1
    size = -(-len(ranges) // num)
    parts = [(path, ranges[i : i + size]) for i in range(0, len(ranges), size)]
    with multiprocessing.get_context("fork").Pool(num) as pool:
        return merged(pool.starmap(read_ranges, parts))


WAYS: dict[str, Callable[[Path], tuple[Totals, int]]] = {
    "whole": read_whole,
    "windows": read_windows,
    "processes": read_processes,
}


def main() -> None:
    gc.disable()
    way, path = sys.argv[1:]
    totals, num_events = WAYS[way](Path(path))
    groups = [[*key, *total] for key, total in sorted(totals.items())]
    print(json.dumps({"num_events": num_events, "groups": groups}))


if __name__ == "__main__":
    main()
