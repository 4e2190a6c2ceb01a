"""Wording of what is wrong with a file, and where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.ingest.findings import Findings, describe_event, format_us, locate


@pytest.mark.parametrize("cut", [1, 3, 5, 100])
def test_lines_and_columns(cut: int) -> None:
    data = b"ab\n\ncd\n"
    pieces = iter([data[i : i + cut] for i in range(0, len(data), cut)])
    assert locate(pieces, [0, 1, 2, 3, 4, 5, 6, 4]) == {
        0: (1, 1),
        1: (1, 2),
        2: (1, 3),
        3: (2, 1),
        4: (3, 1),
        5: (3, 2),
        6: (3, 3),
    }


def test_an_offset_at_the_end_of_the_data() -> None:
    assert locate(iter([b"ab\n", b"c"]), [4]) == {4: (2, 2)}


def test_messages_count_name_and_locate(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"line one\nline two\n")
    findings = Findings()
    findings.note("unreadable-event", 1, offset=9)
    findings.note("unknown-duration", 2, '"a" at 5 µs')
    findings.note("unknown-duration", 1, '"b" at 6 µs')
    findings.note("bom", 1)
    findings.note("no-phase", 0)
    findings.note("news-of-tomorrow", 3)
    health = findings.health(path, False, 10, 4)
    assert [(w.code, w.count, w.message) for w in health.warnings] == [
        ("unreadable-event", 1, "1 unreadable event left out: line 2, column 1 (byte 9)"),
        (
            "unknown-duration",
            3,
            '3 events of unknown duration (kept apart, not as 0): first: "a" at 5 µs',
        ),
        ("bom", 1, "the file starts with a byte order mark"),
        ("news-of-tomorrow", 3, "3 irregular events"),
    ]
    assert (health.complete, health.num_events_read) == (False, 10)
    assert (health.num_events_repaired, health.num_events_unreadable) == (4, 1)


@pytest.mark.parametrize(
    ("code", "complete"),
    [
        ("truncated", False),
        ("unreadable-event", False),
        ("invalid-time", False),
        ("control-character", True),
        ("invalid-utf8", True),
        ("duplicate-key", True),
        ("ignored-phase", True),
    ],
)
def test_what_makes_a_trace_incomplete(tmp_path: Path, code: str, complete: bool) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"{}")
    findings = Findings()
    findings.note(code, 1, offset=0)
    assert findings.health(path, False, 1, 0).complete is complete


def test_events_in_messages_are_short_and_printable() -> None:
    assert describe_event("a\x1b[31m\n", 1500) == '"a\\u001b[31m\\n" at 1.5 µs'
    assert len(describe_event("x" * 500, None)) == 62
    assert describe_event("", 1) == "at 0.001 µs"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0"),
        (110_000, "110"),
        (250, "0.25"),
        (-1_001, "-1.001"),
        (5 * 10**18 + 1, "5000000000000000.001"),
    ],
)
def test_microseconds(ns: int, text: str) -> None:
    assert format_us(ns) == text
