"""Runs a scanner over a document and gives its events as plain records that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trnscope.store.strings import Strings

ArgKeys = list[tuple[str, str]]


@dataclass(frozen=True)
class ScannedEvent:
    """One event with ids resolved to texts."""

    ph: str
    flags: int
    category: str
    name: str
    track: tuple[str, str]
    ts_ns: int
    dur_ns: int
    id: int
    args_offset: int
    args_length: int
    attributes: dict[str, int | str] = field(default_factory=dict)
    counters: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Scanned:
    """All that a scanner tells about a document."""

    events: list[ScannedEvent]
    damage: dict[str, tuple[int, int]]
    document_kind: str
    num_documents: int
    saw_trace_events: bool
    ended_cleanly: bool
    bytes_scanned: int
    metadata: list[tuple[str, bytes]]


def _attributes(segment: Any, keys: ArgKeys, strings: Sequence[str]) -> list[dict[str, int | str]]:
    found: list[dict[str, int | str]] = [{} for _ in range(segment.num_events)]
    for k, (key, kind) in enumerate(keys):
        if kind == "text":
            for row, string in zip(*(a.tolist() for a in segment.attribute(k)), strict=True):
                found[row][key] = strings[string]
        else:
            columns = (a.tolist() for a in segment.attribute(k))
            for row, bits, negative in zip(*columns, strict=True):
                found[row][key] = bits - 2**64 if negative else bits
    return found


def _counters(segment: Any, strings: Sequence[str]) -> list[tuple[tuple[str, float], ...]]:
    found: list[tuple[tuple[str, float], ...]] = [()] * segment.num_events
    for row, key, value in zip(*(a.tolist() for a in segment.counters()), strict=True):
        found[row] += ((strings[key], value),)
    return found


def _events(
    segment: Any, keys: ArgKeys, strings: Sequence[str], tracks: Sequence[tuple[str, str]]
) -> Iterator[ScannedEvent]:
    attributes = _attributes(segment, keys, strings)
    counters = _counters(segment, strings)
    columns = (
        getattr(segment, name).tolist()
        for name in (
            *("ph", "flags", "category", "name", "track"),
            *("ts_ns", "dur_ns", "id", "args_offset", "args_length"),
        )
    )
    for row, values in enumerate(zip(*columns, strict=True)):
        ph, flags, category, name, track, ts_ns, dur_ns, event_id, offset, length = values
        yield ScannedEvent(
            chr(ph) if ph else "",
            flags,
            strings[category],
            strings[name],
            tracks[track],
            ts_ns,
            dur_ns,
            event_id,
            offset,
            length,
            attributes[row],
            counters[row],
        )


def texts_of(scanner: Any) -> Sequence[str]:
    """Texts by string id."""
    return list(Strings(*scanner.string_table()))


def result_of(scanner: Any, keys: ArgKeys) -> Scanned:
    """Drain a scanner that has its input."""
    segments = list(iter(scanner.next_segment, None))
    strings, tracks = texts_of(scanner), scanner.tracks()
    return Scanned(
        [event for segment in segments for event in _events(segment, keys, strings, tracks)],
        {kind: (count, first) for kind, count, first in scanner.damage()},
        scanner.document_kind(),
        scanner.num_documents(),
        scanner.saw_trace_events(),
        scanner.ended_cleanly(),
        scanner.bytes_scanned(),
        scanner.metadata(),
    )


def scan(make: Callable[..., Any], data: bytes, keys: ArgKeys, **options: int) -> Scanned:
    """Feed a document to a new scanner."""
    scanner = make(keys, **options)
    if data:
        scanner.feed(data)
    scanner.close_input()
    return result_of(scanner, keys)
