"""The native trace scanner: exact values, layouts, damage, windows and threads."""

from __future__ import annotations

import gc
import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.reference_scanner import ReferenceScanner, fnv1a
from tests.oracle.scanned import Scanned, ScannedEvent, result_of, scan, texts_of
from trnscope._native import Scanner

HAS_TS, HAS_DUR, HAS_ID, REPAIRED, BIND_ENCLOSING, NONFINITE_TIME, SCOPE_GLOBAL = (
    1 << bit for bit in range(7)
)
KEYS = [("correlation", "int"), ("Input Dims", "text"), ("kind", "text")]
SIZES = (1, 7, 64, 1000, 1 << 20)


def scanned(text: str | bytes, **options: int) -> Scanned:
    data = text.encode() if isinstance(text, str) else text
    return scan(Scanner, data, KEYS, **options)


def one(members: str, **options: int) -> ScannedEvent:
    """The only event of a document with an event of these members."""
    result = scanned('{"traceEvents":[{' + members + "}]}", **options)
    assert len(result.events) == 1
    return result.events[0]


def names(result: Scanned) -> list[str]:
    return [event.name for event in result.events]


def everywhere(data: bytes) -> Scanned:
    """The result, after a check that it is the same in windows of any size."""
    whole = scanned(data)
    for size in SIZES:
        assert scanned(data, window_bytes=size, threads=2) == whole
    return whole


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "ns"),
        [
            ("0", 0),
            ("-0.0", 0),
            ("1", 1000),
            ("1.5", 1500),
            ("0.001", 1),
            ("0.0005", 1),
            ("0.00049999999999999999999999", 0),
            ("-0.0005", -1),
            ("2.0004999", 2000),
            ("-1", -1000),
            ("1e3", 1_000_000),
            ("1.25E-2", 13),
            ("1.24E-2", 12),
            ("12345678e-9", 12),
            ("1741234566500000.125", 1741234566500000125),
            ("1741234568402468.257", 1741234568402468257),
            ("9223372036854775.807", 9223372036854775807),
            ("-9223372036854775.807", -9223372036854775807),
            ("0.000000000000000000000000000001e30", 1000),
            ("100000000000000000000000000000e-29", 1000),
            ("0e999999999999999999999", 0),
            ("1e-999999999999999999999", 0),
            ("5175944825136.251", 5175944825136251),
            ("0012.5", 12500),
            ('"17.25"', 17250),
            ('" 17.25\\t"', 17250),
            ('"1e1"', 10_000),
        ],
    )
    def test_decimal_microseconds_become_exact_nanoseconds(self, text: str, ns: int) -> None:
        event = one(f'"ph":"X","ts":{text},"dur":{text}')
        assert (event.ts_ns, event.dur_ns, event.flags) == (ns, ns, HAS_TS | HAS_DUR)

    @pytest.mark.parametrize(
        ("text", "kind", "flags"),
        [
            ("9223372036854775.808", "unreadable-time", NONFINITE_TIME),
            ("1e400", "unreadable-time", NONFINITE_TIME),
            ('"abc"', "unreadable-time", NONFINITE_TIME),
            ('""', "unreadable-time", NONFINITE_TIME),
            ("true", "unreadable-time", NONFINITE_TIME),
            ("[1]", "unreadable-time", NONFINITE_TIME),
            ("NaN", "non-finite-number", NONFINITE_TIME),
            ("-Infinity", "non-finite-number", NONFINITE_TIME),
            ("inf", "non-finite-number", NONFINITE_TIME),
            ("-nan", "non-finite-number", NONFINITE_TIME),
            ("null", "null-time", 0),
        ],
    )
    def test_a_time_that_is_none_keeps_the_event(self, text: str, kind: str, flags: int) -> None:
        result = scanned('[{"ph":"X","ts":' + text + ',"dur":1,"name":"a"}]')
        assert result.damage == {kind: (1, 16)}
        assert names(result) == ["a"]
        assert (result.events[0].ts_ns, result.events[0].flags) == (0, HAS_DUR | flags)

    def test_times_in_strings_are_counted(self) -> None:
        result = scanned('[{"ph":"X","ts":"1.5","dur":"2"},{"ph":"X","ts":"2","dur":3}]')
        assert [event.ts_ns for event in result.events] == [1500, 2000]
        assert result.damage == {"text-time": (2, 16)}

    def test_absent_times_have_no_flag(self) -> None:
        event = one('"ph":"X","name":"a"')
        assert (event.ts_ns, event.dur_ns, event.flags) == (0, 0, 0)


