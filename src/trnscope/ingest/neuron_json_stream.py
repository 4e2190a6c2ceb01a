"""Reads a JSON document member by member, in bounded memory and up to where it is cut off."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any

_BOM = "\ufeff"
_BLANK = " \t\r\n"
_MAX_DIGITS = 40
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
        self.problem: str | None = None
        """Null while all is well."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        try:
            yield from self._document()
        except (_Cut, RecursionError) as error:
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
        while True:
            mark = self._next()
            if mark == "]":
                self._at += 1
                return
            if mark == ",":
                self._at += 1
                continue
            yield self._value()

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
            except json.JSONDecodeError:
                self._read_more()
                continue
            except ValueError:  # an integer of more digits than Python takes
                value, end = self._parse_digits(self._text, self._at)
            # ``1`` may turn out to be ``10``, and in ``1e`` only the ``1`` was read.
            if self._text[end : end + 1] not in _AFTER_VALUE and self._try_more():
                continue
            self._at = end
            return value

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


def _int_or_digits(digits: str) -> int | str:
    """An integer; one that no field of a profile holds stays a text."""
    return int(digits) if len(digits) <= _MAX_DIGITS else digits
