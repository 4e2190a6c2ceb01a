"""Describes tables: names, types and units as Neuron Explorer has them, words of our own."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = "7.4.0"
"""Of the schema that the names and types are those of."""

_UNITS = {
    "-": None,
    "ns": "nanoseconds",
    "B": "bytes",
    "B/s": "bytes_per_second",
    "%": "percent",
    "s": "seconds",
    "GHz": "gigahertz",
    "cycles": "cycles",
    "flops": "flops",
}


@dataclass(frozen=True)
class Column:
    """One column."""

    name: str
    type: str
    """``int64``, ``int32``, ``float``, ``bool``, ``text`` or ``texts`` (a list)."""
    unit: str | None
    required: bool
    """Every row has a value."""
    text: str


@dataclass(frozen=True)
class Table:
    """One table."""

    name: str
    text: str
    columns: tuple[Column, ...]


def table(name: str, text: str, lines: str) -> Table:
    """A table from lines ``name[!] type unit description``; ``!`` marks a required column."""
    return Table(name, text, tuple(_column(line) for line in lines.strip().splitlines()))


def _column(line: str) -> Column:
    name, kind, unit, text = line.split(" ", 3)
    return Column(name.removesuffix("!"), kind, _UNITS[unit], name.endswith("!"), text)
