"""Turns rows into slices: decides kind and track of each and hands them to the writer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.ingest.arg_keys import TASK_TYPE
from trnscope.ingest.durations import LONG_NS
from trnscope.ingest.findings import Findings, describe_event
from trnscope.ingest.kineto import (
    Header,
    Place,
    decide_device_kind,
    device_kind_by_name,
    is_old_annotation,
    kernel_kind,
    runtime_evidence,
    task_kind,
)
from trnscope.ingest.rows import (
    START_LIMIT_NS,
    Rows,
    Segment,
    attribute_columns,
)
from trnscope.ingest.tracks import TrackTable
from trnscope.ingest.vocabulary import CategoryTable, NameTable, Naming, Text
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.store.attributes import ATTRIBUTES
from trnscope.store.batches import SliceBatch, UnfinishedBatch
from trnscope.store.tables import I64, U8, U16, U32, Bool
from trnscope.store.writer import TraceWriter

_DAY_NS = 86_400 * 10**9
_NO_EVIDENCE = 0xFE
_COMPLETE = ord("X")


class SlicePlacer:
    """Places rows. Two sorts of row wait until the file has been read:

    - rows at time 0, which are wrong among times of years later;
    - ``privateuse1_driver`` rows, which are device work where nothing else is.
    """

    def __init__(
        self, text: Text, writer: TraceWriter, categories: CategoryTable, tracks: TrackTable
    ) -> None:
        self._text = text
        self._writer = writer
        self._categories = categories
        self._tracks = tracks
        self._at_zero: list[Rows] = []
        self._driver: list[Rows] = []
        self._computing: set[int] = set()
        self._evidence: set[DeviceKind] = set()
        self.earliest_ns: int | None = None
        """Earliest start of a slice, but those of the profiler itself; without the base time."""
        self._kernels = NameTable(text, kernel_kind)
        self._work = NameTable(text, device_kind_by_name)
        self._old = NameTable(
            text, lambda t: SliceKind.ANNOTATION if is_old_annotation(t) else SliceKind.CPU_OP
        )
        self._tasks = NameTable(text, task_kind)
        self._runtimes = NameTable(text, _runtime_number)
        self._profilers = NameTable(text, _profiler_number)

    # Adding --------------------------------------------------------------------------

    def add_plain(self, segment: Segment) -> I64:
        """Place the complete events that follow from tables: nearly all rows of host threads.

        Returns the rows of the other complete events, rising; their times may be invalid.
        """
        if any(True for _ in attribute_columns(segment, TASK_TYPE)):
            return np.flatnonzero(segment.ph == _COMPLETE)  # Ascend: arguments decide
        placed = self._place_by_tables(segment)
        while self._learn(placed):
            placed = self._place_by_tables(segment)
        if placed.track.size == 0:
            return placed.rest
        first = self._writer.add_slices(
            SliceBatch(
                placed.track,
                placed.kind,
                placed.category,
                placed.name,
                placed.start_ns,
                placed.dur_ns,
                placed.args_offset,
                placed.args_length,
            )
        )
        for attribute, rows, values in attribute_columns(segment):
            events, kept = _native.lift(placed.place, rows, values, first)
            if events.size and attribute in ATTRIBUTES:
                self._writer.add_attribute(attribute, events, kept)
        self._note_first(int(placed.start_ns.min()))
        return placed.rest

    def _place_by_tables(self, segment: Segment) -> _native.PlacedRows:
        categories = self._categories
        return _native.place_rows(
            segment.ph,
            segment.flags,
            segment.category,
            segment.name,
            segment.track,
            segment.ts_ns,
            segment.dur_ns,
            segment.args_offset,
            segment.args_length,
            categories.number,
            categories.placing,
            categories.kind,
            self._runtimes.table,
            self._old.table,
            self._tracks.host_table,
            START_LIMIT_NS,
            LONG_NS,
        )

    def _learn(self, placed: _native.PlacedRows) -> bool:
        """Look at what was new to the tables; whether there was anything."""
        if placed.new_categories.size:
            self._categories.of(placed.new_categories)
        if placed.new_seen.size:
            self._note_evidence(self._runtimes.of(placed.new_seen))
        if placed.new_names.size:
            self._old.of(placed.new_names)
        if placed.new_tracks.size:
            self._tracks.host(placed.new_tracks)
        news = (placed.new_categories, placed.new_seen, placed.new_names, placed.new_tracks)
        return any(new.size for new in news)

    def add(self, rows: Rows) -> None:
        """Place rows whose times are valid."""
        zero = rows.start_ns == 0
        if zero.any():
            self._at_zero.append(rows.take(np.flatnonzero(zero)))
            rows = rows.take(np.flatnonzero(~zero))
        self._add_timed(rows)

    def _add_timed(self, rows: Rows) -> None:
        category = self._categories.of(rows.category)
        driver = self._categories.place[category] == Place.DRIVER
        if driver.any():
            self._driver.append(rows.take(np.flatnonzero(driver)))
            rest = np.flatnonzero(~driver)
            rows, category = rows.take(rest), category[rest]
        if len(rows):
            self._place(rows, category)

    def _place(self, rows: Rows, category: U16) -> None:
        kind, track = self._placed(rows, category)
        self._note_earliest(rows.start_ns, self._categories.place[category])
        self._write(rows, category, kind, track)

    def _placed(self, rows: Rows, category: U16) -> tuple[U8, U32]:
        """Kind and track of each row."""
        kind = self._categories.kind[category]
        on_device = self._categories.place[category] == Place.DEVICE
        self._settle_kinds(rows, category, kind, on_device)
        if not on_device.any():
            return kind, self._tracks.host(rows.track)
        track = np.empty(len(rows), np.uint32)
        at = np.flatnonzero(on_device)
        track[at] = self._device_tracks(rows, at)
        self._note_computing(track[at], kind[at])
        at = np.flatnonzero(~on_device)
        track[at] = self._tracks.host(rows.track[at])
        return kind, track

    def add_async(self, rows: Rows) -> None:
        """Place async slices, which belong to no thread."""
        category = self._categories.of(rows.category)
        kind = np.full(len(rows), SliceKind.OTHER, np.uint8)
        self._note_earliest(rows.start_ns, self._categories.place[category])
        self._write(rows, category, kind, self._async_tracks(rows))

    def _async_tracks(self, rows: Rows) -> U32:
        return self._tracks.asynchronous(rows.track, self._text, rows.category)

    def add_unfinished(self, rows: Rows) -> None:
        """Place rows whose duration is unknown."""
        category = self._categories.of(rows.category)
        self._write_unfinished(rows, category, self._placed(rows, category)[1])

    def add_unfinished_async(self, rows: Rows) -> None:
        """Place async slices that were begun and never ended."""
        category = self._categories.of(rows.category)
        self._write_unfinished(rows, category, self._async_tracks(rows))

    def _write_unfinished(self, rows: Rows, category: U16, track: U32) -> None:
        self._writer.add_unfinished(UnfinishedBatch(rows.start_ns, track, rows.name, category))

    def _write(self, rows: Rows, category: U16, kind: U8, track: U32) -> None:
        first = self._writer.add_slices(
            SliceBatch(
                track,
                kind,
                category,
                rows.name,
                rows.start_ns,
                rows.dur_ns,
                rows.args_offset,
                rows.args_length,
            )
        )
        for lifted in rows.lifted:
            if lifted.attribute in ATTRIBUTES:
                events = lifted.rows + np.uint32(first)
                self._writer.add_attribute(lifted.attribute, events, lifted.values)

    # Kinds ---------------------------------------------------------------------------

    def _settle_kinds(self, rows: Rows, category: U16, kind: U8, on_device: Bool) -> None:
        """Refine ``kind`` and ``on_device`` in place by names and arguments."""
        naming = self._categories.naming[category]
        if naming.any():
            self._name_kinds(rows, naming, kind)
        is_kernel = kind == SliceKind.KERNEL
        if is_kernel.any():
            kind[is_kernel & rows.has("collective_name")] = SliceKind.COLLECTIVE
        loose = (kind == SliceKind.COLLECTIVE) & (naming == Naming.NOTHING)
        if loose.any():
            # collective_comm: on a stream it is device work, else what the host says of it.
            loose &= ~(rows.has("stream") | rows.has("device"))
            kind[loose], on_device[loose] = SliceKind.ANNOTATION, False
        for lifted in rows.lifted_to(TASK_TYPE):
            self._tasks_of_ascend(rows, lifted.rows, lifted.values, kind)
            on_device[lifted.rows] = True

    def _name_kinds(self, rows: Rows, naming: U8, kind: U8) -> None:
        for mode, table in (
            (Naming.KERNEL, self._kernels),
            (Naming.WORK, self._work),
            (Naming.OLD_OPERATOR, self._old),
        ):
            at = np.flatnonzero(naming == mode)
            if at.size:
                kind[at] = table.of(rows.name[at])
        for mode, table in (
            (Naming.RUNTIME, self._runtimes),
            (Naming.PROFILER, self._profilers),
        ):
            at = np.flatnonzero(naming == mode)
            if at.size:
                self._note_evidence(table.of(rows.name[at]))

    def _note_evidence(self, numbers: U8) -> None:
        found = np.bincount(numbers, minlength=_NO_EVIDENCE + 1)
        self._evidence |= {DeviceKind(int(k)) for k in np.flatnonzero(found[:_NO_EVIDENCE])}

    def _tasks_of_ascend(self, rows: Rows, at: U32, tasks: npt.NDArray[Any], kind: U8) -> None:
        kinds = self._tasks.of(tasks)
        computing = kinds == SliceKind.KERNEL
        kinds = np.where(computing, self._kernels.of(rows.name[at]), kinds)
        kind[at] = kinds
        self._evidence.add(DeviceKind.NPU)

    # Devices -------------------------------------------------------------------------

    def _device_tracks(self, rows: Rows, at: npt.NDArray[Any]) -> U32:
        device, has_device = rows.numbers("device")
        stream, has_stream = rows.numbers("stream")
        return self._tracks.device(
            rows.track[at], device[at], has_device[at], stream[at], has_stream[at]
        )

    def _note_computing(self, track: U32, kind: U8) -> None:
        is_work = (kind == SliceKind.KERNEL) | (kind == SliceKind.COLLECTIVE)
        for one in np.unique(track[is_work]).tolist():
            device = self._tracks.device_of(one)
            if device is not None:
                self._computing.add(device)

    def _note_earliest(self, start_ns: I64, place: U8) -> None:
        timed = start_ns[place != Place.PROFILER]
        if timed.size:
            self._note_first(int(timed.min()))

    def _note_first(self, start_ns: int) -> None:
        if self.earliest_ns is None or start_ns < self.earliest_ns:
            self.earliest_ns = start_ns

    # At the end ----------------------------------------------------------------------

    def release(self, findings: Findings) -> None:
        """Place what was held back."""
        zero, self._at_zero = self._at_zero, []
        if self.earliest_ns is not None and self.earliest_ns > _DAY_NS:
            for rows in zero:
                example = describe_event(self._text(int(rows.name[0])), 0)
                findings.note("invalid-time", len(rows), example, _args_offset(rows, 0))
        else:
            for rows in zero:
                self._add_timed(rows)
        driver, self._driver = self._driver, []
        for rows in driver:
            self._place_driver(rows)

    def _place_driver(self, rows: Rows) -> None:
        device, has_device = rows.numbers("device")
        for scanned in np.unique(rows.track[~has_device]).tolist():
            process, _ = self._tracks.text(scanned)
            is_host = self._tracks.is_host_process(process)
            index = 0 if is_host else self._tracks.device_index(process)
            device[~has_device & (rows.track == scanned)] = index
        category = self._categories.of(rows.category)
        as_work = ~np.isin(device, list(self._computing))
        self._note_earliest(rows.start_ns, self._categories.place[category])
        kind = np.full(len(rows), SliceKind.RUNTIME, np.uint8)
        kind[as_work] = self._work.of(rows.name[as_work])
        track = np.empty(len(rows), np.uint32)
        track[~as_work] = self._tracks.host(rows.track[~as_work])
        at = np.flatnonzero(as_work)
        stream, has_stream = rows.numbers("stream")
        given = np.ones(at.size, np.bool_)
        track[at] = self._tracks.device(
            rows.track[at], device[at], given, stream[at], has_stream[at]
        )
        self._write(rows, category, kind, track)

    def device_family(self, header: Header) -> DeviceKind:
        """The family of the file's devices, by all hints."""
        return decide_device_kind(self._evidence | self._categories.evidence | header.evidence)


def _runtime_number(name: str) -> int:
    kind = runtime_evidence(name)
    return _NO_EVIDENCE if kind is None else int(kind)


def _profiler_number(name: str) -> int:
    return int(DeviceKind.NEURON) if "neuron" in name.lower() else _NO_EVIDENCE


def _args_offset(rows: Rows, row: int) -> int | None:
    return int(rows.args_offset[row]) if rows.args_length[row] else None
