"""Slice-like rows on their way from the scanner to the writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from trnscope.ingest.arg_keys import ARG_KEYS, INDEX
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.tables import I64, U8, U32, U64, Bool

HAS_TS, HAS_DUR, HAS_ID, REPAIRED = 1, 2, 4, 8
_MAX_SIGNED = (1 << 63) - 1

START_LIMIT_NS = 1 << 61
"""Of a start and the base time (73 years), so that their sum fits 64 bits."""


class Segment(Protocol):
    """The scanner's events in file order, as columns."""

    num_events: int
    ph: U8
    flags: U8
    category: U32
    name: U32
    track: U32
    ts_ns: I64
    dur_ns: I64
    id: U64
    args_offset: U64
    args_length: U32

    def attribute(self, index: int, /) -> tuple[Any, ...]:
        """Rows that have the lifted key of this number, and its values there."""

    def counters(self) -> tuple[U32, U32, npt.NDArray[np.float64]]:
        """Row, key (string id) and value of each numeric member of a counter event."""


@dataclass(frozen=True)
class Lifted:
    """One attribute of some of the rows; ``rows`` are positions, rising."""

    attribute: str
    rows: U32
    values: npt.NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """Slices not yet placed: ``track``, ``category`` and ``name`` are the scanner's ids."""

    track: U32
    category: U32
    name: U32
    start_ns: I64
    dur_ns: I64
    args_offset: U64
    args_length: U32
    lifted: tuple[Lifted, ...]

    def __len__(self) -> int:
        return int(self.track.size)

    def take(self, at: npt.NDArray[Any]) -> Rows:
        """These rows, by rising or any other order of position."""
        place = np.full(len(self), -1, np.int64)
        place[at] = np.arange(at.size)
        return Rows(
            self.track[at],
            self.category[at],
            self.name[at],
            self.start_ns[at],
            self.dur_ns[at],
            self.args_offset[at],
            self.args_length[at],
            tuple(_moved(lifted, place) for lifted in self.lifted),
        )

    def lifted_to(self, attribute: str) -> Sequence[Lifted]:
        """All columns of one attribute."""
        return [lifted for lifted in self.lifted if lifted.attribute == attribute]

    def numbers(self, attribute: str) -> tuple[I64, Bool]:
        """One integer attribute for every row, and where it is given."""
        values, has = np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        for lifted in self.lifted_to(attribute):
            values[lifted.rows] = lifted.values.astype(np.int64)
            has[lifted.rows] = True
        return values, has

    def has(self, attribute: str) -> Bool:
        """Where an attribute is given."""
        has = np.zeros(len(self), np.bool_)
        for lifted in self.lifted_to(attribute):
            has[lifted.rows] = True
        return has


def _moved(lifted: Lifted, place: I64) -> Lifted:
    rows = place[lifted.rows]
    kept = rows >= 0
    return Lifted(lifted.attribute, rows[kept].astype(np.uint32), lifted.values[kept])


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Rows of all parts, in order."""
    lifted, first = [], 0
    for part in parts:
        lifted += [Lifted(a.attribute, a.rows + np.uint32(first), a.values) for a in part.lifted]
        first += len(part)
    return Rows(
        np.concatenate([part.track for part in parts]),
        np.concatenate([part.category for part in parts]),
        np.concatenate([part.name for part in parts]),
        np.concatenate([part.start_ns for part in parts]),
        np.concatenate([part.dur_ns for part in parts]),
        np.concatenate([part.args_offset for part in parts]),
        np.concatenate([part.args_length for part in parts]),
        tuple(lifted),
    )


def rows_of(segment: Segment, at: npt.NDArray[Any]) -> Rows:
    """Rows of a segment, by rising position, with all attributes of slices that they have."""
    first = int(at[0]) if at.size else 0
    # Most rows of a section are alike: where no other lies between them, views will do.
    is_run = at.size > 0 and int(at[-1]) - first + 1 == at.size
    chosen: Any = slice(first, first + at.size) if is_run else at
    return Rows(
        segment.track[chosen],
        segment.category[chosen],
        segment.name[chosen],
        segment.ts_ns[chosen],
        segment.dur_ns[chosen],
        segment.args_offset[chosen],
        segment.args_length[chosen],
        tuple(_lift_run(segment, first, at.size) if is_run else _lift(segment, at)),
    )


def _lift_run(segment: Segment, first: int, size: int) -> Iterator[Lifted]:
    """The attributes of neighbouring rows."""
    for attribute, rows, values in attribute_columns(segment):
        low, high = np.searchsorted(rows, (first, first + size))
        if low < high:
            yield Lifted(attribute, rows[low:high] - np.uint32(first), values[low:high])


def _lift(segment: Segment, at: npt.NDArray[Any]) -> Iterator[Lifted]:
    place = np.full(segment.num_events, -1, np.int32)
    place[at] = np.arange(at.size, dtype=np.int32)
    for attribute, rows, values in attribute_columns(segment):
        moved = place[rows]
        kept = moved >= 0
        if not kept.all():
            moved, values = moved[kept], values[kept]
        if moved.size:
            yield Lifted(attribute, moved.astype(np.uint32), values)


def attribute_columns(
    segment: Segment, only: str | None = None
) -> Iterator[tuple[str, U32, npt.NDArray[Any]]]:
    """The lifted keys that feed an attribute (or only one): its name, rows and values."""
    for index, key in enumerate(ARG_KEYS):
        if key.attribute is not None and only in (None, key.attribute):
            rows, values = key_values(segment, index)
            if rows.size:
                yield key.attribute, rows, values


def key_values(segment: Segment, index: int) -> tuple[U32, npt.NDArray[Any]]:
    """Rows and values of one lifted key, in the type of its attribute.

    Negative numbers of slices are left out: writers put -1 where there is nothing.
    """
    key = ARG_KEYS[index]
    if key.is_text:
        rows, texts = segment.attribute(index)
        return rows, texts
    rows, bits, is_negative = segment.attribute(index)
    if key.attribute is None:
        return rows, bits.view(np.int64)
    if is_negative.any():
        rows, bits = rows[~is_negative], bits[~is_negative]
    is_signed = ATTRIBUTES[key.attribute] is AttributeType.SIGNED
    if is_signed and bits.size and int(bits.max()) > _MAX_SIGNED:
        rows, bits = rows[bits <= _MAX_SIGNED], bits[bits <= _MAX_SIGNED]
    return rows, bits.view(np.int64) if is_signed else bits


def dense(segment: Segment, json_key: str, at: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Bool]:
    """One lifted key for the rows ``at``: its values (0 where absent) and where it is given."""
    rows, values = key_values(segment, INDEX[json_key])
    if rows.size == at.size and np.array_equal(rows, at):
        return values, np.ones(at.size, np.bool_)
    has = np.zeros(segment.num_events, np.bool_)
    full = np.zeros(segment.num_events, values.dtype)
    has[rows], full[rows] = True, values
    return full[at], has[at]
