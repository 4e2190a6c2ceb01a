"""Random and damaged trace documents: the native scanner against the one on Python's ``json``."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracle.reference_scanner import ReferenceScanner
from tests.oracle.scanned import scan
from trnscope._native import Scanner

KEYS = [
    ("correlation", "int"),
    ("External id", "int"),
    ("Input Dims", "text"),
    ("kind", "text"),
    ("ключ", "text"),
]
THREADS = (1, 2, 3)
SIZES = (1, 3, 16, 50, 200, 1000, 1 << 20)

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ['},{"ph":"X"', '},\n{"name":', '"', "\\", '\\"},{', "{", "]}", "]", "aten::mm", "\ud800x"]
    ),
)
integers = st.one_of(
    st.integers(-10, 10),
    st.integers(-(2**65), 2**65),
    st.sampled_from([2**63, 2**64 - 1, -(2**63)]),
)
numbers = st.one_of(integers, st.floats(), st.floats(-1e6, 1e6).map(lambda x: round(x, 3)))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
decimals = st.from_regex(
    r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?", fullmatch=True
)


class Verbatim(str):
    """JSON text that is written as it is."""


times = st.one_of(
    decimals.map(Verbatim), decimals, numbers, st.none(), st.sampled_from(["", "x", " 1.5 ", "NaN"])
)
args = st.dictionaries(
    st.one_of(st.sampled_from([key for key, _ in KEYS]), texts), values, max_size=5
)
EVENT_MEMBERS = {
    "ph": st.one_of(st.sampled_from(["X", "C", "M", "i", "s", "f", "", "é", "XY"]), values),
    "cat": st.one_of(st.sampled_from(["cpu_op", "kernel"]), values),
    "name": st.one_of(texts, values),
    "pid": st.one_of(st.integers(0, 3), texts, values),
    "tid": st.one_of(st.integers(0, 3), texts, values),
    "ts": times,
    "dur": times,
    "id": st.one_of(integers, st.sampled_from(["0x1f", "0x", "17", "-3", "a"]), values),
    "id2": st.dictionaries(st.sampled_from(["local", "global", "x"]), values, max_size=2),
    "bp": st.sampled_from(["e", "x", 1]),
    "s": st.sampled_from(["g", "t", None]),
    "args": st.one_of(args, args, values),
    "other": values,
}
events = st.lists(
    st.sampled_from(sorted(EVENT_MEMBERS)).flatmap(
        lambda key: st.tuples(st.just(key), EVENT_MEMBERS[key])
    ),
    max_size=10,
)
"""An event as a list of members, in any order; keys may be repeated."""

layouts = st.sampled_from(
    [
        ("", ":", ","),
        (" ", ": ", ", "),
        ("\n  ", ": ", ",\n    "),
        ("\n", " :\t", " ,\r\n"),
        ("\n      ", ":\n", "\n    ,\n    "),
    ]
)


def write(value: Any, ascii_only: bool) -> bytes:
    """JSON of one value; lone surrogates only as escapes, as files can hold them."""
    if isinstance(value, Verbatim):
        return value.encode()
    text = json.dumps(value, ensure_ascii=ascii_only)
    if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        text = json.dumps(value)
    return text.encode()


def write_event(members: list[tuple[str, Any]], layout: tuple[str, str, str], plain: bool) -> bytes:
    """An event's object in a layout (whitespace inside braces, colon, comma)."""
    inside, colon, comma = (part.encode() for part in layout)
    written = comma.join(write(k, plain) + colon + write(v, plain) for k, v in members)
    return b"{" + inside + written + inside + b"}"


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """A document, and the offset after each of its events."""
    layout, plain = draw(layouts), draw(st.booleans())
    before = draw(st.dictionaries(texts.filter(lambda k: k != "traceEvents"), values, max_size=3))
    after = draw(st.dictionaries(texts.filter(lambda k: k != "traceEvents"), values, max_size=3))
    space, colon, comma = (part.encode() for part in layout)
    is_bare = draw(st.booleans())
    data = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b" \n"]))
    if not is_bare:
        data += b"{" + space
        for key, value in before.items():
            data += write(key, plain) + colon + write(value, plain) + comma
        data += b'"traceEvents"' + colon
    data += b"["
    ends = []
    for i, members in enumerate(draw(st.lists(events, max_size=8))):
        data += (comma if i else space) + write_event(members, layout, plain)
        ends.append(len(data))
    data += space + b"]"
    if not is_bare:
        for key, value in after.items():
            data += comma + write(key, plain) + colon + write(value, plain)
        data += b"}" + space
    return data, ends


