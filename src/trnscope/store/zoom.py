"""Viewport queries: what to draw of a set of lanes in a window, at most one row a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.store.pyramid import FENCE_STEP
from trnscope.store.reader import Trace
from trnscope.store.tables import I64, U32


@dataclass(frozen=True)
class ZoomRows:
    """Rectangles, by lane, then start. One stands for ``count`` slices of its lane."""

    lane: U32
    """Index into ``Trace.lanes``."""
    start_ns: I64
    end_ns: I64
    count: U32
    busy_ns: I64
    """Sum of the slices' durations; equal to the length where ``count`` is 1."""
    longest: U32
    """Slice id of the longest."""

    def __len__(self) -> int:
        return int(self.lane.size)


class ZoomIndex:
    """Answers viewport queries on one trace. Immutable: may be shared between threads."""

    def __init__(self, trace: Trace) -> None:
        self._lanes = trace.lanes
        self._slices = trace.slices
        self._pyramid = trace.table("pyramid")
        self._fences: I64 = trace.table("fences")["start_ns"]
        per_lane = -(-self._lanes.count // FENCE_STEP)
        self._fence_first = np.cumsum(per_lane) - per_lane
        self._num_fences = per_lane

    @cached_property
    def _levels(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(lane, level) to its range of pyramid rows."""
        level, lane = self._pyramid["level"], self._pyramid["lane"]
        if level.size == 0:
            return {}
        new = np.append(True, (level[1:] != level[:-1]) | (lane[1:] != lane[:-1]))
        first = np.flatnonzero(new)
        end = np.append(first[1:], level.size)
        return {
            (int(lane[a]), int(level[a])): (int(a), int(b)) for a, b in zip(first, end, strict=True)
        }

    def query(self, lanes: Sequence[int], start_ns: int, end_ns: int, num_px: int) -> ZoomRows:
        """Everything of ``lanes`` that touches ``[start_ns, end_ns)``, for ``num_px`` pixels.

        Slices whose starts share a bucket of about one pixel (a power of two of ns) become
        one row. Raises ValueError for an empty window or no pixels.
        """
        if end_ns <= start_ns or num_px < 1:
            raise ValueError("a viewport needs a window and at least one pixel")
        shift = max(0, ((end_ns - start_ns) // num_px).bit_length() - 1)
        parts = [self._lane_rows(lane, start_ns, end_ns, shift) for lane in sorted(lanes)]
        if not parts:
            parts = [_merge(self._raw_rows(0, 0, 0), 0)]
        return ZoomRows(
            *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(ZoomRows))
        )

    def _lane_rows(self, lane: int, start_ns: int, end_ns: int, shift: int) -> ZoomRows:
        level = (shift - _native.PYRAMID_BASE_SHIFT) // _native.PYRAMID_LEVEL_SHIFT
        for stored in range(min(level, _native.PYRAMID_LEVELS - 1), -1, -1):
            if (lane, stored) in self._levels:
                rows = self._pyramid_rows(lane, stored, start_ns, end_ns)
                break
        else:
            rows = self._raw_rows(lane, *self._raw_range(lane, start_ns, end_ns))
        return _merge(rows, shift)

    def _pyramid_rows(self, lane: int, level: int, start_ns: int, end_ns: int) -> ZoomRows:
        first, end = self._levels[(lane, level)]
        p = self._pyramid
        low = first + int(np.searchsorted(p["end_ns"][first:end], start_ns, side="right"))
        high = first + int(np.searchsorted(p["start_ns"][first:end], end_ns, side="left"))
        at = slice(low, max(low, high))
        return ZoomRows(
            p["lane"][at],
            p["start_ns"][at],
            p["end_ns"][at],
            p["count"][at],
            p["busy_ns"][at],
            p["longest"][at],
        )

    def _raw_range(self, lane: int, start_ns: int, end_ns: int) -> tuple[int, int]:
        """Slice ids that touch the window. Ends rise with starts within a lane."""
        low = self._row_from(lane, start_ns)
        # The slice before the first that starts inside may still run into the window.
        first = int(self._lanes.first[lane])
        while low > first and self._end(low - 1) > start_ns:
            low -= 1
        return low, max(low, self._row_from(lane, end_ns))

    def _row_from(self, lane: int, ts_ns: int) -> int:
        """The first row of a lane that starts at ``ts_ns`` or later."""
        first, count = int(self._lanes.first[lane]), int(self._lanes.count[lane])
        fence, num = int(self._fence_first[lane]), int(self._num_fences[lane])
        block = int(np.searchsorted(self._fences[fence : fence + num], ts_ns, side="left"))
        low = first + max(0, block - 1) * FENCE_STEP
        high = min(first + count, first + block * FENCE_STEP)
        return low + int(np.searchsorted(self._slices.start_ns[low:high], ts_ns, side="left"))

    def _end(self, row: int) -> int:
        return int(self._slices.start_ns[row]) + int(self._slices.dur_ns[row])

    def _raw_rows(self, lane: int, low: int, high: int) -> ZoomRows:
        start, dur = self._slices.start_ns[low:high], self._slices.dur_ns[low:high]
        num = high - low
        return ZoomRows(
            np.full(num, lane, np.uint32),
            start,
            start + dur,
            np.ones(num, np.uint32),
            dur,
            np.arange(low, high, dtype=np.uint32),
        )


def _merge(rows: ZoomRows, shift: int) -> ZoomRows:
    """Join rows of one lane whose starts share a bucket of ``2**shift`` ns."""
    if len(rows) == 0 or shift == 0:
        return rows
    bucket = rows.start_ns >> shift
    first = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))
    if first.size == len(rows):
        return rows
    longest = _longest_of(rows, first)
    return ZoomRows(
        rows.lane[first],
        rows.start_ns[first],
        np.maximum.reduceat(rows.end_ns, first),
        np.add.reduceat(rows.count, first, dtype=np.uint32),
        np.add.reduceat(rows.busy_ns, first),
        longest,
    )


def _longest_of(rows: ZoomRows, first: npt.NDArray[np.intp]) -> U32:
    # The row with the largest mean slice length is a good stand-in; a row of one slice is exact.
    length = rows.busy_ns // rows.count
    size = np.diff(np.append(first, len(rows)))
    greatest = np.repeat(np.maximum.reduceat(length, first), size)
    at = np.flatnonzero(length == greatest)
    group = np.repeat(np.arange(first.size), size)[at]
    is_first = np.append(True, group[1:] != group[:-1])
    longest: U32 = rows.longest[at[is_first]]
    return longest
