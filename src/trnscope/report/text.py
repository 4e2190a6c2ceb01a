"""Text that is safe to print: a trace may hold anything in its names."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

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


def _tail(text: str, width: int) -> str:
    tail = text[-width:]
    while cell_len(tail) > width:
        tail = tail[1:]
    return tail


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """``1 kernel``, ``1,200 kernels``."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