class TestIds:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("0", 0),
            ("9007199254740993", 9007199254740993),
            ("18446744073709551615", 2**64 - 1),
            ("-1", 2**64 - 1),
            ('"17"', 17),
            ('"0x1F"', 31),
            ('"0XffffFFFFffffFFFF"', 2**64 - 1),
            ('"0x00000000000000000000001"', 1),
            ("5.0", 5),
            ("1e3", 1000),
            ('"abc"', fnv1a(b"abc")),
            ('"a\\u00e9"', fnv1a("aé".encode())),
            ('""', fnv1a(b"")),
            ("1.5", fnv1a(b"1.5")),
            ("18446744073709551616", fnv1a(b"18446744073709551616")),
            ('"0x"', fnv1a(b"0x")),
            ("true", fnv1a(b"true")),
        ],
    )
    def test_ids(self, text: str, value: int) -> None:
        event = one(f'"ph":"s","id":{text}')
        assert (event.id, event.flags) == (value, HAS_ID)

    def test_scoped_ids(self) -> None:
        assert one('"ph":"b","id2":{"local":"0x2"}').id == 2
        assert one('"ph":"b","id2":{"global":7}').id == 7
        assert one('"ph":"b","id2":{"global":7},"id":3').id == 3
        assert one('"ph":"b","id2":{"other":7}').flags == 0

    def test_null_is_no_id(self) -> None:
        assert one('"ph":"b","id":null').flags == 0

    def test_bind_and_scope(self) -> None:
        assert one('"ph":"f","bp":"e"').flags == BIND_ENCLOSING
        assert one('"ph":"f","bp":"x"').flags == 0
        assert one('"ph":"i","s":"g"').flags == SCOPE_GLOBAL
        assert one('"ph":"i","s":"t"').flags == 0


class TestTexts:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('"plain"', "plain"),
            (r'"a\"b\\c\/d\b\f\n\r\te"', 'a"b\\c/d\b\f\n\r\te'),
            (r'"\u0041\u00e9\u4e2d\ud83d\ude00"', "Aé中😀"),
            ('"é中😀"', "é中😀"),
            (r'"\u0000x"', "\0x"),
            ("12", "12"),
            ("null", ""),
            ("true", "true"),
            ('{"a": "é"}', '{"a": "é"}'),
            ('"' + "x" * 1000 + '"', "x" * 1000),
        ],
    )
    def test_names(self, text: str, value: str) -> None:
        event = one(f'"ph":"X","name":{text},"cat":{text}')
        assert (event.name, event.category, event.flags) == (value, value, 0)

    def test_pid_and_tid_of_any_type(self) -> None:
        assert one('"pid":1,"tid":"stream 7"').track == ("1", "stream 7")
        assert one('"pid":"Spans","tid":null').track == ("Spans", "")
        assert one('"ph":"X"').track == ("", "")
        assert one('"pid":1234567890123,"tid":-5').track == ("1234567890123", "-5")

    def test_same_text_has_the_same_id(self) -> None:
        scanner = Scanner(KEYS)
        scanner.feed(rb'[{"name":"A","cat":"\u0041"},{"cat":"A","args":{"kind":"\u0041"}}]')
        scanner.close_input()
        segment = scanner.next_segment()
        assert segment.name.tolist() == [1, 0]
        assert segment.category.tolist() == [1, 1]
        assert segment.attribute(2)[1].tolist() == [1]
        assert texts_of(scanner) == ["", "A"]

    def test_texts_of_segments_are_there_before_the_end(self) -> None:
        data = json.dumps([{"ph": "X", "name": f"n{i}"} for i in range(50)]).encode()
        scanner = Scanner(KEYS, segment_events=10, window_bytes=100)
        scanner.feed(data)
        scanner.close_input()
        seen = 0
        for segment in iter(scanner.next_segment, None):
            for string in segment.name.tolist():
                assert scanner.string(string) == f"n{seen}"
                seen += 1
        assert seen == 50
        with pytest.raises(IndexError):
            scanner.string(51)

    def test_ids_follow_file_order_in_any_window(self) -> None:
        data = json.dumps([{"ph": "X", "name": f"n{i}", "pid": i} for i in range(50)]).encode()
        for size in SIZES:
            scanner = Scanner(KEYS, threads=2, window_bytes=size)
            scanner.feed(data)
            scanner.close_input()
            while scanner.next_segment():
                pass
            assert texts_of(scanner) == ["", *(f"n{i}" for i in range(50))]
            assert scanner.tracks() == [(str(i), "") for i in range(50)]


