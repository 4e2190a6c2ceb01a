"""Reads an event's args back from the source file, by byte offset."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import IO, Any, cast

from isal import igzip, igzip_lib

from trnscope.errors import TraceFormatError
from trnscope.store.lock import FileIdentity

_READ_ERRORS: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    zlib.error,
    cast(type[Exception], igzip_lib.IsalError),
)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_TEXT_OR_REST = re.compile(r'("(?:[^"\\]|\\.)*")|([^"]+)', re.DOTALL)
_NUMBERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(?:inf|infinity)\b"), "Infinity"),
    (re.compile(r"(?i)\bnan\b"), "NaN"),
    (re.compile(r"(?<![\w.])(-?)\+?\.(?=\d)"), r"\g<1>0."),
    (re.compile(r"(?<![\w.])\+(?=\d)"), ""),
    (re.compile(r"(?<![\w.])(-?)0+(?=\d)"), r"\1"),
)
"""Numbers that are no JSON, as some writers print them, and what they stand for."""


class ArgsReader:
    """Args of events, from a plain or gzip-compressed source.

    A compressed source is inflated from its start up to the event; reading in rising order
    of offset inflates it once.
    """

    def __init__(self, path: Path, identity: FileIdentity | None = None) -> None:
        """Read from ``path``, which must still be the file of ``identity``, if given."""
        self._path = path
        self._identity = identity
        self._file: IO[bytes] | None = None

    def text(self, offset: int, length: int) -> bytes:
        """The raw JSON text; empty where ``length`` is 0."""
        if length == 0:
            return b""
        try:
            file = self._open()
            file.seek(offset)
            text = file.read(length)
        except _READ_ERRORS as error:
            raise TraceFormatError(self._path, f"args cannot be read ({error})") from error
        if len(text) != length:
            raise TraceFormatError(self._path, "is shorter than when it was read first")
        return text

    def value(self, offset: int, length: int) -> dict[str, Any]:
        """The decoded args; bad bytes and escapes are repaired as the scanner does."""
        text = self.text(offset, length)
        if not text:
            return {}
        decoded = text.decode("utf-8", "replace")
        try:
            value = _loads(decoded)
        except json.JSONDecodeError as error:
            raise TraceFormatError(
                self._path, f"args are no JSON ({error.msg})", offset=offset
            ) from error
        except RecursionError as error:
            raise TraceFormatError(self._path, "args are nested too deep", offset=offset) from error
        return value if isinstance(value, dict) else {"args": value}

    def _open(self) -> IO[bytes]:
        if self._file is None:
            if self._identity is not None and self._identity.has_changed(self._path):
                raise TraceFormatError(self._path, "was changed since it was read")
            with self._path.open("rb") as file:
                compressed = file.read(2) == b"\x1f\x8b"
            # IGzipFile is untyped; it is a binary file like any other.
            opener: Any = igzip.IGzipFile if compressed else Path.open
            opened: IO[bytes] = opener(self._path, "rb")
            self._file = opened
        return self._file


def _loads(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        repaired = _BAD_ESCAPE.sub(r"\\\\", text)
        return json.loads(_TEXT_OR_REST.sub(_with_plain_numbers, repaired), strict=False)


def _with_plain_numbers(part: re.Match[str]) -> str:
    """A string as it is; of anything else the numbers as JSON writes them."""
    if part[1] is not None:
        return part[1]
    rest = part[2]
    for pattern, plain in _NUMBERS:
        rest = pattern.sub(plain, rest)
    return rest
