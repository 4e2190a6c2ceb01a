"""Reads values that Neuron's tools write with changing types: numbers as text, nested objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MAX_INT = 1 << 64


def as_int(value: Any) -> int | None:
    """An integer, exactly, from an integer, a decimal text or a whole float; else null."""
    if value is None or (type(value) is int and abs(value) < _MAX_INT):
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.strip()
        body = digits.removeprefix("-")
        value = int(digits) if body.isdecimal() and len(body) <= len(str(_MAX_INT)) else None
    elif isinstance(value, float):
        value = round(value) if abs(value) < _MAX_INT else None
    return value if isinstance(value, int) and abs(value) < _MAX_INT else None


def as_float(value: Any) -> float | None:
    """A number from a number or a text; null for anything else and for NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if number == number and abs(number) != float("inf") else None


def as_text(value: Any) -> str | None:
    """A text that says something; nested lists and numbers as JSON."""
    if value is None or isinstance(value, str):
        return value or None
    return str(value) if type(value) is int else json.dumps(value)


def as_ids(value: Any) -> tuple[int, ...]:
    """Ids from a list, or from one id."""
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    return tuple(number for each in values if (number := as_int(each)) is not None)


def as_object(value: Any) -> Mapping[str, Any]:
    """An object, also from its JSON text; empty for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}


def first_of(fields: Mapping[str, Any], *keys: str) -> Any:
    """The first value that is there, by key."""
    for key in keys:
        value = fields.get(key)
        if value is not None:
            return value
    return None