class TestArgs:
    def test_offset_and_length_are_those_of_the_raw_value(self) -> None:
        text = '{"traceEvents": [{"ph": "X", "args": {"a": [1, {"b": "}"}]} , "name": "é"}]}'
        event = everywhere(text.encode()).events[0]
        raw = text.encode()[event.args_offset : event.args_offset + event.args_length]
        assert json.loads(raw) == {"a": [1, {"b": "}"}]}

    def test_args_that_are_no_object(self) -> None:
        text = '[{"ph":"X","args":"abc"},{"ph":"X","args":[1]},{"ph":"X"}]'
        spans = [(e.args_offset, e.args_length) for e in scanned(text).events]
        assert [text[a : a + n] for a, n in spans] == ['"abc"', "[1]", ""]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("7", 7),
            ("-7", -7),
            ("9007199254740993", 9007199254740993),
            ("13835058055282163713", 13835058055282163713),
            ("18446744073709551615", 2**64 - 1),
            ("-9223372036854775808", -(2**63)),
            ('"42"', 42),
            ('"0x10"', 16),
            ("4.0", 4),
            ("4.5", None),
            ("18446744073709551616", None),
            ("-9223372036854775809", None),
            ("null", None),
            ("true", None),
            ("NaN", None),
            ("[7]", None),
            ('"x"', None),
        ],
    )
    def test_integers(self, text: str, value: int | None) -> None:
        event = one('"ph":"X","args":{"correlation":' + text + "}")
        assert event.attributes.get("correlation") == value

    def test_texts(self) -> None:
        event = one('"args":{"Input Dims": [[2, 3],  []], "kind":"a\\tb"}')
        assert event.attributes == {"Input Dims": "[[2, 3],  []]", "kind": "a\tb"}
        assert one('"args":{"kind":null}').attributes == {}
        assert one('"args":{"kind":5}').attributes == {"kind": "5"}

    def test_only_the_first_level_is_looked_at(self) -> None:
        event = one('"args":{"x":{"correlation":1},"y":[{"kind":"b"}],"correlation":2}')
        assert event.attributes == {"correlation": 2}

    def test_keys_may_be_spelled_with_escapes(self) -> None:
        event = one(r'"\u0070h":"X","\u006eame":"a","args":{"\u006bind":"b"}')
        assert (event.ph, event.name, event.attributes) == ("X", "a", {"kind": "b"})

    def test_counters(self) -> None:
        event = one('"args":{"a":1.5,"b":"2","c":-3,"d":NaN,"a":4,"":1e2,"e":null},"ph":"C"')
        assert event.counters == (("a", 4.0), ("c", -3.0), ("", 100.0))
        assert one('"ph":"X","args":{"a":1}').counters == ()

    def test_duplicate_keys_last_wins(self) -> None:
        text = '[{"ph":"X","name":"a","name":"b","ts":1,"ts":2,"args":{"correlation":1,"kind":"k"}'
        text += ',"args":{"correlation":3,"correlation":4}}]'
        result = everywhere(text.encode())
        event = result.events[0]
        assert (event.name, event.ts_ns, event.attributes) == ("b", 2000, {"correlation": 4})
        assert result.damage == {"duplicate-key": (1, text.index('"name":"b"'))}


EVENT = b'{"ph":"X","name":"%s","pid":1,"tid":2,"ts":1,"dur":2}'


class TestLayouts:
    def test_minified_and_indented_agree(self) -> None:
        document = {
            "schemaVersion": 1,
            "traceEvents": [
                {"ph": "X", "name": f"n{i}", "ts": i, "args": {"correlation": i, "x": [{}, []]}}
                for i in range(20)
            ],
            "traceName": "a]b",
        }
        dense = everywhere(json.dumps(document, separators=(",", ":")).encode())
        for indent in (0, 1, 4):
            loose = everywhere(json.dumps(document, indent=indent).encode())
            assert names(loose) == names(dense)
            assert [e.attributes for e in loose.events] == [e.attributes for e in dense.events]
            assert loose.metadata == [("schemaVersion", b"1"), ("traceName", b'"a]b"')]
            assert (loose.ended_cleanly, loose.damage) == (True, {})

    def test_kineto_layout(self) -> None:
        data = b"""\
{
  "schemaVersion": 1,
  "deviceProperties": [

  ],
  "traceEvents": [
  {
    "ph": "X",
    "cat": "cpu_op",
    "name": "aten::mm",
    "pid": 1,
    "tid": 2,
    "ts": 5175946074903.670,
    "dur": 2.400
    ,
    "args": {
      "External id": 1,"correlation": 9,
      "Input Dims": [[2, 3], []]
    }
  },
  {
    "ph": "f",
    "id": 258808,
    "pid": 0,
    "tid": 7,
    "ts": 1.5,
    "cat": "ac2g",
    "name": "ac2g"
    , "bp": "e"
  }
  ],
  "traceName": "x.json"
}
"""
        result = everywhere(data)
        op, flow = result.events
        assert (op.category, op.name, op.track) == ("cpu_op", "aten::mm", ("1", "2"))
        assert (op.ts_ns, op.dur_ns) == (5175946074903670, 2400)
        assert op.attributes == {"correlation": 9, "Input Dims": "[[2, 3], []]"}
        assert (flow.id, flow.flags) == (258808, HAS_TS | HAS_ID | BIND_ENCLOSING)
        assert [key for key, _ in result.metadata] == [
            "schemaVersion",
            "deviceProperties",
            "traceName",
        ]
        assert (result.ended_cleanly, result.damage) == (True, {})

    def test_bare_list(self) -> None:
        result = everywhere(b"[" + b",\n".join([EVENT % b"a", EVENT % b"b"]) + b"]\n")
        assert names(result) == ["a", "b"]
        assert (result.document_kind, result.ended_cleanly) == ("array", True)
        assert result.saw_trace_events

    def test_members_after_the_events(self) -> None:
        data = b'{"traceEvents":[%s],"distributedInfo":{"rank":1},"WARNING":["a","b\\"]"]}'
        result = everywhere(data % (EVENT % b"a"))
        assert result.metadata == [
            ("distributedInfo", b'{"rank":1}'),
            ("WARNING", b'["a","b\\"]"]'),
        ]

    def test_no_events(self) -> None:
        for data in (b'{"traceEvents":[]}', b"[]", b" [ ] "):
            result = everywhere(data)
            assert (result.events, result.saw_trace_events, result.ended_cleanly) == (
                [],
                True,
                True,
            )
        assert not everywhere(b'{"a":{"traceEvents":[]}}').saw_trace_events

    @pytest.mark.parametrize("data", [b"", b"  \n", b"garbage", b"\x89PNG\r\n", b"17", b'"a"'])
    def test_what_is_no_document(self, data: bytes) -> None:
        result = everywhere(data)
        assert (result.document_kind, result.num_documents) == ("none", 0)
        assert (result.events, result.ended_cleanly) == ([], False)

    def test_byte_order_mark(self) -> None:
        result = everywhere(b"\xef\xbb\xbf[" + EVENT % b"a" + b"]")
        assert (names(result), result.damage) == (["a"], {"bom": (1, 0)})

    def test_two_documents(self) -> None:
        first = b'{"rank":0,"traceEvents":[%s]}\n' % (EVENT % b"a")
        second = b'{"traceEvents":[%s],"rank":1}' % (EVENT % b"b")
        result = everywhere(first + second)
        assert names(result) == ["a", "b"]
        assert result.metadata == [("rank", b"0"), ("rank", b"1")]
        assert (result.num_documents, result.damage) == (2, {"second-document": (1, len(first))})

    def test_text_after_the_document(self) -> None:
        result = everywhere(b"[%s] done" % (EVENT % b"a"))
        assert (names(result), result.damage) == (["a"], {"trailing-data": (1, 55)})

    def test_huge_header_members_are_passed_over(self) -> None:
        huge = b'{"big":["%s"],"x":1,"traceEvents":[%s]}' % (b"y]" * 3_000_000, EVENT % b"a")
        for options in ({}, {"window_bytes": 1 << 16, "threads": 2}):
            result = scanned(huge, **options)
            assert (names(result), result.metadata) == (["a"], [("x", b"1")])
            assert result.damage == {"oversized-metadata": (1, 7)}

    def test_deep_nesting(self) -> None:
        deep = b"[" * 100_000 + b"]" * 100_000
        text = b'{"h":%s,"traceEvents":[{"ph":"X","args":{"a":%s}},%s]}'
        result = scanned(text % (deep, deep, EVENT % b"b"), threads=2)
        assert names(result) == ["", "b"]
        assert (result.damage, result.ended_cleanly) == ({}, True)


