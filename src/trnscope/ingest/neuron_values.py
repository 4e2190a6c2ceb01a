"""Reads values that Neuron's tools write with changing types: numbers as text, nested objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MAX_INT = 1 << 64


def as_int(value: Any) -> int | None:
    """An integer, exactly, from an integer, a decimal text or a whole float; else null."""
    if isinstance(value, bool) or value is None:
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
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text or None


def as_ids(value: Any) -> tuple[int, ...]:
    """Ids from a list, or from one id."""
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


def first_of(objects: tuple[Mapping[str, Any], ...], *keys: str) -> Any:
    """The first value that is there, by key, then by object."""
    for key in keys:
        for each in objects:
            value = each.get(key)
            if value is not None:
                return value
    return None
