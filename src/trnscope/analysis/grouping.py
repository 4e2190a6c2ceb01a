"""Exact integer group-by on numpy columns.

Sums stay in int64 from end to end: a float would lose nanoseconds beyond 2**53.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from trnscope import _native

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.integer[Any]]
_Int = TypeVar("_Int", bound=np.integer[Any])

_TABLE_PER_ROW = 4
"""Pairs are numbered through a table of up to this many entries a row, by sorting beyond."""


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Two keys joined into one, numbered 0 ... ``num_groups`` - 1."""

    key: U32
    """Group of each row."""
    first: I64
    """First key of each group."""
    second: I64
    """Second key of each group."""

    @property
    def num_groups(self) -> int:
        """How many distinct pairs there are."""
        return int(self.first.size)


def group_sum(keys: Ints, values: Ints, num_groups: int) -> tuple[I64, I64]:
    """Rows and exact sum of ``values`` for each key in ``[0, num_groups)``."""
    count, total = _native.group_sum(
        np.ascontiguousarray(keys, np.uint32), np.ascontiguousarray(values, np.int64), num_groups
    )
    return count, total


def group_range(keys: Ints, values: Ints, num_groups: int) -> tuple[I64, I64]:
    """Least and greatest value for each key; meaningless for a key without rows."""
    low, high = _native.group_range(
        np.ascontiguousarray(keys, np.uint32), np.ascontiguousarray(values, np.int64), num_groups
    )
    return low, high


def distinct(values: npt.NDArray[_Int]) -> tuple[npt.NDArray[_Int], U32]:
    """Distinct values, rising, and for each value the number of its own among these."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    is_new = np.ones(values.size, np.bool_)
    is_new[1:] = ranked[1:] != ranked[:-1]
    number = np.empty(values.size, np.uint32)
    number[order] = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    return ranked[is_new], number


def pair_up(first: Ints, second: Ints) -> Pairs:
    """Number the distinct pairs ``(first[i], second[i])``; both keys are not negative."""
    if first.size == 0:
        empty = np.empty(0, np.int64)
        return Pairs(np.empty(0, np.uint32), empty, empty)
    num_second = int(second.max()) + 1
    joined = first.astype(np.int64) * num_second + second.astype(np.int64)
    if (int(first.max()) + 1) * num_second <= _TABLE_PER_ROW * first.size:
        present = np.zeros(int(joined.max()) + 1, np.bool_)
        present[joined] = True
        used = np.flatnonzero(present)
        number = np.cumsum(present, dtype=np.int64) - 1
        key = number[joined].astype(np.uint32)
    else:
        used, key = distinct(joined)
    return Pairs(key, used // num_second, used % num_second)


def group_percentiles(
    keys: Ints, values: Ints, num_groups: int, ratios: Sequence[float]
) -> list[I64]:
    """Nearest-rank percentiles of each group: a value that occurred, never one in between.

    The ``p`` percentile of ``n`` values is the one of rank ``ceil(p * n)``. Every group must
    have rows.
    """
    order = np.lexsort((values, keys))
    ordered = np.asarray(values[order], np.int64)
    count = np.bincount(keys, minlength=num_groups)
    first = np.cumsum(count) - count
    ranks = [
        np.maximum(np.ceil(np.round(ratio * count, 9)).astype(np.int64), 1) for ratio in ratios
    ]
    return [ordered[first + rank - 1] for rank in ranks]


def running_max(segments: Ints, values: I64) -> I64:
    """The greatest value so far within each segment; rows of a segment are neighbours."""
    if values.size == 0:
        return values
    starts = np.flatnonzero(np.concatenate(([True], segments[1:] != segments[:-1])))
    number = np.repeat(np.arange(starts.size), np.diff(np.append(starts, values.size)))
    low = int(values.min())
    width = int(values.max()) - low + 1
    if starts.size * width < 1 << 62:
        lifted = (values - low) + number * width
        return np.asarray(np.maximum.accumulate(lifted) - number * width + low, np.int64)
    pieces = np.split(values, starts[1:])
    return np.concatenate([np.maximum.accumulate(piece) for piece in pieces])
