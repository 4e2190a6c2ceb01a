"""Reads a JSON document member by member, in bounded memory and up to where it is cut off.

A damaged object of a list is passed over: to where its brackets close, or, where a quote is missing
and they cannot be told, to the next object that begins like those before it.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

_BOM = "\ufeff"
_BLANK = " \t\r\n"
_MAX_DIGITS = 40
_NEAR_END = 16
"""A fault so close to the end of the text may be a value that goes on."""
_MAX_STRING = 1 << 24
"""Characters of one string; where more pass without a quote, one is missing."""
_MAX_DAMAGED = 1 << 22
"""Characters in which the brackets of a damaged object are looked for."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_NEXT = re.compile(r"[{\[\],]")
_SEAM = re.compile(r",\s*\{")
"""Between two objects of a list."""
_SEAM_AT_END = re.compile(r'\}\s*,\s*\{\s*"$')
_SEAM_LENGTH = 256
_FIRST_KEY = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_AFTER_VALUE = frozenset(",:]} \t\r\n")


class JsonStream:
    """Yields ``(member, value)``; of a member that is a list, each of its values.

    The name is empty for the values of a document that is itself a list. A document that is cut
    off or damaged gives what stands before; ``problem`` then says where it stopped.
    """

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._parse = json.JSONDecoder(strict=False).raw_decode
        self._parse_digits = json.JSONDecoder(strict=False, parse_int=_int_or_digits).raw_decode
        self._text = ""
        self._at = 0
        self._passed = 0
        self._ended = False
        self._first_key: str | None = None
        self.problem: str | None = None
        """Null while the document's end is reached."""
        self.num_skipped = 0
        """Damaged values of lists that were passed over."""
        self.first_skipped: int | None = None
        """At which character the first of them begins."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        try:
            yield from self._document()
        except (_Cut, _Damaged, RecursionError) as error:
            where = self._passed + self._at
            reason = "is cut off" if isinstance(error, _Cut) and self._is_done() else "is damaged"
            self.problem = (
                f"the document {reason} at character {where}; what stands before was read"
            )

    def _document(self) -> Iterator[tuple[str, Any]]:
        first = self._next()
        if first == _BOM:
            self._at += 1
            first = self._next()
        if first == "[":
            for value in self._values():
                yield "", value
        elif first == "{":
            yield from self._members()
        else:
            raise _Cut

    def _members(self) -> Iterator[tuple[str, Any]]:
        self._at += 1
        while True:
            mark = self._next()
            if mark == "}":
                return
            if mark == ",":
                self._at += 1
                continue
            key = self._value()
            if not isinstance(key, str) or self._next() != ":":
                raise _Cut
            self._at += 1
            if self._next() == "[":
                for value in self._values():
                    yield key, value
            else:
                yield key, self._value()

    def _values(self) -> Iterator[Any]:
        self._at += 1
        self._first_key = None
        while True:
            mark = self._next()
            if mark == "]":
                self._at += 1
                return
            if mark == ",":
                self._at += 1
                continue
            try:
                value = self._value()
            except (_Cut, _Damaged) as error:
                self._skip(error)
                continue
            if isinstance(value, dict):
                self._first_key = next(iter(value), None)
            yield value

    # Damage -------------------------------------------------------------------------------

    def _skip(self, error: Exception) -> None:
        """Pass over the damaged value that begins here; raises where nothing follows it."""
        begin = self._passed + self._at
        closes = self._skip_brackets() if self._text[self._at] in "{[" else self._skip_rubbish()
        if not closes and isinstance(error, _Cut):
            raise error
        self.num_skipped += 1
        if self.first_skipped is None:
            self.first_skipped = begin
        if not closes:
            self._skip_to_seam()

    def _skip_rubbish(self) -> bool:
        """To what may be the next value, from what is none."""
        while (found := _NEXT.search(self._text, self._at + 1)) is None:
            self._at = len(self._text) - 1
            if not self._try_more():
                return False
        self._at = found.start()
        return True

    def _skip_brackets(self) -> bool:
        """To where the brackets of this value close, if they do."""
        while (end := _end_of_brackets(self._text, self._at)) is None:
            if len(self._text) - self._at > _MAX_DAMAGED or not self._try_more():
                return False
        self._at = max(end, self._at)
        return end > 0

    def _skip_to_seam(self) -> None:
        """To the next object that begins as the last sound one did."""
        while True:
            seam = _SEAM.search(self._text, self._at)
            if seam is None:
                # A seam may lie across the end of what was read.
                self._at = max(self._at, len(self._text) - _SEAM_LENGTH)
                self._read_more()
                continue
            self._at = seam.end() - 1
            if self._first_key in (None, self._key_here()):
                return

    def _key_here(self) -> str | None:
        """The first key of the object that begins here."""
        while (key := _FIRST_KEY.match(self._text, self._at)) is None:
            if len(self._text) - self._at > _MAX_DAMAGED or not self._try_more():
                return None
        return key[1]

    # Text ---------------------------------------------------------------------------------

    def _next(self) -> str:
        """The next character that is no blank; it is not passed."""
        while True:
            text = self._text
            while self._at < len(text) and text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(text):
                return text[self._at]
            self._read_more()

    def _value(self) -> Any:
        """The value that begins here. A number at the end may go on in the next chunk."""
        while True:
            try:
                value, end = self._parse(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._is_damage(error):
                    raise _Damaged from error
                self._read_more()
                continue
            except ValueError:  # an integer of more digits than Python takes
                value, end = self._parse_digits(self._text, self._at)
            # ``1`` may turn out to be ``10``, and in ``1e`` only the ``1`` was read.
            if self._text[end : end + 1] not in _AFTER_VALUE and self._try_more():
                continue
            self._at = end
            return value

    def _is_damage(self, error: json.JSONDecodeError) -> bool:
        """Whether reading on would not help."""
        left = len(self._text) - error.pos
        return left > (_MAX_STRING if error.msg.startswith("Unterminated") else _NEAR_END)

    def _read_more(self) -> None:
        if not self._try_more():
            raise _Cut

    def _try_more(self) -> bool:
        """Read at least as much again as is waiting, so that long values cost linear time."""
        if self._ended:
            return False
        waiting = self._text[self._at :]
        parts, size = [waiting], 0
        while size <= len(waiting) and not self._ended:
            chunk = next(self._chunks, None)
            self._ended = chunk is None
            part = self._decode.decode(chunk or b"", final=self._ended)
            parts.append(part)
            size += len(part)
        self._passed += self._at
        self._text, self._at = "".join(parts), 0
        return size > 0

    def _is_done(self) -> bool:
        """Whether the text ends in what could have gone on."""
        return self._ended and not self._text[self._at :].lstrip(_BLANK).startswith(("}", "]"))


class _Cut(Exception):
    """No further value can be had."""


class _Damaged(Exception):
    """What stands here is no value, whatever follows."""


def _end_of_brackets(text: str, at: int) -> int | None:
    """Where the object or list that begins here ends.

    Null where the text ends before; 0 where it cannot be told: brackets of two kinds cross, or what
    should be a string spans two objects, since a quote is missing.
    """
    closing: list[str] = []
    for match in _TOKEN.finditer(text, at):
        token = match[0]
        if token in "{[":
            closing.append("}" if token == "{" else "]")
        elif token in "}]":
            if closing.pop() != token:
                return 0
            if not closing:
                return match.end()
        elif _SEAM_AT_END.search(token):
            return 0
    return None


def _int_or_digits(digits: str) -> int | str:
    """An integer; one that no field of a profile holds stays a text."""
    return int(digits) if len(digits) <= _MAX_DIGITS else digits
