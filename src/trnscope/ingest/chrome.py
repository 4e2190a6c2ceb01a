"""Reads Chrome-trace JSON of any writer into a store.

Read: complete events (X), begin and end (B/E), async events (b/n/e, S/T/p/F), instants (i, I, R),
counters (C), flows (s/t/f), metadata (M), and the members beside ``traceEvents``. Torch's own
words are in ``kineto.py``. Dropped, and counted: samples (P), objects (N/O/D), memory dumps (v/V),
marks of clocks and contexts.
Format: "Trace Event Format" of the Catapult project.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope import _native
from trnscope.errors import TraceFormatError
from trnscope.ingest.brackets import BracketReader
from trnscope.ingest.durations import DurationBudget
from trnscope.ingest.findings import Findings, describe_event
from trnscope.ingest.gzip_stream import GzipFeeder
from trnscope.ingest.kineto import Header, read_header
from trnscope.ingest.metadata import MetadataReader
from trnscope.ingest.points import PointReader
from trnscope.ingest.rows import (
    HAS_DUR,
    HAS_TS,
    REPAIRED,
    START_LIMIT_NS,
    Rows,
    Segment,
    rows_of,
)
from trnscope.ingest.slices import SlicePlacer
from trnscope.ingest.tracks import TrackTable
from trnscope.ingest.vocabulary import CategoryTable
from trnscope.model.source import TraceSource
from trnscope.store.strings import EncodedStrings
from trnscope.store.tables import Bool
from trnscope.store.writer import TraceWriter

Progress = Callable[[int, int], None]
Index = npt.NDArray[Any]

_EPOCH_NS = 10**18
"""Times from here on (2001) can only count from the Unix epoch."""


def _phases(letters: str) -> Bool:
    chosen = np.zeros(256, np.bool_)
    chosen[[ord(letter) for letter in letters]] = True
    return chosen


_META, _COMPLETE = _phases("M"), _phases("X")
_BEGIN_END, _ASYNC, _BEGIN = _phases("BE"), _phases("bSeF"), _phases("BbS")
_INSTANT, _FLOW = _phases("iIRnTp"), _phases("stf")
_TIMED = _phases("XBEbSeFiIRnTpstfC")
_KNOWN = _phases("XBEbSeFiIRnTpstfCM")


def read_chrome_trace(
    path: Path, directory: Path, compressed: bool, scanner: Any, progress: Progress | None
) -> None:
    """Read the JSON trace at ``path`` into a new store in ``directory``."""
    ChromeImporter(path, directory, scanner).run(compressed, progress)


class ChromeImporter:
    """One run over one file."""

    def __init__(self, path: Path, directory: Path, scanner: Any) -> None:
        self._path = path
        self._scanner = scanner
        self._text: Callable[[int], str] = scanner.string
        self._writer = TraceWriter(directory, path)
        self._findings = Findings()
        self._durations = DurationBudget()
        self._num_events = 0
        self._num_repaired = 0
        self._saw_phase = False
        self._tracks = TrackTable(self._writer, scanner.tracks)
        self._categories = CategoryTable(self._text, self._writer)
        self._slices = SlicePlacer(self._text, self._writer, self._categories, self._tracks)
        self._points = PointReader(self._text, self._writer, self._categories, self._tracks)
        self._metadata = MetadataReader(self._text, self._tracks)
        self._threads = BracketReader(self._text, self._findings, "")
        self._async = BracketReader(self._text, self._findings, "async-")
        self._async_groups: dict[tuple[int, int, int], int] = {}
        self._handlers: tuple[tuple[Bool, Callable[[Segment, Index], None]], ...] = (
            (_META, self._metadata.add),
            (_BEGIN_END, self._take_begin_end),
            (_ASYNC, self._take_async),
            (_INSTANT, self._points.add_instants),
            (_FLOW, self._points.add_flows),
        )

    # The run -------------------------------------------------------------------------

    def run(self, compressed: bool, progress: Progress | None) -> None:
        """Scan, place and finish."""
        _native.keep_freed_memory()
        try:
            self._scan(compressed, progress)
            _native.release_freed_memory()
            self._finish(compressed)
        finally:
            self._scanner.stop()  # lets an inflating thread go, whatever happened

    def _scan(self, compressed: bool, progress: Progress | None) -> None:
        size = self._path.stat().st_size
        feeder = GzipFeeder(self._path, self._scanner) if compressed else None
        if feeder is None:
            self._scanner.open(os.fspath(self._path))
        else:
            feeder.start()
        while (segment := self._scanner.next_segment()) is not None:
            self._take(segment)
            if progress is not None:
                done = self._scanner.bytes_scanned() if feeder is None else feeder.reader.bytes_read
                progress(min(done, size), size)
        if feeder is not None:
            feeder.join()
            self._findings.note_gzip(feeder.reader.damage)

    def _take(self, segment: Segment) -> None:
        self._num_events += segment.num_events
        self._num_repaired += int(np.count_nonzero(segment.flags & REPAIRED))
        counts = np.bincount(segment.ph, minlength=256)
        self._saw_phase |= bool(counts[1:].any())
        self._note_phases(counts)
        is_timed = self._valid_times(segment)
        if counts[_COMPLETE].any():
            rest = self._slices.add_plain(segment)
            self._take_special(segment, rest[is_timed[rest]])
        for phases, take in self._handlers:
            if counts[phases].any():
                chosen = phases[segment.ph]
                take(segment, np.flatnonzero(chosen if phases is _META else chosen & is_timed))
        if counts[ord("C")]:
            self._points.add_counters(segment, is_timed)

    def _note_phases(self, counts: npt.NDArray[np.int64]) -> None:
        self._findings.note("no-phase", int(counts[0]))
        for letter in np.flatnonzero((counts > 0) & ~_KNOWN).tolist():
            if letter:
                self._findings.note("ignored-phase", int(counts[letter]), f"ph {chr(letter)!r}")

    def _valid_times(self, segment: Segment) -> Bool:
        """Where a usable start is given; events that need one and have none are noted."""
        usable: Bool = (segment.flags & HAS_TS) != 0
        usable &= (segment.ts_ns > -START_LIMIT_NS) & (segment.ts_ns < START_LIMIT_NS)
        if not usable.all():
            missing = np.flatnonzero(~usable & _TIMED[segment.ph])
            if missing.size:
                self._note_event("invalid-time", segment, missing, with_time=False)
        return usable

    def _note_event(self, code: str, segment: Segment, at: Index, with_time: bool = True) -> None:
        first = int(at[0])
        time = int(segment.ts_ns[first]) if with_time else None
        example = describe_event(self._text(int(segment.name[first])), time)
        offset = int(segment.args_offset[first]) if segment.args_length[first] else None
        self._findings.note(code, int(at.size), example, offset)

    # Phases --------------------------------------------------------------------------

    def _take_special(self, segment: Segment, at: Index) -> None:
        """Complete events that no table places, with a usable start."""
        if at.size == 0:
            return
        is_instant = self._categories.is_instant(segment.category[at])
        if is_instant.any():
            self._points.add_instants(segment, at[is_instant])
            at = at[~is_instant]
        duration = segment.dur_ns[at]
        known = ((segment.flags[at] & HAS_DUR) != 0) & (duration >= 0)
        if not known.all():
            unknown = at[~known]
            self._note_event("unknown-duration", segment, unknown)
            self._slices.add_unfinished(rows_of(segment, unknown))
            at = at[known]
        if at.size:
            rows = rows_of(segment, at)
            self._slices.add(self._admitted(rows, self._slices.add_unfinished))

    def _take_begin_end(self, segment: Segment, at: Index) -> None:
        group = self._tracks.host(segment.track[at]).astype(np.int64)
        closed = self._threads.close(segment, at, _BEGIN[segment.ph[at]], group)
        if len(closed):
            self._slices.add(self._admitted(closed, self._slices.add_unfinished))

    def _take_async(self, segment: Segment, at: Index) -> None:
        keys = zip(
            segment.category[at].tolist(),
            segment.name[at].tolist(),
            segment.id[at].tolist(),
            strict=True,
        )
        groups = self._async_groups
        group = np.array([groups.setdefault(key, len(groups)) for key in keys], np.int64)
        closed = self._async.close(segment, at, _BEGIN[segment.ph[at]], group)
        if len(closed):
            unfinished = self._slices.add_unfinished_async
            self._slices.add_async(self._admitted(closed, unfinished))

    def _admitted(self, rows: Rows, keep_apart: Callable[[Rows], None]) -> Rows:
        """The rows whose durations can be added up; the others are noted and kept apart."""
        admitted = self._durations.admits(rows.dur_ns)
        if admitted.all():
            return rows
        first = int(np.flatnonzero(~admitted)[0])
        example = describe_event(self._text(int(rows.name[first])), int(rows.start_ns[first]))
        offset = int(rows.args_offset[first]) if rows.args_length[first] else None
        self._findings.note("impossible-duration", int((~admitted).sum()), example, offset)
        keep_apart(rows.take(np.flatnonzero(~admitted)))
        return rows.take(np.flatnonzero(admitted))

    # The end -------------------------------------------------------------------------

    def _finish(self, compressed: bool) -> None:
        header = read_header(self._scanner.metadata())
        self._require_events(header)
        if (left := self._threads.left_open()) is not None:
            self._slices.add_unfinished(left)
        if (left := self._async.left_open()) is not None:
            self._slices.add_unfinished_async(left)
        self._slices.release(self._findings)
        self._points.release_flows()
        family = self._slices.device_family(header)
        self._tracks.finish(self._metadata.names(), header, family)
        for kind, count, first_byte in self._scanner.damage():
            self._findings.note(kind, count, offset=first_byte)
        if not header.base_time_valid:
            self._findings.note("invalid-base-time", 1)
        if header.is_partial_export:
            self._findings.note("partial-export", 1)
        if header.base_time_ns:
            self._writer.shift_times(header.base_time_ns)
        health = self._findings.health(self._path, compressed, self._num_events, self._num_repaired)
        self._writer.finish(
            self._source(header), health, EncodedStrings(*self._scanner.string_table())
        )

    def _source(self, header: Header) -> TraceSource:
        is_kineto = header.is_kineto or self._categories.has_kineto
        earliest = self._slices.earliest_ns
        return TraceSource(
            path=os.fspath(self._path),
            format="kineto" if is_kineto else "chrome",
            num_events=self._num_events,
            rank=header.rank,
            world_size=header.world_size,
            base_time_ns=header.base_time_ns,
            epoch=header.base_time_ns > 0 or (earliest is not None and earliest >= _EPOCH_NS),
            simulated=header.simulated,
            metadata=MappingProxyType(dict(header.texts)),
        )

    def _require_events(self, header: Header) -> None:
        """Raise where the file is no trace, or one without events."""
        if self._saw_phase:
            return
        problem, hint = _why_no_trace(self._scanner, header, self._num_events)
        raise TraceFormatError(self._path, problem, hint=hint)


_RECORD = "trnscope opens what torch.profiler's export_chrome_trace writes"


def _why_no_trace(scanner: Any, header: Header, num_events: int) -> tuple[str, str]:
    """What is wrong with a file in which no event was found, and what to do."""
    if num_events:
        return 'is JSON, but no trace: its objects have no phase ("ph")', _RECORD
    if scanner.document_kind() == "none":
        return "is no readable JSON", _RECORD
    if "nodes" in header.texts or "chakra" in header.texts.get("schema", ""):
        return "is a PyTorch execution trace (operators without times), no profile", _RECORD
    if not scanner.saw_trace_events():
        cut = not scanner.ended_cleanly() and scanner.num_documents() <= 1
        problem = "is cut off before its first event" if cut else "is JSON without traceEvents"
        return problem, "record it again" if cut else _RECORD
    if any(kind == "unreadable-event" for kind, _, _ in scanner.damage()):
        return "is a JSON list, but not of trace events", _RECORD
    if not scanner.ended_cleanly():
        return "is cut off before its first whole event", "record it again"
    return "holds no events", "was the profiler stopped before any work ran? record again"
