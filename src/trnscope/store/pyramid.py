"""Writes what makes viewport queries fast: the zoom pyramid and the fence pointers.

Fences are every 256th start of each long lane, so that a binary search in a lane of millions
of slices touches few pages of a cold file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.store.column_file import ColumnLayout, MappedTable, write_table

FENCE_STEP = 256


def write_zoom_tables(
    directory: Path, layouts: dict[str, tuple[ColumnLayout, ...]]
) -> dict[str, tuple[ColumnLayout, ...]]:
    """Write ``pyramid`` and ``fences``; returns their layouts."""
    lanes = MappedTable(directory / "lanes.arrow", layouts["lanes"])
    slices = MappedTable(directory / "slices.arrow", layouts["slices"])
    first, count = lanes.column("first"), lanes.column("count")
    start, dur = slices.column("start_ns"), slices.column("dur_ns")
    names = ("level", "lane", "start_ns", "end_ns", "count", "busy_ns", "longest")
    pyramid: dict[str, npt.NDArray[Any]] = dict(
        zip(
            names, _native.build_pyramid(first, count, start, dur, release_mapped=True), strict=True
        )
    )
    per_lane = -(-count // FENCE_STEP)
    fence_first = np.cumsum(per_lane) - per_lane
    step = np.arange(int(per_lane.sum())) - np.repeat(fence_first, per_lane)
    rows = np.repeat(first, per_lane) + step * FENCE_STEP
    fences = {"start_ns": start[rows]}
    return {
        "pyramid": write_table(directory / "pyramid.arrow", pyramid),
        "fences": write_table(directory / "fences.arrow", fences),
    }