options = st.fixed_dictionaries(
    {"threads": st.sampled_from(THREADS), "window_bytes": st.sampled_from(SIZES)}
)
thorough = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=100)


@thorough
@given(documents(), options)
def test_random_documents_equal_the_oracle(
    document: tuple[bytes, list[int]], options: dict[str, int]
) -> None:
    data, ends = document
    wanted = scan(ReferenceScanner, data, KEYS)
    assert len(wanted.events) == len(ends)
    assert scan(Scanner, data, KEYS, **options) == wanted


@thorough
@given(documents(), options, st.lists(st.integers(0, 300), max_size=5))
def test_chunks_of_a_stream_do_not_matter(
    document: tuple[bytes, list[int]], options: dict[str, int], cuts: list[int]
) -> None:
    data, _ = document
    scanner = Scanner(KEYS, **options)
    start = 0
    for cut in sorted(cuts):
        scanner.feed(data[start : max(start, cut)])
        start = max(start, cut)
    scanner.feed(data[start:])
    scanner.close_input()
    num_events = sum(segment.num_events for segment in iter(scanner.next_segment, None))
    assert num_events == len(scan(Scanner, data, KEYS).events)


@st.composite
def mutations(draw: st.DrawFn) -> tuple[bytes, bytes, int]:
    """A document, a damaged copy, and how many events end before the damage."""
    data, ends = draw(documents())
    pieces = st.sampled_from(
        [b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\x00", b"\xff", b"\xe4", b'},{"ph":"X"']
    )
    at = draw(st.integers(0, len(data)))
    kind = draw(st.sampled_from(["flip", "cut", "insert", "remove", "repeat"]))
    rest = data[at:]
    length = draw(st.integers(1, 40))
    if kind == "flip" and rest:
        rest = bytes([rest[0] ^ draw(st.integers(1, 255))]) + rest[1:]
    elif kind == "cut":
        rest = b""
    elif kind == "insert":
        rest = draw(st.one_of(pieces, st.binary(min_size=1, max_size=8))) + rest
    elif kind == "remove":
        rest = rest[length:]
    else:
        rest = rest[:length] + rest
    return data, data[:at] + rest, sum(end <= at for end in ends)


@settings(thorough, max_examples=150)
@given(mutations(), options)
def test_events_before_damage_are_kept(
    mutation: tuple[bytes, bytes, int], options: dict[str, int]
) -> None:
    data, damaged, num_before = mutation
    whole = scan(Scanner, data, KEYS)
    found = scan(Scanner, damaged, KEYS, **options)
    assert found.events[:num_before] == whole.events[:num_before]


@settings(thorough, max_examples=150)
@given(mutations(), options)
def test_windows_and_threads_do_not_matter_in_damaged_documents(
    mutation: tuple[bytes, bytes, int], options: dict[str, int]
) -> None:
    _, damaged, _ = mutation
    assert scan(Scanner, damaged, KEYS, **options) == scan(Scanner, damaged, KEYS)


@thorough
@given(st.binary(max_size=300), options)
def test_any_bytes(data: bytes, options: dict[str, int]) -> None:
    for prefix in (b"", b"[", b'{"traceEvents":[{"ph":"X"},'):
        found = scan(Scanner, prefix + data, KEYS, **options)
        assert found == scan(Scanner, prefix + data, KEYS)
        assert found.bytes_scanned == len(prefix + data)
