"""The rows of a Kineto trace as JSON text. Times are microseconds with three decimals, exactly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

Place = tuple[int | str, int | str]
"""Process and thread of a row."""


def complete(
    category: str, name: str, place: Place, start_ns: int, end_ns: int, args: Mapping[str, object]
) -> str:
    """A slice."""
    return (
        f'{{"ph": "X", "cat": "{category}", {_name_and_place(name, place)}, '
        f'"ts": {micros(start_ns)}, "dur": {micros(end_ns - start_ns)}, '
        f'"args": {_object(args)}}}'
    )


def flow(phase: str, number: int, place: Place, time_ns: int, category: str = "ac2g") -> str:
    """One end of an arrow, phase ``s`` or ``f``: from a launch to its device work, or another."""
    end = ', "bp": "e"' if phase == "f" else ""
    return (
        f'{{"ph": "{phase}", "id": {number}, {_place(place)}, "ts": {micros(time_ns)}, '
        f'"cat": "{category}", "name": "{category}"{end}}}'
    )


def instant(name: str, place: Place, time_ns: int, args: Mapping[str, object]) -> str:
    """A point in time of a thread."""
    return (
        f'{{"ph": "i", "cat": "cpu_instant_event", "s": "t", {_name_and_place(name, place)}, '
        f'"ts": {micros(time_ns)}, "args": {_object(args)}}}'
    )


def counter(name: str, process: int | str, time_ns: int, values: Mapping[str, int]) -> str:
    """A value from this time on."""
    return (
        f'{{"ph": "C", {_name_and_place(name, (process, 0))}, '
        f'"ts": {micros(time_ns)}, "args": {json.dumps(values)}}}'
    )


def metadata(name: str, place: Place, value: str | int) -> str:
    """A name, label or order of a process or thread."""
    key = {"process_labels": "labels"}.get(
        name, "sort_index" if name.endswith("sort_index") else "name"
    )
    return (
        f'{{"ph": "M", {_name_and_place(name, place)}, "ts": 0.000, '
        f'"args": {json.dumps({key: value})}}}'
    )


_object = json.JSONEncoder(check_circular=False).encode
"""As json.dumps, for objects that we have just made."""


def micros(time_ns: int) -> str:
    """Nanoseconds as a JSON number of microseconds."""
    whole, rest = divmod(time_ns, 1000)
    return f"{whole}.{rest:03d}"


def _name_and_place(name: str, place: Place) -> str:
    return f'"name": {_text(name)}, {_place(place)}'


@lru_cache(maxsize=4096)
def _place(place: Place) -> str:
    return f'"pid": {json.dumps(place[0])}, "tid": {json.dumps(place[1])}'


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    return json.dumps(text)
