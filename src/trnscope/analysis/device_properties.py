"""What a trace's ``deviceProperties`` say of its GPUs."""

from __future__ import annotations

import json

from trnscope.store.reader import Trace


def smallest(trace: Trace, key: str) -> int | None:
    """The smallest value above 0 that a described device has; absent where none is readable."""
    try:
        described = json.loads(trace.source.metadata.get("deviceProperties", "[]"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(described, list):
        return None
    found = [one.get(key) for one in described if isinstance(one, dict)]
    known = [value for value in found if type(value) is int and value > 0]
    return min(known, default=None)
