"""The figures that Neuron Explorer computed itself, in trnscope's units.

Names and units are those of its table ``Summary``. Times in seconds become integer nanoseconds.
A ``*_percent`` becomes a ratio 0-1: files hold fractions or percents, which is told by comparing
an active time's share with the times themselves, else by a value above 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trnscope.ingest.neuron_values import as_float, as_int

METADATA_KEY = "neuronFigures"
"""Where the figures stand in a source's metadata."""

_PERCENT = "_percent"
_SECONDS = re.compile(r".*_time")
_DURATION = re.compile(r".*duration_ns")
_NO_DURATION_NS = 10**18
"""A duration this long is a time since 1970 in the wrong place."""
_MARKS = frozenset(
    {
        "total_time",
        "total_exec_time",
        "total_active_time",
        "event_count",
        "hardware_flops",
        "mfu_estimated_percent",
        "mbu_estimated_percent",
        "tensor_engine_active_time",
        "tensor_engine_active_time_percent",
    }
)
_BLOCK = re.compile(r"[ns]_[0-9a-f]{4,}")
_TOLERANCE = 0.02


def is_summary(keys: Iterable[str]) -> bool:
    """Whether the keys of an object are those of a summary."""
    return not _MARKS.isdisjoint(keys)


def is_block_name(key: str) -> bool:
    """Whether a key names a summary: ``n_<hash>`` of a NEFF, ``s_<hash>`` of a session."""
    return _BLOCK.fullmatch(key) is not None


def figures_of(summary: Mapping[str, Any]) -> dict[str, int | float]:
    """The numbers of one summary; absent ones are left out."""
    numbers = {key: value for key, value in summary.items() if as_float(value) is not None}
    divisor = 1.0 if _holds_fractions(numbers) else 100.0
    found: dict[str, int | float] = {}
    for key, value in numbers.items():
        number = as_float(value)
        if number is None or (_DURATION.fullmatch(key) and abs(number) >= _NO_DURATION_NS):
            continue
        if key.endswith(_PERCENT):
            found[key.removesuffix(_PERCENT) + "_ratio"] = number / divisor
        elif _SECONDS.fullmatch(key):
            found[f"{key}_ns"] = round(number * 1e9)
        else:
            is_whole = not isinstance(value, float) or value.is_integer()
            whole = as_int(value) if is_whole else None
            found[key] = number if whole is None else whole
    return found


def _holds_fractions(numbers: Mapping[str, Any]) -> bool:
    """Whether the ``*_percent`` of a summary run from 0 to 1."""
    whole = as_float(numbers.get("total_exec_time")) or as_float(numbers.get("total_time"))
    percents = {key: as_float(value) or 0.0 for key, value in numbers.items() if _is_percent(key)}
    if whole:
        for key, value in percents.items():
            share = (as_float(numbers.get(key.removesuffix(_PERCENT))) or 0.0) / whole
            if share > 0 and value > 0 and key.endswith("active_time_percent"):
                return abs(value - share) < abs(value - 100 * share)
    return max(percents.values(), default=0.0) <= 1 + _TOLERANCE


def _is_percent(key: str) -> bool:
    return key.endswith(_PERCENT)


def encode_figures(blocks: Sequence[tuple[str, Mapping[str, int | float]]]) -> str:
    """Figures by what they are of, as a source's metadata keeps them."""
    return json.dumps([{"of": name, "figures": dict(figures)} for name, figures in blocks])
