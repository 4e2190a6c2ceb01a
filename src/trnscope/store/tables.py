"""The columns that a reader hands out. All are read-only numpy views of mapped files.

A slice's id is its row number in :class:`Slices`. Rows are in *lane order*: by track, then
depth, then start. Within one lane (track, depth) slices never overlap, so both starts and
ends rise.

Classes of columns are compared by identity: comparing arrays gives no single answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
U16 = npt.NDArray[np.uint16]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Slices:
    """Every interval with a known start and duration, one row each, in lane order."""

    start_ns: I64
    dur_ns: I64
    self_ns: I64
    """Own time without the direct children of any kind. Sums to the union of the track."""
    op_self_ns: I64
    """Own time without the nearest non-Python descendants, overlaps taken once; torch's self CPU
    time where no children overlap. For a PYTHON slice: equal to ``self_ns``."""
    kind: U8
    """:class:`trnscope.model.kinds.SliceKind`."""
    category: U16
    """Index into ``Trace.categories``: the writer's own category text."""
    name: U32
    """String id."""
    track: U32
    """Index into ``Trace.tracks``."""
    depth: U16
    """Lane within the track, at least the parent's + 1."""
    parent: U32
    """Slice id of the parent; a root holds its own id."""
    args_offset: U64
    """Byte offset of the event's args in the (inflated) source; see ``Trace.args``."""
    args_length: U32
    """0 where the event has no args."""

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def end_ns(self) -> I64:
        """Ends (computed: a new array)."""
        return self.start_ns + self.dur_ns

    def of_kind(self, *kinds: int) -> U32:
        """Slice ids of these kinds, rising."""
        wanted = np.zeros(256, np.bool_)
        wanted[list(kinds)] = True
        return np.flatnonzero(wanted[self.kind]).astype(np.uint32)


@dataclass(frozen=True, eq=False, repr=False)
class Attribute:
    """One argument that was lifted into a typed column, for the slices that have it."""

    slices: U32
    """Slice ids, rising."""
    values: I64 | U64 | U32
    """Integers; for a text attribute, string ids (u32)."""
    is_text: bool

    def of(self, slice_ids: U32) -> tuple[Bool, npt.NDArray[Any]]:
        """For each slice: whether it has the attribute, and its value (0 where it has not)."""
        if self.slices.size == 0:
            return np.zeros(slice_ids.shape, np.bool_), np.zeros(slice_ids.shape, self.values.dtype)
        at = np.minimum(np.searchsorted(self.slices, slice_ids), self.slices.size - 1)
        has = self.slices[at] == slice_ids
        return has, np.where(has, self.values[at], 0).astype(self.values.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Launches:
    """One row for each slice of device work, and what on the host caused it."""

    device_slice: U32
    """Slice ids of kinds in ``DEVICE_WORK``, rising; all of them."""
    has_launch: Bool
    launch_slice: U32
    """The RUNTIME slice with the same correlation id; meaningful where ``has_launch``."""
    has_op: Bool
    op_slice: U32
    """The innermost CPU_OP around the launch, else the one with the same external id;
    meaningful where ``has_op``."""


@dataclass(frozen=True, eq=False, repr=False)
class Flows:
    """Directed links between slices, as the file states them and both ends could be found."""

    kind: U32
    """String id of the writer's category (``ac2g``, ``fwdbwd`` ...)."""
    slice_out: U32
    slice_in: U32


@dataclass(frozen=True, eq=False, repr=False)
class Instants:
    """Points in time, without the memory events."""

    ts_ns: I64
    track: U32
    name: U32
    category: U16
    args_offset: U64
    args_length: U32


@dataclass(frozen=True, eq=False, repr=False)
class CounterSamples:
    """Values over time, ordered by series, then time."""

    series: U32
    """Index into ``Trace.counter_series``."""
    ts_ns: I64
    value: F64


@dataclass(frozen=True)
class CounterSeries:
    """One line of a counter: its track, the event's name and the args key (may be empty)."""

    track: int
    name: str
    key: str


@dataclass(frozen=True, eq=False, repr=False)
class MemoryEvents:
    """Allocations and frees of torch's allocators, by time."""

    ts_ns: I64
    track: U32
    address: U64
    size_bytes: I64
    """Signed: a free is negative."""
    device_type: I64
    """torch's number (0 CPU, 1 CUDA, 6 HIP, 20 PrivateUse1)."""
    device_index: I64
    has_total: Bool
    total_allocated_bytes: I64
    """Meaningful where ``has_total``."""
    total_reserved_bytes: I64
    has_op: Bool
    op_slice: U32
    """Innermost CPU_OP around it on its thread; meaningful where ``has_op``."""


@dataclass(frozen=True, eq=False, repr=False)
class Unfinished:
    """Slices whose duration is unknown (absent, negative, or never closed)."""

    start_ns: I64
    track: U32
    name: U32
    category: U16


@dataclass(frozen=True, eq=False, repr=False)
class Lanes:
    """Row ranges of the slices table, one per (track, depth), in order."""

    track: U32
    depth: U16
    first: I64
    """First slice id."""
    count: I64