def between(bad: bytes) -> Scanned:
    """A bad event between two good ones."""
    return everywhere(b'{"traceEvents":[\n%s,\n%s,\n%s\n]}' % (EVENT % b"a", bad, EVENT % b"b"))


BAD_AT = 71
"""Offset of the bad event in ``between``."""


class TestDamage:
    @pytest.mark.parametrize(
        "bad",
        [
            rb'{"ph":"X","name":"pkg\cache.py","ts":1}',
            rb'{"ph":"X","cat":"a\x","ts":1}',
            rb'{"ph":"X","name":"\u12","ts":1}',
            rb'{"ph":"X","name":"C:\","ts":1}',
            b'{"ph":"X","name":"{"axis": "x", "kind": "f32"}(7): step","ts":1}',
            b'{"ph":"X","name":"say "hi"","ts":1}',
            b'{"ph":"X","name":"a,"ts":1}',
            b'{"ph":"X","args":{"k":"v},"ts":1}',
            b'{"ph":"X" "name":"a"}',
            b'{"ph":"X","name":}',
            b'{"ph":"X","ts":1..5}',
            b'{"ph":"X","ts":1e}',
            b'{"ph":"X","ts":-}',
            b'{"ph":"X","ts":truth}',
            b'{"ph":"X","args":{"a":[1,2}}',
            b'{"ph":"X","args":{"a":[1,,2]}}',
            b'{"ph":"X","args":{"a":}}',
            b'{"ph":"X","args":{:1}}',
            b'{"ph":"X","args":{"a":1]}',
            b'{"ph":"X","args":[}',
            b'{"ph":"X","name":"a"}}',
            b'{ph:"X"}',
            b"{'ph':'X'}",
            b'{"ph":"X","name":"a"',
            b'["ph","X"]',
            b"17",
            b'"text"',
            b"null",
            b"@",
            b"",
        ],
    )
    def test_an_unreadable_event_is_one(self, bad: bytes) -> None:
        result = between(bad)
        assert names(result)[0] == "a"
        assert names(result)[-1] == "b"
        count, first = result.damage["unreadable-event"]
        assert (count, set(result.damage)) == (1, {"unreadable-event"})
        assert BAD_AT <= first <= BAD_AT + len(bad) + 20
        assert result.ended_cleanly

    def test_the_place_of_an_unreadable_event_is_its_first_bad_byte(self) -> None:
        assert between(rb'{"ph":"X","name":"a\cb"}').damage["unreadable-event"][1] == BAD_AT + 19
        assert between(b'{"ph":"X","name":"a"b"}').damage["unreadable-event"][1] == BAD_AT + 20

    @pytest.mark.parametrize(
        ("bad", "kind", "offset", "name"),
        [
            (b'{"ph":"X","name":"a\x01\x1bc"}', "control-character", 19, "a\x01\x1bc"),
            (b'{"ph":"X","name":"a\nc"}', "control-character", 19, "a\nc"),
            (b'{"ph":"X","name":"a\0c"}', "control-character", 19, "a\0c"),
            (b'{"ph":"X","name":"a\xff\xfec"}', "invalid-utf8", 19, "a��c"),
            (b'{"ph":"X","name":"a\xe4\xb8"}', "invalid-utf8", 19, "a�"),
            (b'{"ph":"X","name":"a\xed\xa0\x80"}', "invalid-utf8", 19, "a���"),
            (b'{"ph":"X","name":"a\xf0\x9f\x98c"}', "invalid-utf8", 19, "a�c"),
            (rb'{"ph":"X","name":"a\ud800c"}', "lone-surrogate", 19, "a�c"),
            (rb'{"ph":"X","name":"a\udc00"}', "lone-surrogate", 19, "a�"),
            (rb'{"ph":"X","name":"\ud800\ud83d\ude00"}', "lone-surrogate", 18, "�😀"),
            (rb'{"ph":"X","name":"n","args":{"a":"C:\Users"}}', "bad-escape", 36, "n"),
            (b'{"ph":"X","name":"n","args":{"a":"\x02"}}', "control-character", 34, "n"),
            (b'{"ph":"X","name":"n",}', "trailing-comma", 20, "n"),
            (b'{"ph":"X","name":"n","args":{"a":[1,],}}', "trailing-comma", 35, "n"),
        ],
    )
    def test_repaired_events_are_kept(self, bad: bytes, kind: str, offset: int, name: str) -> None:
        result = between(bad)
        assert names(result) == ["a", name, "b"]
        assert [event.flags & REPAIRED for event in result.events] == [0, REPAIRED, 0]
        assert result.damage == {kind: (1, BAD_AT + offset)}

    @pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"inf", b"-inf", b"nan"])
    def test_numbers_that_are_not_finite(self, word: bytes) -> None:
        result = between(b'{"ph":"X","name":"n","args":{"a":%s}}' % word)
        assert names(result) == ["a", "n", "b"]
        assert result.damage == {"non-finite-number": (1, BAD_AT + 33)}
        assert result.events[1].flags == 0

    def test_bad_escape_in_a_lifted_text_stays_as_it_is(self) -> None:
        event = between(rb'{"ph":"X","args":{"kind":"C:\Users\u12"}}').events[1]
        assert event.attributes == {"kind": r"C:\Users\u12"}

    def test_an_event_swallowed_by_an_open_string_is_found(self) -> None:
        data = b'[{"ph":"X","args":{"k":"v}},\n%s,\n%s]' % (EVENT % b"b", EVENT % b"c")
        result = everywhere(data)
        assert (names(result), result.damage["unreadable-event"][0]) == (["b", "c"], 1)

    def test_an_event_cut_in_the_middle_of_the_file(self) -> None:
        data = b'[%s,{"ph":"X","name":"mid%s,%s]' % (EVENT % b"a", EVENT % b"b", EVENT % b"c")
        result = everywhere(data)
        assert (names(result), result.damage["unreadable-event"][0]) == (["a", "b", "c"], 1)

    def test_commas(self) -> None:
        event = EVENT % b"a"
        assert everywhere(b"[%s,]" % event).damage == {"trailing-comma": (1, 54)}
        missing = everywhere(b"[%s %s]" % (event, event))
        assert (names(missing), missing.damage) == (["a", "a"], {"missing-comma": (1, 54)})
        double = everywhere(b"[%s,,%s]" % (event, event))
        assert (names(double), double.damage) == (["a", "a"], {"unreadable-event": (1, 54)})

    def test_the_rest_of_the_document_is_read_after_a_bad_last_event(self) -> None:
        bad = b'{"ph":"X","name":"say "hi""}'
        data = b'{"traceEvents":[%s,%s],"distributedInfo":{"a":[{}],"rank":3},"x":[{}]}\n'
        result = everywhere(data % (EVENT % b"a", bad))
        assert (names(result), result.ended_cleanly) == (["a"], True)
        assert result.metadata == [("distributedInfo", b'{"a":[{}],"rank":3}'), ("x", b"[{}]")]
        assert everywhere(b"[%s,%s]\n" % (EVENT % b"a", bad)).ended_cleanly

    def test_args_of_a_bad_event_are_not_taken_for_events(self) -> None:
        bad = b'{"ph":"M","name":"a"b","args":{"name":"CPU","list":[{"name":"x"},{"name":"y"}]}}'
        assert names(between(bad)) == ["a", "b"]

    def test_every_cut_keeps_the_whole_events(self) -> None:
        parts = [EVENT % b"a", rb'{"ph":"X","name":"\\\"},{","args":{"l":[{"name":"z"},{"ts":1}]}}']
        data = b'{"h":"x","traceEvents":[' + b",".join([*parts, EVENT % b"c"]) + b'],"t":"]"}'
        ends = [data.index(parts[0]) + len(parts[0]), data.index(parts[1]) + len(parts[1])]
        ends.append(data.index(EVENT % b"c") + len(EVENT % b"c"))
        for cut in range(1, len(data)):
            result = scanned(data[:cut], window_bytes=16, threads=2)
            assert len(result.events) == sum(end <= cut for end in ends)
            assert not result.ended_cleanly
            assert set(result.damage) == {"truncated"}

    def test_truncated_place(self) -> None:
        whole = b"[%s," % (EVENT % b"a")
        assert everywhere(whole + b'{"ph":"X","na').damage == {"truncated": (1, len(whole))}
        assert everywhere(whole).damage == {"truncated": (1, len(whole))}

    def test_damaged_header(self) -> None:
        data = b'{"host":"a"b","traceEvents" : [%s],"x":1}' % (EVENT % b"a")
        result = everywhere(data)
        assert (names(result), result.metadata) == (["a"], [("host", b'"a"'), ("x", b"1")])
        assert result.damage == {"unreadable-member": (1, 11)}

    def test_log_lines_with_bare_quotes_in_the_header(self) -> None:
        data = b'{"WARNING":["a "quoted" word","b"],"traceEvents":[%s]}' % (EVENT % b"a")
        assert names(everywhere(data)) == ["a"]

    def test_damage_after_the_events(self) -> None:
        result = everywhere(b'{"traceEvents":[%s],"x":oops}' % (EVENT % b"a"))
        assert (names(result), result.ended_cleanly) == (["a"], False)
        assert result.damage == {"unreadable-member": (1, 74)}

    def test_an_event_beyond_the_limit_is_unreadable(self) -> None:
        long = b'{"ph":"X","name":"%s"}' % (b"x" * 500)
        data = b"[%s,%s,%s]" % (EVENT % b"a", long, EVENT % b"b")
        results = [
            scanned(data, max_event_bytes=300, window_bytes=size, threads=2) for size in SIZES
        ]
        assert all(result == results[0] for result in results)
        assert names(results[0]) == ["a", "b"]
        assert results[0].damage == {"unreadable-event": (1, 54 + 300)}

    def test_null_time_and_several_kinds_in_one_event_count_once_each(self) -> None:
        result = between(b'{"ph":"X","ts":null,"dur":null,"name":"\x01\x01\xff\xff"}')
        assert result.damage == {
            "null-time": (1, BAD_AT + 15),
            "control-character": (1, BAD_AT + 39),
            "invalid-utf8": (1, BAD_AT + 41),
        }


