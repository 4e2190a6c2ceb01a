"""Pure-Python trace scanner on Python's ``json``, with the native scanner's interface.

It is the oracle of the native scanner's tests, and stands in for it where no native code is
built. It reads the whole document and wants valid JSON, but survives what Python's decoder
survives: control characters, bad UTF-8, lone surrogates, NaN, repeated keys, a BOM. Anything else
raises ``ValueError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.store.strings import EncodedStrings
from trnscope.store.tables import I64, U8

HAS_TS, HAS_DUR, HAS_ID, REPAIRED, BIND_ENCLOSING, NONFINITE_TIME, HAS_SCOPE_GLOBAL = (
    1 << bit for bit in range(7)
)

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_HEX = re.compile(r"0[xX][0-9a-fA-F]+\Z", re.ASCII)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_NON_FINITE = re.compile(r"-?(?:NaN|Infinity)")
_EVENT_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "id2", "bp", "s", "args")
_MAX_NS = Decimal(2**63 - 1)
_WIDE = Context(prec=10_000)


def _scalar_text(text: str) -> str:
    return text


_DECODER = json.JSONDecoder(strict=False, parse_int=_scalar_text, parse_float=_scalar_text)
_STRICT = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class _Value:
    """One JSON value: ``raw`` has a character per byte of the file (Latin-1)."""

    raw: str
    start: int

    @property
    def kind(self) -> str:
        """One of string, object, array, null, bool, non-finite, number."""
        kinds = {'"': "string", "{": "object", "[": "array", "n": "null", "t": "bool", "f": "bool"}
        kind = kinds.get(self.raw[0])
        if kind is None:
            kind = "non-finite" if self.raw.lstrip("-")[0] in "NI" else "number"
        return kind

    def content(self) -> str:
        """The decoded text of a string; lone surrogates become U+FFFD."""
        utf8 = self.raw.encode("latin-1").decode("utf-8", "replace")
        decoded = _STRICT.decode(utf8)
        assert isinstance(decoded, str)
        return "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in decoded)

    def text(self) -> str:
        """A string's content, nothing for null, the raw JSON of other values."""
        if self.kind == "string":
            return self.content()
        if self.kind == "null":
            return ""
        return self.raw.encode("latin-1").decode("utf-8", "replace")


@dataclass(frozen=True)
class _Member:
    key: str
    key_start: int
    value: _Value


def _skip_space(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    assert match is not None
    return match.end()


def _value_at(text: str, index: int) -> tuple[_Value, int]:
    _, end = _DECODER.raw_decode(text, index)
    return _Value(text[index:end], index), end


def _members(text: str, index: int) -> Iterator[_Member]:
    """The members of the (valid) object that starts at ``index``."""
    index = _skip_space(text, index + 1)
    while text[index] != "}":
        key, end = _value_at(text, index)
        end = _skip_space(text, _skip_space(text, end) + 1)
        value, end = _value_at(text, end)
        yield _Member(key.content(), index, value)
        index = _skip_space(text, end)
        if text[index] == ",":
            index = _skip_space(text, index + 1)


def _elements(text: str, index: int) -> Iterator[_Value]:
    """The elements of the (valid) array that starts at ``index``."""
    index = _skip_space(text, index + 1)
    while text[index] != "]":
        value, end = _value_at(text, index)
        yield value
        index = _skip_space(text, end)
        if text[index] == ",":
            index = _skip_space(text, index + 1)


def to_int(text: str) -> int | None:
    """A whole number in decimal or 0x notation that fits in i64 or u64, else None."""
    text = text.strip(" \t\r\n")
    if _HEX.match(text):
        value = int(text, 16)
    elif _NUMBER.match(text):
        number = Decimal(text)
        if number and (number.adjusted() > 40 or number.adjusted() < -40):
            return None
        if number != number.to_integral_value(context=_WIDE):
            return None
        value = int(number)
    else:
        return None
    return value if -(2**63) <= value < 2**64 else None


def to_ns(text: str) -> int | None:
    """Decimal microseconds as whole nanoseconds, halves away from zero; None if none fit."""
    text = text.strip(" \t\r\n")
    if not _NUMBER.match(text):
        return None
    number = Decimal(text)
    if number and number.adjusted() > 40:
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if number.adjusted() < -40:
        return 0
    ns = Decimal((sign, digits, exponent + 3))
    if exponent + 3 < 0:
        ns = _round_half_away(ns)
    return int(ns) if abs(ns) <= _MAX_NS else None


def _round_half_away(number: Decimal) -> Decimal:
    return number.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=_WIDE)


