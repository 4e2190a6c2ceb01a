"""Keeps what several analyses need from the same trace, for as long as the trace lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from trnscope.store.reader import Trace

_Result = TypeVar("_Result")


def once_per_trace(function: Callable[[Trace], _Result]) -> Callable[[Trace], _Result]:
    """Call a function of a trace once for each trace; traces and results are immutable."""
    results: WeakKeyDictionary[Trace, _Result] = WeakKeyDictionary()

    @wraps(function)
    def remembered(trace: Trace) -> _Result:
        if trace not in results:
            results[trace] = function(trace)
        return results[trace]

    return remembered