class TestCases:
    """The hand-computed cases of the shared folder that concern the reading of a file."""

    def result(self, shared: Path, case: str, name: str, **options: int) -> Scanned:
        scanner = Scanner(KEYS, **options)
        scanner.open(str(shared / "cases" / case / name))
        return result_of(scanner, KEYS)

    def test_01_control_characters(self, shared: Path) -> None:
        result = self.result(shared, "01", "control_and_bad_utf8.json")
        assert len(result.events) == 8
        assert sum(bool(event.flags & REPAIRED) for event in result.events) == 2
        assert {kind: n for kind, (n, _) in result.damage.items()} == {
            "control-character": 1,
            "invalid-utf8": 1,
        }

    @pytest.mark.parametrize(
        ("name", "offset"), [("unescaped_quote.json", 176), ("unescaped_backslash.json", 177)]
    )
    def test_02_unescaped(self, shared: Path, name: str, offset: int) -> None:
        result = self.result(shared, "02", name)
        assert names(result) == ["aten::mm", "gemm"]
        assert result.damage == {"unreadable-event": (1, offset)}

    def test_02_silent(self, shared: Path) -> None:
        result = self.result(shared, "02", "silent_backslash.json")
        assert names(result)[1] == "site\torch\nn\functional.py(5): relu"
        assert result.damage == {}

    @pytest.mark.parametrize(
        ("name", "num_events"), [("truncated.json", 8), ("no_closing_brackets.json", 9)]
    )
    def test_03_truncated(self, shared: Path, name: str, num_events: int) -> None:
        result = self.result(shared, "03", name)
        assert len(result.events) == num_events
        assert (set(result.damage), result.ended_cleanly) == ({"truncated"}, False)

    def test_14_epoch_microseconds(self, shared: Path) -> None:
        _, b, c = self.result(shared, "14", "epoch_us.json").events
        assert c.ts_ns - (b.ts_ns + b.dur_ns) == 1

    def test_32_64_bit_ids(self, shared: Path) -> None:
        events = self.result(shared, "32", "bigint.json").events
        correlations = [e.attributes["correlation"] for e in events if e.attributes]
        assert correlations == [2**53, 2**53 + 1, 2**53, 2**53 + 1]

    def test_37_brackets_in_the_trace_name(self, shared: Path) -> None:
        name = "fit-profiler-[Strategy]SingleDevice.pt.trace.json"
        result = self.result(shared, "37", name)
        assert (names(result), result.damage) == (["gemm"], {})
        assert result.metadata[-1] == ("traceName", f'"{name}"'.encode())

    def test_every_case_equals_the_oracle(self, shared: Path) -> None:
        for path in sorted((shared / "cases").glob("*/*.json")):
            oracle = ReferenceScanner(KEYS)
            oracle.open(str(path))
            try:
                wanted = result_of(oracle, KEYS)
            except ValueError:
                continue
            for size in (64, 1 << 20):
                scanner = Scanner(KEYS, threads=2, window_bytes=size)
                scanner.open(str(path))
                assert result_of(scanner, KEYS) == wanted, path

    def test_every_small_real_trace_equals_the_oracle(self, shared: Path) -> None:
        num_events = 0
        for path in sorted((shared / "traces").rglob("*.json*")):
            data = path.read_bytes()
            if path.suffix == ".gz":
                data = gzip.decompress(data)
            if len(data) > 200_000:
                continue
            wanted = scan(ReferenceScanner, data, KEYS)
            assert scanned(data, threads=2, window_bytes=10_000) == wanted, path
            num_events += len(wanted.events)
        assert num_events > 200