def fnv1a(data: bytes) -> int:
    """The 64-bit FNV-1a hash, which stands for an id that is no number."""
    state = 0xCBF29CE484222325
    for byte in data:
        state = ((state ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return state


def _id_of(value: _Value) -> int:
    text = value.text()
    number = to_int(text) if value.kind in ("string", "number") else None
    return fnv1a(text.encode()) if number is None else number % 2**64


@dataclass
class _Row:
    ph: int = 0
    flags: int = 0
    category: int = 0
    name: int = 0
    track: int = 0
    ts_ns: int = 0
    dur_ns: int = 0
    id: int = 0
    args_offset: int = 0
    args_length: int = 0


_DTYPES: dict[str, Any] = {
    "ph": np.uint8,
    "flags": np.uint8,
    "category": np.uint32,
    "name": np.uint32,
    "track": np.uint32,
    "ts_ns": np.int64,
    "dur_ns": np.int64,
    "id": np.uint64,
    "args_offset": np.uint64,
    "args_length": np.uint32,
}


@dataclass
class ReferenceSegment:
    """Columns of consecutive events, as the native ``Segment`` has them."""

    arg_types: Sequence[str]
    rows: list[_Row] = field(default_factory=list)
    attributes: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    counter_rows: list[tuple[int, int, float]] = field(default_factory=list)

    @property
    def num_events(self) -> int:
        """How many rows every column has."""
        return len(self.rows)

    def __getattr__(self, column: str) -> npt.NDArray[Any]:
        if column not in _DTYPES:
            raise AttributeError(column)
        return np.array([getattr(row, column) for row in self.rows], _DTYPES[column])

    def attribute(self, k: int) -> tuple[npt.NDArray[Any], ...]:
        """Rows and values of the k-th requested key.

        "int": rows u32, values as u64 bit patterns, and whether each is negative.
        "text": rows u32 and string ids u32.
        """
        pairs = self.attributes.get(k, [])
        rows = np.array([row for row, _ in pairs], np.uint32)
        values = [value for _, value in pairs]
        if self.arg_types[k] == "text":
            return rows, np.array(values, np.uint32)
        bits = np.array([value % 2**64 for value in values], np.uint64)
        return rows, bits, np.array([value < 0 for value in values], np.bool_)

    def counters(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Rows u32, key string ids u32 and values f64 of the numbers in args of "C" events."""
        rows = self.counter_rows
        return (
            np.array([row[0] for row in rows], np.uint32),
            np.array([row[1] for row in rows], np.uint32),
            np.array([row[2] for row in rows], np.float64),
        )


class _Damage:
    """Events with each kind of damage, and the first damaged byte."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}

    def add(self, kinds: dict[str, int]) -> None:
        """Count one event (or member) that has these kinds, at these offsets."""
        for kind, offset in kinds.items():
            count, first = self.found.get(kind, (0, offset))
            self.found[kind] = (count + 1, min(first, offset))


def _bad_utf8_at(raw: str) -> int | None:
    try:
        raw.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


def _lone_surrogate_at(raw: str) -> int | None:
    escapes = re.compile(
        r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
    )
    for match in escapes.finditer(raw):
        if match.group(1):
            return match.start()
    return None


def _string_damage(raw: str, start: int) -> dict[str, int]:
    """Kinds of damage in the strings (and bare words) of a JSON text, with file offsets."""
    found: dict[str, int] = {}
    for match in _STRING.finditer(raw):
        literal = match.group()
        control = _CONTROL.search(literal)
        places = {
            "control-character": control.start() if control else None,
            "invalid-utf8": _bad_utf8_at(literal),
            "lone-surrogate": _lone_surrogate_at(literal),
        }
        for kind, place in places.items():
            if place is not None:
                found.setdefault(kind, start + match.start() + place)
    bare = _STRING.sub(lambda match: " " * len(match.group()), raw)
    word = _NON_FINITE.search(bare)
    if word:
        found["non-finite-number"] = start + word.start()
    return found


class ReferenceScanner:
    """Reads one document; the interface is that of ``_native.Scanner``."""

    def __init__(
        self, arg_keys: list[tuple[str, str]], threads: int = 1, segment_events: int = 1_000_000
    ) -> None:
        del threads
        self._keys = {key: k for k, (key, _) in enumerate(arg_keys)}
        self._types = [kind for _, kind in arg_keys]
        self._segment_events = segment_events
        self._data = bytearray()
        self._segments: list[ReferenceSegment] | None = None
        self._strings: dict[str, int] = {"": 0}
        self._tracks: dict[tuple[str, str], int] = {}
        self._metadata: list[tuple[str, bytes]] = []
        self._damage = _Damage()
        self._kind = "none"
        self._saw_trace_events = False

    def open(self, path: str) -> None:
        """Read a plain file."""
        self.feed(Path(path).read_bytes())

    def feed(self, buffer: bytes) -> None:
        """Add bytes of the document."""
        self._data += buffer

    def close_input(self) -> None:
        """End of the bytes."""

    def stop(self) -> None:
        """Give up; there is nothing to stop."""

    def next_segment(self) -> ReferenceSegment | None:
        """The next columns; None at the end."""
        if self._segments is None:
            self._segments = []
            self._scan(self._data.decode("latin-1"))
        return self._segments.pop(0) if self._segments else None

    def string_table(self) -> tuple[I64, U8]:
        """Texts by string id, encoded; id 0 is the empty text."""
        encoded = EncodedStrings.of(list(self._strings))
        return encoded.ends, encoded.data

    def tracks(self) -> list[tuple[str, str]]:
        """(pid text, tid text) by track id."""
        return list(self._tracks)

    def metadata(self) -> list[tuple[str, bytes]]:
        """Top-level members but the events: key and raw JSON."""
        return self._metadata

    def damage(self) -> list[tuple[str, int, int]]:
        """Kind, events that have it, and the offset of its first byte."""
        return [(kind, *found) for kind, found in sorted(self._damage.found.items())]

    def document_kind(self) -> str:
        """Whether the document is an "object", an "array" or "none"."""
        return self._kind

    def num_documents(self) -> int:
        """Documents in the input."""
        return 0 if self._kind == "none" else 1

    def saw_trace_events(self) -> bool:
        """Whether there was an array of events."""
        return self._saw_trace_events

    def bytes_scanned(self) -> int:
        """Bytes of the document."""
        return len(self._data)

    def ended_cleanly(self) -> bool:
        """Whether the document was whole."""
        return self._kind != "none"

    def _scan(self, text: str) -> None:
        if text.startswith("\xef\xbb\xbf"):
            self._damage.add({"bom": 0})
            text = "   " + text[3:]
        start = _skip_space(text, 0)
        if text[start : start + 1] not in ("{", "["):
            return
        _, end = _value_at(text, start)
        if _skip_space(text, end) != len(text):
            raise ValueError("more than one document")
        self._kind = "object" if text[start] == "{" else "array"
        if self._kind == "array":
            self._scan_events(text, start)
            return
        for member in _members(text, start):
            if member.key == "traceEvents" and member.value.kind == "array":
                self._scan_events(text, member.value.start)
            else:
                self._metadata.append((member.key, member.value.raw.encode("latin-1")))
                self._damage.add(_string_damage(member.value.raw, member.value.start))

    def _scan_events(self, text: str, start: int) -> None:
        self._saw_trace_events = True
        for element in _elements(text, start):
            if element.kind != "object":
                self._damage.add({"unreadable-event": element.start})
                continue
            self._scan_event(text, element)

    def _open_segment(self) -> ReferenceSegment:
        assert self._segments is not None
        if not self._segments or self._segments[-1].num_events >= self._segment_events:
            self._segments.append(ReferenceSegment(self._types))
        return self._segments[-1]

    def _scan_event(self, text: str, element: _Value) -> None:
        segment = self._open_segment()
        damage = _string_damage(element.raw, element.start)
        repaired = damage.keys() - {"non-finite-number"}
        values: dict[str, _Value] = {}
        for member in _members(text, element.start):
            if member.key in _EVENT_KEYS:
                if member.key in values:
                    damage.setdefault("duplicate-key", member.key_start)
                values[member.key] = member.value
        row = _Row(flags=REPAIRED if repaired else 0)
        self._fill_row(text, row, values, damage)
        self._fill_args(text, segment, row, values.get("args"), damage)
        segment.rows.append(row)
        self._damage.add(damage)

    def _fill_row(
        self, text: str, row: _Row, values: dict[str, _Value], damage: dict[str, int]
    ) -> None:
        first = _text(values, "ph")[:1] if _is_string(values, "ph") else ""
        row.ph = ord(first) if first.isascii() and first else 0
        row.category = self._string(_text(values, "cat"))
        row.name = self._string(_text(values, "name"))
        pair = (_text(values, "pid"), _text(values, "tid"))
        row.track = self._tracks.setdefault(pair, len(self._tracks))
        row.ts_ns = self._time(row, values.get("ts"), HAS_TS, damage)
        row.dur_ns = self._time(row, values.get("dur"), HAS_DUR, damage)
        self._fill_id(text, row, values)
        if _is_string(values, "bp") and _text(values, "bp") == "e":
            row.flags |= BIND_ENCLOSING
        if _is_string(values, "s") and _text(values, "s") == "g":
            row.flags |= HAS_SCOPE_GLOBAL

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _time(self, row: _Row, value: _Value | None, flag: int, damage: dict[str, int]) -> int:
        if value is None:
            return 0
        if value.kind == "null":
            damage["null-time"] = min(value.start, damage.get("null-time", value.start))
            return 0
        ns = to_ns(value.text()) if value.kind in ("string", "number") else None
        if value.kind == "string" and ns is not None:
            damage["text-time"] = min(value.start, damage.get("text-time", value.start))
        if ns is None:
            row.flags |= NONFINITE_TIME
            if value.kind != "non-finite":
                kind = "unreadable-time"
                damage[kind] = min(value.start, damage.get(kind, value.start))
            return 0
        row.flags |= flag
        return ns

    def _fill_id(self, text: str, row: _Row, values: dict[str, _Value]) -> None:
        """``id``, else the last of id2's "local" and "global"."""
        value = values.get("id")
        if value is None and "id2" in values and values["id2"].kind == "object":
            for member in _members(text, values["id2"].start):
                if member.key in ("local", "global"):
                    value = member.value
        if value is not None and value.kind != "null":
            row.id = _id_of(value)
            row.flags |= HAS_ID

    def _fill_args(
        self,
        text: str,
        segment: ReferenceSegment,
        row: _Row,
        args: _Value | None,
        damage: dict[str, int],
    ) -> None:
        if args is None:
            return
        row.args_offset, row.args_length = args.start, len(args.raw)
        if args.kind != "object":
            return
        lifted: dict[int, _Value] = {}
        counters: dict[str, _Value] = {}
        for member in _members(text, args.start):
            k = self._keys.get(member.key)
            if k is not None:
                if k in lifted:
                    damage.setdefault("duplicate-key", member.key_start)
                lifted[k] = member.value
            counters[member.key] = member.value
        for k in sorted(lifted):
            self._lift(segment, k, lifted[k])
        if row.ph == ord("C"):
            self._count(segment, counters)

    def _lift(self, segment: ReferenceSegment, k: int, value: _Value) -> None:
        if value.kind == "null":
            return
        if self._types[k] == "text":
            lifted: int | None = self._string(value.text())
        else:
            lifted = to_int(value.text()) if value.kind in ("string", "number") else None
        if lifted is not None:
            segment.attributes.setdefault(k, []).append((segment.num_events, lifted))

    def _count(self, segment: ReferenceSegment, counters: dict[str, _Value]) -> None:
        for key, value in counters.items():
            if value.kind == "number":
                number = float(value.raw)
                if abs(number) != float("inf"):
                    segment.counter_rows.append((segment.num_events, self._string(key), number))


def _is_string(values: dict[str, _Value], key: str) -> bool:
    return key in values and values[key].kind == "string"


def _text(values: dict[str, _Value], key: str) -> str:
    return values[key].text() if key in values else ""
