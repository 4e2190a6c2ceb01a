"""Text that is safe to print: a trace may hold anything in its names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.text import Text

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """``text`` on one line, with no character that a terminal would obey.

    Control and escape characters, line breaks, bidirectional overrides, invisible and
    unassigned characters and lone surrogates become visible escapes (``\\x1b``, ``\\u202e``);
    every kind of space becomes a plain one.
    """
    if text.isprintable():
        return text
    return "".join(map(_printable_char, text))


def _printable_char(char: str) -> str:
    if char.isprintable():
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isspace() and char not in "\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029":
        return " "
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` terminal cells: the middle goes, both ends stay.

    The ends of a kernel's name tell it from its neighbours, so neither is cut.
    """
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    head = (width - 1) // 2
    return set_cell_size(text, head).rstrip() + "…" + _tail(text, width - 1 - head)


def shorten_name(text: str, width: int) -> str:
    """``text`` as :func:`shorten` cuts it; a C++ function loses first what tells nothing.

    That is its parameters, which repeat its template arguments, then namespaces and the array
    of pointers that torch's element-wise kernels all take.
    """
    if cell_len(text) <= width:
        return text
    text = _without_parameters(text)
    if cell_len(text) > width and "<" in text:
        text = _NAMESPACE.sub("", _POINTERS.sub("", text)).removeprefix("void ")
    return shorten(text, width)


_NAMESPACE = re.compile(r"(?:(?:\w+|\(anonymous namespace\))::)+")
_POINTERS = re.compile(r", std::array<char ?\*, \d+u?l*>")


def _without_parameters(text: str) -> str:
    if not text.endswith(")") or not ("::" in text or "<" in text):
        return text
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth == 0:
            is_function = at > 0 and not text[at - 1].isspace()
            return f"{text[:at].removeprefix('void ')}(…)" if is_function else text
    return text


# A number stays with its unit.
_WORD = re.compile(r"\S*\d (?:[nµm]?s|%|(?:[KMGT]i)?B)(?!\w)\S*|\S+")


def fold(line: Text, width: int) -> Iterator[Text]:
    """``line`` in as many as it needs, broken between words; ``no_wrap`` keeps it whole."""
    if line.no_wrap or line.cell_len <= width:
        yield line
        return
    breaks: list[int] = []
    first = 0
    for word in _WORD.finditer(line.plain):
        if word.start() > first and cell_len(line.plain[first : word.end()]) > width:
            first = word.start()
            breaks.append(first)
    for part in line.divide(breaks):
        part.rstrip()
        yield part


def _tail(text: str, width: int) -> str:
    tail = text[-width:]
    while cell_len(tail) > width:
        tail = tail[1:]
    return tail


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 kernel``, ``1,200 kernels``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