LOOKALIKES = [
    {"ph": "X", "name": '},{"ph":"X","name":"no"},', "args": {"x": '},\n{"name":'}},
    {"ph": "X", "name": "},{", "cat": ":", "args": {"ph": "},{"}},
    {"args": {"list": [{"ph": "X"}, {"name": "no"}, {"ts": 1}]}, "name": "nested", "ph": "X"},
    {"name": "long", "ph": "X", "args": {"list": [{"name": "no", "args": {}}] * 40}},
    {"name": "\\", "cat": '\\"', "ph": "X"},
]


class TestWindows:
    def test_text_that_looks_like_events_is_not_taken_for_them(self) -> None:
        document = {"a": [{"ph": "X"}, {"name": "no"}], "traceEvents": LOOKALIKES * 5}
        document["b"] = [{"ph": "X"}, {"name": "no"}]
        for indent in (None, 1):
            data = json.dumps(document, indent=indent).encode()
            wanted = scan(ReferenceScanner, data, KEYS)
            assert len(wanted.events) == 25
            for threads in (1, 2, 3):
                for size in (*range(1, 40), 100, 333, 1000, 10_000):
                    assert scanned(data, window_bytes=size, threads=threads) == wanted

    def test_events_longer_than_windows(self) -> None:
        events = [{"ph": "X", "name": "n" * 10_000, "args": {"kind": "k" * 20_000}}] * 3
        data = json.dumps(events).encode()
        result = scanned(data, window_bytes=100, threads=2)
        assert [(len(e.name), len(str(e.attributes["kind"]))) for e in result.events] == [
            (10_000, 20_000)
        ] * 3

    def test_events_longer_than_the_room_before_a_window(self) -> None:
        events = [{"ph": "X", "name": "n" * 200_000}, {"ph": "X", "name": "b"}] * 3
        data = json.dumps(events).encode()
        result = scanned(data, window_bytes=1 << 12, threads=2)
        assert [len(name) for name in names(result)] == [200_000, 1] * 3

    def test_more_strings_than_a_worker_keeps(self) -> None:
        num_events = 450_000
        events = (b'{"ph":"X","name":"n%d","pid":%d}' % (i, i % 7) for i in range(num_events))
        scanner = Scanner(KEYS, threads=2)
        scanner.feed(b"[" + b",".join(events) + b"]")
        scanner.close_input()
        named, tracks = [], []
        for segment in iter(scanner.next_segment, None):
            named += segment.name.tolist()
            tracks += segment.track.tolist()
        assert named == list(range(1, num_events + 1))
        assert tracks == [i % 7 for i in range(num_events)]
        assert scanner.string(num_events) == f"n{num_events - 1}"

    def test_more_keys_than_are_predicted(self) -> None:
        keys = [f"key {i}" for i in range(3000)]
        events = [{"ph": "X", "args": {key: i}} for i, key in enumerate(keys)] * 2
        events += [{"args": dict.fromkeys(keys, 1), "ph": "X"}, {f"other {k}": 1 for k in keys}]
        wanted = [("key 2", "int"), ("key 1500", "text"), ("key 2999", "int")]
        result = scan(Scanner, json.dumps(events).encode(), wanted)
        found = [(i, e.attributes) for i, e in enumerate(result.events) if e.attributes]
        assert found == [
            (2, {"key 2": 2}),
            (1500, {"key 1500": "1500"}),
            (2999, {"key 2999": 2999}),
            (3002, {"key 2": 2}),
            (4500, {"key 1500": "1500"}),
            (5999, {"key 2999": 2999}),
            (6000, {"key 2": 1, "key 1500": "1", "key 2999": 1}),
        ]

    def test_segments_come_in_file_order(self) -> None:
        events = [{"ph": "X", "name": "a", "ts": i} for i in range(5000)]
        scanner = Scanner(KEYS, threads=3, segment_events=100, window_bytes=1024)
        scanner.feed(json.dumps(events).encode())
        scanner.close_input()
        segments = list(iter(scanner.next_segment, None))
        assert len(segments) > 20
        assert all(100 <= s.num_events < 200 for s in segments[:-1])
        assert [t for s in segments for t in s.ts_ns.tolist()] == [i * 1000 for i in range(5000)]

    def test_rows_of_attributes_and_counters_are_those_of_the_segment(self) -> None:
        events = [
            {"ph": "C", "name": "a", "ts": i, "args": {"v": i, "correlation": -i}}
            for i in range(3000)
        ]
        scanner = Scanner(KEYS, threads=2, segment_events=500, window_bytes=4096)
        scanner.feed(json.dumps(events).encode())
        scanner.close_input()
        for segment in iter(scanner.next_segment, None):
            rows, bits, negative = segment.attribute(0)
            assert rows.tolist() == list(range(segment.num_events))
            ts = [t // 1000 for t in segment.ts_ns.tolist()]
            assert (-(bits.astype("int64"))).tolist() == ts
            assert negative.tolist() == [t > 0 for t in ts]
            assert segment.counters()[2][::2].tolist() == ts

    def test_a_file_and_a_stream_give_the_same(self, tmp_path: Path) -> None:
        data = json.dumps({"traceEvents": LOOKALIKES * 100, "z": 1}).encode()
        path = tmp_path / "t.json"
        path.write_bytes(data)
        wanted = scanned(data)
        for options in ({}, {"threads": 3, "window_bytes": 1000}):
            scanner = Scanner(KEYS, **options)
            scanner.open(str(path))
            assert result_of(scanner, KEYS) == wanted
            scanner = Scanner(KEYS, **options)
            for start in range(0, len(data), 77):
                scanner.feed(memoryview(data)[start : start + 77])
            scanner.close_input()
            assert result_of(scanner, KEYS) == wanted


def big_stream(scanner: Any, num_events: int = 100_000) -> None:
    data = b",".join([EVENT % b"a"] * 1000)
    scanner.feed(b"[" + data)
    for _ in range(num_events // 1000 - 1):
        scanner.feed(b"," + data)
    scanner.feed(b"]")
    scanner.close_input()


class TestThreads:
    def test_dropping_a_scanner_early_stops_it(self, tmp_path: Path) -> None:
        path = tmp_path / "t.json"
        path.write_bytes(b"[" + b",".join([EVENT % b"a"] * 200_000) + b"]")
        before = threading.active_count()
        for taken in (0, 1, 2):
            scanner = Scanner(KEYS, threads=3, segment_events=1000, window_bytes=10_000)
            scanner.open(str(path))
            for _ in range(taken):
                assert scanner.next_segment().num_events >= 1000
            del scanner
            gc.collect()
        assert threading.active_count() == before

    def test_dropping_a_scanner_without_input(self) -> None:
        for _ in range(20):
            Scanner(KEYS, threads=3)

    def test_a_stream_waits_for_its_consumer(self) -> None:
        scanner = Scanner(KEYS, threads=2, segment_events=1000, window_bytes=10_000)
        feeder = threading.Thread(target=big_stream, args=(scanner,))
        total = 0
        first = threading.Event()

        def consume() -> None:
            nonlocal total
            for segment in iter(scanner.next_segment, None):
                first.set()
                total += segment.num_events

        consumer = threading.Thread(target=consume)
        consumer.start()
        feeder.start()
        feeder.join(60)
        consumer.join(60)
        assert first.is_set()
        assert total == 100_000

    def test_feeding_and_taking_in_one_thread_does_not_lock_up(self) -> None:
        scanner = Scanner(KEYS, threads=2, segment_events=1000, window_bytes=10_000)
        big_stream(scanner)
        assert sum(s.num_events for s in iter(scanner.next_segment, None)) == 100_000

    def test_stop_frees_a_waiting_feeder(self) -> None:
        scanner = Scanner(KEYS, threads=1, segment_events=1000, window_bytes=10_000)
        ready = threading.Event()

        def feed() -> None:
            ready.wait(10)
            big_stream(scanner, 1_000_000)

        feeder = threading.Thread(target=feed)
        feeder.start()
        taker = threading.Thread(target=scanner.next_segment)
        taker.start()
        ready.set()
        taker.join(60)
        scanner.stop()
        feeder.join(60)
        assert not feeder.is_alive()
        assert scanner.next_segment() is None


class TestErrors:
    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            Scanner(KEYS).open(str(tmp_path / "none.json"))

    def test_directory(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError):
            Scanner(KEYS).open(str(tmp_path))

    def test_wrong_options(self) -> None:
        for options in ({"threads": 0}, {"segment_events": 0}, {"window_bytes": 0}):
            with pytest.raises(ValueError, match="out of range"):
                Scanner(KEYS, **options)
        with pytest.raises(ValueError, match="int"):
            Scanner([("a", "float")])

    def test_results_are_there_only_at_the_end(self) -> None:
        scanner = Scanner(KEYS)
        scanner.feed(b"[")
        with pytest.raises(RuntimeError, match="read to its end"):
            scanner.damage()

    def test_second_input(self, tmp_path: Path) -> None:
        path = tmp_path / "t.json"
        path.write_bytes(b"[]")
        scanner = Scanner(KEYS)
        scanner.open(str(path))
        with pytest.raises(RuntimeError, match="input already"):
            scanner.open(str(path))

    def test_feed_wants_bytes(self) -> None:
        with pytest.raises(TypeError):
            Scanner(KEYS).feed("text")
