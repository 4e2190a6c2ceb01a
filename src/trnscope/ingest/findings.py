"""Collects what is wrong with a file while it is read, and words it for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trnscope.ingest.gzip_stream import GzipDamage, GzipReader
from trnscope.model.health import Health, HealthWarning

_CHUNK_BYTES = 1 << 20
_MAX_NAME = 60


@dataclass(frozen=True)
class _Wording:
    """``text`` follows the count; ``loses_data`` makes the trace incomplete."""

    text: str
    loses_data: bool = False


_WORDS: dict[str, _Wording] = {
    # What the events say
    "unknown-duration": _Wording("{events} of unknown duration (kept apart, not as 0)", True),
    "impossible-duration": _Wording(
        "{events} that would last for years (kept apart, without a duration)", True
    ),
    "invalid-time": _Wording("{events} with an invalid time left out", True),
    "end-without-begin": _Wording("{ends} (ph E) without a begin", True),
    "begin-without-end": _Wording("{begins} (ph B) never ended", True),
    "async-end-without-begin": _Wording("async {ends} without a begin", True),
    "async-begin-without-end": _Wording("async {begins} never ended", True),
    "no-phase": _Wording("{events} without a phase (ph) left out", True),
    "ignored-phase": _Wording("{events} of a phase that trnscope does not show"),
    "invalid-base-time": _Wording("baseTimeNanoseconds is no usable time and was ignored", True),
    "partial-export": _Wording("exported by trnscope from an incomplete trace", True),
    # What the bytes say
    "truncated": _Wording("the file is cut off", True),
    "unreadable-event": _Wording("unreadable {events} left out", True),
    "control-character": _Wording("{events} with raw control characters, repaired"),
    "invalid-utf8": _Wording("{events} with bytes that are not UTF-8, replaced by U+FFFD"),
    "bad-escape": _Wording("{events} with an invalid escape"),
    "lone-surrogate": _Wording("{events} with half of a surrogate pair"),
    "non-finite-number": _Wording("{events} with NaN or Infinity"),
    "null-time": _Wording("{events} whose time is null", True),
    "unreadable-time": _Wording("{events} whose time is no number", True),
    "text-time": _Wording("{events} whose time is written as text, read as a number"),
    "duplicate-key": _Wording("{events} with a doubled key; the last one counts"),
    "bom": _Wording("the file starts with a byte order mark"),
    "second-document": _Wording("more than one document in the file; all were read"),
    "unreadable-member": _Wording("unreadable header {members} left out", True),
    "oversized-metadata": _Wording("header {members} too large to keep, left out"),
    "missing-comma": _Wording("a comma is missing between events"),
    "trailing-data": _Wording("data after the end of the document, left out"),
    "trailing-comma": _Wording("a comma before the end of the list"),
}
_UNKNOWN = _Wording("irregular {events}")


@dataclass
class _Finding:
    count: int = 0
    example: str | None = None
    offset: int | None = None


class Findings:
    """Counts each kind of trouble and remembers where it came first."""

    def __init__(self) -> None:
        self._found: dict[str, _Finding] = {}
        self._gzip: list[GzipDamage] = []

    def note(
        self, code: str, count: int, example: str | None = None, offset: int | None = None
    ) -> None:
        """Count trouble of one kind. The first example and byte offset are kept."""
        if count == 0:
            return
        found = self._found.setdefault(code, _Finding())
        found.count += count
        if found.example is None and found.offset is None:
            found.example, found.offset = example, offset

    def note_gzip(self, damage: Iterable[GzipDamage]) -> None:
        """Add what was wrong with the compressed stream."""
        self._gzip += damage

    def health(self, path: Path, compressed: bool, num_events: int, num_repaired: int) -> Health:
        """The health of the file; positions are looked up in it once more."""
        offsets = [f.offset for f in self._found.values() if f.offset is not None]
        places = locate(_chunks(path, compressed), offsets)
        warnings = [HealthWarning(d.code, d.message, 1) for d in self._gzip]
        complete = not any(damage.data_lost for damage in self._gzip)
        for code, found in self._found.items():
            wording = _WORDS.get(code, _UNKNOWN)
            complete = complete and not wording.loses_data
            place = None if found.offset is None else places.get(found.offset)
            warnings.append(HealthWarning(code, _message(wording, found, place), found.count))
        unreadable = self._found.get("unreadable-event")
        return Health(
            complete=complete,
            num_events_read=num_events,
            num_events_repaired=num_repaired,
            num_events_unreadable=0 if unreadable is None else unreadable.count,
            warnings=tuple(warnings),
        )


def _message(wording: _Wording, found: _Finding, place: tuple[int, int] | None) -> str:
    plural = "" if found.count == 1 else "s"
    body = wording.text.format(
        events=f"event{plural}",
        begins=f"begin event{plural}",
        ends=f"end event{plural}",
        members=f"member{plural}",
    )
    text = f"{found.count} {body}" if "{" in wording.text else body
    details = []
    if found.example:
        details.append(found.example)
    if found.offset is not None and place is not None:
        details.append(f"line {place[0]}, column {place[1]} (byte {found.offset})")
    if not details:
        return text
    first = "first: " if found.count > 1 else ""
    return f"{text}: {first}{', '.join(details)}"


def describe_event(name: str, time_ns: int | None) -> str:
    """An event for a message: its quoted name, cut to a readable length, and its time."""
    short = name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"
    words = [json.dumps(short, ensure_ascii=False)] if short else []
    if time_ns is not None:
        words.append(f"at {format_us(time_ns)} µs")
    return " ".join(words)


def format_us(time_ns: int) -> str:
    """Nanoseconds as microseconds, exactly, without trailing zeros: ``110``, ``0.25``."""
    sign = "-" if time_ns < 0 else ""
    whole, part = divmod(abs(time_ns), 1000)
    return f"{sign}{whole}" + (f".{part:03d}".rstrip("0") if part else "")


def _chunks(path: Path, compressed: bool) -> Iterator[bytes]:
    if compressed:
        yield from GzipReader(path).chunks()
        return
    with path.open("rb") as file:
        while data := file.read(_CHUNK_BYTES):
            yield data


def locate(chunks: Iterator[bytes], offsets: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Line and column, both from 1, of byte offsets; a column counts bytes."""
    wanted = sorted(set(offsets))
    places: dict[int, tuple[int, int]] = {}
    line, line_start, position = 1, 0, 0
    for data in chunks:
        if len(places) == len(wanted):
            break
        start = 0
        for offset in wanted[len(places) :]:
            if offset > position + len(data):
                break
            upto = offset - position
            newlines = data.count(b"\n", start, upto)
            if newlines:
                line += newlines
                line_start = position + data.rindex(b"\n", start, upto) + 1
            start = upto
            places[offset] = (line, offset - line_start + 1)
        newlines = data.count(b"\n", start)
        if newlines:
            line += newlines
            line_start = position + data.rindex(b"\n") + 1
        position += len(data)
    return places
