"""Joins begin and end events into pairs, as brackets match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.store.tables import I64, Bool


@dataclass(frozen=True)
class Pairs:
    """Row numbers of the input. ``begins[i]`` is closed by ``ends[i]``."""

    begins: I64
    ends: I64
    open_begins: I64
    """Begins that nothing closes (yet)."""
    unmatched_ends: I64


def pair_brackets(group: npt.NDArray[Any], ts_ns: I64, is_begin: Bool) -> Pairs:
    """Pair within each group by time, ties in row order: an end closes the newest open begin.

    An end for which nothing is open matches nothing.
    """
    order = np.lexsort((ts_ns, group))
    grouped, step = group[order], np.where(is_begin[order], 1, -1)
    level = _cumulative_by_group(grouped, step)
    # An end is unmatched where it takes the level below every earlier one of its group.
    floor = np.minimum(_running_minimum_by_group(grouped, level), 0)
    before = np.where(_starts(grouped), 0, np.append(0, floor[:-1])) if order.size else floor
    unmatched = (step < 0) & (floor < before)
    kept = ~unmatched
    order, grouped, step = order[kept], grouped[kept], step[kept]
    level = _cumulative_by_group(grouped, step) + (step < 0)
    # On one level of one group begins and ends alternate; only the last begin can stay open.
    by_level = np.lexsort((np.arange(order.size), level, grouped))
    rows, opens = order[by_level], step[by_level] > 0
    closed = np.zeros(rows.size, np.bool_)
    closed[:-1] = opens[:-1] & ~opens[1:]
    at = np.flatnonzero(closed)
    return Pairs(
        begins=rows[at],
        ends=rows[at + 1],
        open_begins=np.sort(rows[opens & ~closed]),
        unmatched_ends=np.sort(np.lexsort((ts_ns, group))[unmatched]),
    )


def _starts(group: npt.NDArray[Any]) -> Bool:
    return np.append(True, group[1:] != group[:-1])[: group.size]


def _cumulative_by_group(group: npt.NDArray[Any], step: I64) -> I64:
    total = np.cumsum(step)
    if total.size == 0:
        return total
    first = np.flatnonzero(_starts(group))
    offset = total[first] - step[first]
    lengths = np.diff(np.append(first, total.size))
    return np.asarray(total - np.repeat(offset, lengths), np.int64)


def _running_minimum_by_group(group: npt.NDArray[Any], values: I64) -> I64:
    """Smallest value so far within the group: shift groups apart, downwards, then accumulate."""
    if values.size == 0:
        return values
    spread = int(values.max() - values.min()) + 1
    number = np.cumsum(_starts(group)) - 1
    shifted = values - number * spread
    return np.asarray(np.minimum.accumulate(shifted) + number * spread, np.int64)
