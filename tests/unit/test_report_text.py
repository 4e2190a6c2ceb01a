"""What may reach a terminal, and how names give way to numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from trnscope.report.document import to_json_text
from trnscope.report.table import Column, Table
from trnscope.report.text import fold, plural, printable, shorten, shorten_name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("a\u200bb", "a\\u200bb"),
        ("line\u2028end", "line\\u2028end"),
        ("no\u00a0break", "no break"),
        ("half\ud800", "half\\ud800"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("größe 日本 😀", "größe 日本 😀"),
    ],
)
def test_printable_escapes_what_a_terminal_would_obey(raw: str, shown: str) -> None:
    assert printable(raw) == shown


@given(st.text(st.characters(codec=None)))
def test_printable_text_is_printable_and_on_one_line(raw: str) -> None:
    shown = printable(raw)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghij", 9, "abcd…ghij"),
        ("abcdefghij", 4, "a…ij"),
        ("abcdefghij", 1, "…"),
        ("abcdefghij", 0, ""),
        ("日本日本日本", 7, "日…本"),
    ],
)
def test_shorten_cuts_the_middle(text: str, width: int, shown: str) -> None:
    assert shorten(text, width) == shown


@given(st.text(), st.integers(0, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert cell_len(shorten(text, width)) <= max(width, 0)


def test_numbers_keep_their_place_when_names_are_long() -> None:
    table = Table(
        "op",
        [Column("calls"), Column("kind", is_text=True)],
        [["a" * 40, "7", "x"], ["b\n", "1,000", "yy"]],
        [["under a"], []],
    )
    assert [line.plain for line in table.lines(44)] == [
        "op                               calls  kind",
        "─" * 44,
        "aaaaaaaaaaaaaaa…aaaaaaaaaaaaaaa      7  x",
        "    under a",
        "b\\n                              1,000  yy",
    ]


def test_heads_are_broken_before_names_lose_their_room() -> None:
    columns = [Column("launch latency"), Column("queue")]
    table = Table("op", columns, [["a" * 28, "7 ms", "1"]])
    assert [line.plain for line in table.lines(44)] == [
        "                               launch",
        "op                            latency  queue",
        "─" * 44,
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaa     7 ms      1",
    ]


def test_names_without_room_stand_above_their_numbers() -> None:
    columns = [Column("calls"), Column("self"), Column("kind", is_text=True), Column("total")]
    rows = [["a" * 40, "1", "2.000 ms", "kernel", "3.000 ms"]]
    assert [line.plain for line in Table("op", columns, rows).lines(30)] == [
        "op",
        "   calls      self",
        "  kind       total",
        "─" * 30,
        "aaaaaaaaaaaaaa…aaaaaaaaaaaaaaa",
        "       1  2.000 ms",
        "  kernel  3.000 ms",
    ]


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("void k<float, 4>(float*, int)", 29, "void k<float, 4>(float*, int)"),
        ("void k<float, 4>(float*, int)", 28, "k<float, 4>(…)"),
        (
            "a::(anonymous namespace)::k<F<int> >(int, F<void (*)()>)",
            30,
            "k<F<int> >(…)",
        ),
        ("at::native::fill (annotation)", 20, "at::nativ…nnotation)"),
        ("open (it)", 8, "ope…(it)"),
    ],
)
def test_parameters_of_functions_go_first(name: str, width: int, shown: str) -> None:
    assert shorten_name(name, width) == shown


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short enough", 12, ["short enough"]),
        ("a step of 12.500 ms, then", 16, ["a step of", "12.500 ms, then"]),
        ("of it (31.3 %) is", 11, ["of it", "(31.3 %) is"]),
        ("see /a/path/longer/than/it ok", 10, ["see", "/a/path/longer/than/it", "ok"]),
    ],
)
def test_long_lines_are_broken_between_words(text: str, width: int, lines: list[str]) -> None:
    assert [line.plain for line in fold(Text(text), width)] == lines


def test_a_command_is_never_broken() -> None:
    command = Text("trnscope breakdown trace.json", no_wrap=True)
    assert list(fold(command, 10)) == [command]


def test_without_a_width_names_are_whole() -> None:
    lines = [line.plain for line in Table("op", [Column("n")], [["a" * 300, "1"]]).lines(None)]
    assert lines[2] == "a" * 300 + "  1"


def test_json_is_ascii_and_has_no_number_that_json_lacks() -> None:
    text = to_json_text(
        {"name\u202e": ["\x1b[2J", "\ud800", "é"], "n": np.int64(1), "x": [float("nan"), 0.5, None]}
    )
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text) == {
        "name\u202e": ["\x1b[2J", "\ufffd", "é"],
        "n": 1,
        "x": [None, 0.5, None],
    }


def test_plural() -> None:
    assert [plural(0, "step"), plural(1, "step"), plural(1200, "step")] == [
        "0 steps",
        "1 step",
        "1,200 steps",
    ]
