"""Each kind of damage costs at most the damaged event, and is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.chrome_json import named, open_path, warnings

GOOD = [
    b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":9}',
    b'{"ph":"X","cat":"cpu_op","name":"z","pid":1,"tid":1,"ts":20,"dur":5}',
]


def event(name: bytes, rest: bytes = b'"ts":3,"dur":2', args: bytes = b"{}") -> bytes:
    head = b'{"ph":"X","cat":"cpu_op","name":"' + name + b'","pid":1,"tid":1,'
    return head + rest + b',"args":' + args + b"}"


def document(*events: bytes, start: bytes = b"", end: bytes = b"\n]}") -> bytes:
    return start + b'{"traceEvents":[\n' + b",\n".join(events) + end


def amid(damaged: bytes) -> bytes:
    """The damaged event between two good ones: it stands on line 3."""
    return document(GOOD[0], damaged, GOOD[1])


KEPT = ["a", "m", "z"]
CASES: dict[str, tuple[bytes, list[str], dict[str, int], bool]] = {
    "whole": (amid(event(b"m")), KEPT, {}, True),
    "minified": (amid(event(b"m")).replace(b"\n", b""), KEPT, {}, True),
    "bare list": (b"[" + b",".join([*GOOD, event(b"m")]) + b"]", KEPT, {}, True),
    "control character": (
        amid(event(b"m", args=b'{"x":"\x01\n"}')),
        KEPT,
        {"control-character": 1},
        True,
    ),
    "bad bytes": (amid(event(b"m", args=b'{"x":"\xff"}')), KEPT, {"invalid-utf8": 1}, True),
    "half a pair": (amid(event(b"\\ud800m")), ["a", "z", "\ufffdm"], {"lone-surrogate": 1}, True),
    "bad escape": (amid(event(b"C:\\Users")), ["a", "z"], {"unreadable-event": 1}, False),
    "bare quote": (amid(event(b'{"axis": "x"}')), ["a", "z"], {"unreadable-event": 1}, False),
    "NaN in args": (amid(event(b"m", args=b'{"x":NaN}')), KEPT, {"non-finite-number": 1}, True),
    "repeated key": (
        amid(event(b"q", b'"name":"m","ts":3,"dur":2')),
        KEPT,
        {"duplicate-key": 1},
        True,
    ),
    "text time": (amid(event(b"m", b'"ts":"3","dur":"2"')), KEPT, {"text-time": 1}, True),
    "null duration": (
        amid(event(b"m", b'"ts":3,"dur":null')),
        ["a", "z"],
        {"null-time": 1, "unknown-duration": 1},
        False,
    ),
    "NaN duration": (
        amid(event(b"m", b'"ts":3,"dur":NaN')),
        ["a", "z"],
        {"non-finite-number": 1, "unknown-duration": 1},
        False,
    ),
    "NaN start": (
        amid(event(b"m", b'"ts":NaN,"dur":1')),
        ["a", "z"],
        {"non-finite-number": 1, "invalid-time": 1},
        False,
    ),
    "byte order mark": (
        document(*GOOD, event(b"m"), start=b"\xef\xbb\xbf"),
        KEPT,
        {"bom": 1},
        True,
    ),
    "trailing comma": (
        document(*GOOD, event(b"m"), end=b",\n]}"),
        KEPT,
        {"trailing-comma": 1},
        True,
    ),
    "cut in an event": (
        document(*GOOD, event(b"m"), end=b',\n{"ph":"X","na'),
        KEPT,
        {"truncated": 1},
        False,
    ),
    "cut after an event": (document(*GOOD, event(b"m"), end=b"\n"), KEPT, {"truncated": 1}, False),
    "two documents": (
        document(*GOOD) + b"\n" + document(event(b"m")),
        KEPT,
        {"second-document": 1},
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_damage_is_survived_and_named(tmp_path: Path, name: str) -> None:
    data, kept, codes, complete = CASES[name]
    path = tmp_path / "x.json"
    path.write_bytes(data)
    trace = open_path(path)
    assert sorted(named(trace)) == sorted(kept)
    assert warnings(trace) == codes
    assert trace.health.complete is complete
    assert trace.health.num_events_unreadable == codes.get("unreadable-event", 0)
    repaired = codes.keys() & {"control-character", "invalid-utf8", "lone-surrogate"}
    assert trace.health.num_events_repaired == len(repaired)


@pytest.mark.parametrize("name", ["bad escape", "bare quote", "control character", "bad bytes"])
def test_the_place_of_damage_is_told(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(CASES[name][0])
    (warning,) = open_path(path).health.warnings
    assert "line 3, column " in warning.message


def test_every_cut_keeps_the_whole_events(tmp_path: Path) -> None:
    data = document(*GOOD, event(b"m", args=b'{"x": [1, {"y": "]}"}]}'))
    ends = [i + 1 for i in range(len(data)) if data[: i + 1].endswith((b"}", b"]"))]
    path = tmp_path / "x.json"
    first_end = data.index(GOOD[0]) + len(GOOD[0])
    for cut in {*range(first_end, len(data), 7), *(end for end in ends if end >= first_end)}:
        path.write_bytes(data[:cut])
        trace = open_path(path)
        whole = [
            n for n, part in zip("az", GOOD, strict=True) if data.index(part) + len(part) <= cut
        ]
        if cut >= len(data) - len(b"\n]}"):
            whole.append("m")
        assert sorted(named(trace)) == sorted(whole), cut
        assert trace.health.complete is (cut == len(data)), cut
