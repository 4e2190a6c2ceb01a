"""Reads Nsight Systems exports (``nsys export --type sqlite``) into a store.

Read: GPU kernels, copies, fills, whole-graph rows and synchronisation; CUDA runtime and driver
calls; cuDNN, cuBLAS and OS library calls; profiler overhead; NVTX push/pop ranges, start/end
ranges and marks; names of processes, threads and GPUs. Dropped: NVTX categories and payloads,
GPU metrics, scheduling, sampling, MPI and allocation tables. Any table or column may be absent.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trnscope.errors import TraceFormatError
from trnscope.ingest.durations import DurationBudget
from trnscope.ingest.kineto import kernel_kind
from trnscope.ingest.nsys_database import ABSENT, NsysDatabase
from trnscope.ingest.nsys_names import (
    NsysTexts,
    NsysTracks,
    NvtxTexts,
    distinct_rows,
    parse_nvtx_texts,
    process_of,
)
from trnscope.ingest.rows import START_LIMIT_NS
from trnscope.model.health import Health, HealthWarning
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.model.source import TraceSource
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.batches import InstantBatch, SliceBatch, UnfinishedBatch
from trnscope.store.tables import I64, U8, U16, U32, Bool
from trnscope.store.writer import TraceWriter

Progress = Callable[[int, int], None]
"""Called with the bytes read so far (by the share of rows read) and the bytes in all."""

_KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
_MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
_MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
_GRAPH = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_SYNC = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
_RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
_DRIVER = "CUPTI_ACTIVITY_KIND_DRIVER"
_NVTX = "NVTX_EVENTS"
_DEVICE_TABLES = (_KERNEL, _GRAPH, _MEMCPY, _MEMSET)
_CALL_TABLES = {
    _RUNTIME: ("cuda_runtime", SliceKind.RUNTIME),
    _DRIVER: ("cuda_driver", SliceKind.RUNTIME),
    "CUDNN_EVENTS": ("cudnn", SliceKind.OTHER),
    "CUBLAS_EVENTS": ("cublas", SliceKind.OTHER),
    "OSRT_API": ("os_runtime", SliceKind.OTHER),
    "CUPTI_ACTIVITY_KIND_OVERHEAD": ("overhead", SliceKind.OVERHEAD),
    "PROFILER_OVERHEAD": ("overhead", SliceKind.OVERHEAD),
}
_EVENT_TABLES = (*_CALL_TABLES, *_DEVICE_TABLES, _SYNC, _NVTX)
_MARKS_OF_NSYS = frozenset((*_EVENT_TABLES, "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME"))

_NVTX_PUSH_POP = (59, 70)
_NVTX_START_END = (60, 71)
_NVTX_MARK = (34, 65)
_NVTX_EVENTS = (*_NVTX_PUSH_POP, *_NVTX_START_END, *_NVTX_MARK)
_NVTX_DOMAIN_CREATE = 75
_DRIVER_EVENT_CLASS = 1

_COPY_KINDS = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "UVM HtoD",
    12: "UVM DtoH",
    13: "UVM DtoD",
}
_MEMORY_KINDS = {
    0: "Pageable",
    1: "Pinned",
    2: "Device",
    3: "Array",
    4: "Managed",
    5: "Device Static",
    6: "Managed Static",
}
_SYNC_KINDS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}


def read_nsys(path: Path, writer: TraceWriter, progress: Progress | None = None) -> None:
    """Read the export at ``path`` and finish ``writer``.

    Raises :class:`TraceFormatError` for a database of another kind or a damaged one.
    """
    try:
        with NsysDatabase(path) as database:
            _require_nsys(path, database)
            _NsysImporter(path, database, writer, progress).run()
    except sqlite3.DatabaseError as error:
        raise TraceFormatError(
            path,
            f"is a damaged or cut-off SQLite database ({error})",
            hint="export it again: nsys export --type sqlite REPORT.nsys-rep",
        ) from error


def _require_nsys(path: Path, database: NsysDatabase) -> None:
    if database.tables & _MARKS_OF_NSYS:
        return
    raise TraceFormatError(
        path,
        "is an SQLite database, but no Nsight Systems export (it has none of that tool's tables)",
        hint="make one with: nsys export --type sqlite REPORT.nsys-rep",
    )


@dataclass(frozen=True)
class _Timing:
    """Which rows of a batch are slices, and which have no known end; the rest is unreadable."""

    complete: Bool
    open_ended: Bool
    start_ns: I64
    dur_ns: I64


class _NsysImporter:
    """One run over one export."""

    def __init__(
        self, path: Path, database: NsysDatabase, writer: TraceWriter, progress: Progress | None
    ) -> None:
        self._path = path
        self._database = database
        self._writer = writer
        self._progress = progress
        self._texts = NsysTexts(database)
        self._tracks = NsysTracks(database, writer)
        self._process_ordinals: dict[int, int] = {}
        self._device_of_context: dict[tuple[int, int], int] = {}
        self._size = path.stat().st_size
        self._num_rows = 0
        self._num_unreadable = 0
        self._num_untimed = 0
        self._num_impossible = 0
        self._durations = DurationBudget()
        self._num_device = 0
        self._num_nvtx = 0
        self._num_without_process = 0
        self._rows_total = sum(database.estimate_rows(table) for table in _EVENT_TABLES)
        start = database.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
        self._start_ns = start[0][0] if start and isinstance(start[0][0], int) else None
        self._base_ns = self._start_ns or 0

    def run(self) -> None:
        """Read every table, then write the store."""
        for table in _CALL_TABLES:
            self._read_calls(table)
        self._read_kernels()
        self._read_graphs()
        self._read_copies()
        self._read_fills()
        self._read_syncs()
        self._read_nvtx()
        self._writer.finish(self._source(), self._health(), self._texts.all)

    # Host ---------------------------------------------------------------------------------

    def _read_calls(self, table: str) -> None:
        category, kind = _CALL_TABLES[table]
        columns = ("start", "end", "globalTid", "nameId", "correlationId", "eventClass")
        for batch in self._database.batches(table, columns):
            names = self._texts.of_nsys(batch["nameId"], api=kind is SliceKind.RUNTIME)
            categories = np.full(names.size, self._writer.category(category), np.uint16)
            if kind is SliceKind.OVERHEAD:  # may cross the calls it delays: on a track of its own
                tracks = self._tracks.threads(batch["globalTid"], TrackKind.PROFILER, "overhead")
            else:
                tracks = self._tracks.threads(batch["globalTid"], TrackKind.CPU_THREAD)
            if table == _RUNTIME:
                driver = batch["eventClass"] == _DRIVER_EVENT_CLASS
                if driver.any():
                    categories[driver] = self._writer.category("cuda_driver")
            timing = self._timing(batch)
            kinds = np.full(names.size, kind, np.uint8)
            event = self._add(timing, tracks, kinds, categories, names)
            if kind is SliceKind.RUNTIME:
                process = process_of(batch["globalTid"])
                self._attribute("correlation", event, timing, self._correlation(batch, process))
            self._count(names.size)

    def _correlation(self, batch: dict[str, I64], process: I64) -> I64:
        """Correlation ids that are unique over processes, since each process counts its own.

        The first process keeps its ids; the n-th one's are raised by n * 2**32.
        """
        unique, inverse = distinct_rows(process)
        ordinals = [self._ordinal(key) for (key,) in unique]
        ids = batch["correlationId"]
        shifted = ids + (np.array(ordinals, np.int64)[inverse] << 32)
        return np.where(ids > 0, shifted, ABSENT)

    def _ordinal(self, process: int) -> int:
        return self._process_ordinals.setdefault(process, len(self._process_ordinals))

    # Device -------------------------------------------------------------------------------

    def _read_kernels(self) -> None:
        names = ("demangledName", "shortName", "mangledName")
        shape = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
        for batch in self._device_batches(_KERNEL, (*names, *shape, "graphNodeId", "graphId")):
            ids = batch["demangledName"]
            for other in names[1:]:
                ids = np.where(ids == ABSENT, batch[other], ids)
            name = self._texts.of_nsys(ids)
            timing, event = self._add_device(batch, self._kernel_kinds(name), "kernel", name)
            self._attribute("graph_node_id", event, timing, batch["graphNodeId"])
            self._attribute("graph_id", event, timing, batch["graphId"])
            self._attribute("grid", event, timing, self._dimensions(batch, shape[:3]))
            self._attribute("block", event, timing, self._dimensions(batch, shape[3:]))

    def _kernel_kinds(self, names: U32) -> U8:
        unique, inverse = np.unique(names, return_inverse=True)
        kinds = [kernel_kind(self._texts.all[name]) for name in unique]
        return np.array(kinds, np.uint8)[inverse]

    def _read_graphs(self) -> None:
        """Graphs traced as a whole: one row for a launch, its kernels are not recorded."""
        for batch in self._device_batches(_GRAPH, ("graphId",)):
            graphs = np.unique(batch["graphId"]).tolist()
            labels = {graph: f"CUDA graph {graph}" for graph in graphs if graph != ABSENT}
            names = self._texts.labelled(batch["graphId"], labels, "CUDA graph")
            timing, event = self._add_device(batch, SliceKind.KERNEL, "cuda_graph", names)
            self._attribute("graph_id", event, timing, batch["graphId"])

    def _read_copies(self) -> None:
        for batch in self._device_batches(_MEMCPY, ("bytes", "copyKind", "srcKind", "dstKind")):
            unique, inverse = distinct_rows(batch["copyKind"], batch["srcKind"], batch["dstKind"])
            ids = [self._texts.intern(_copy_name(*row)) for row in unique]
            names = np.array(ids, np.uint32)[inverse]
            timing, event = self._add_device(batch, SliceKind.MEMCPY, "gpu_memcpy", names)
            self._attribute("bytes", event, timing, batch["bytes"])
            kinds = self._texts.labelled(batch["copyKind"], _COPY_KINDS, "").astype(np.int64)
            known = np.isin(batch["copyKind"], list(_COPY_KINDS))
            self._attribute("memcpy_kind", event, timing, np.where(known, kinds, ABSENT))

    def _read_fills(self) -> None:
        for batch in self._device_batches(_MEMSET, ("bytes", "memKind")):
            labels = {kind: f"Memset ({text})" for kind, text in _MEMORY_KINDS.items()}
            names = self._texts.labelled(batch["memKind"], labels, "Memset")
            timing, event = self._add_device(batch, SliceKind.MEMSET, "gpu_memset", names)
            self._attribute("bytes", event, timing, batch["bytes"])

    def _read_syncs(self) -> None:
        for batch in self._device_batches(_SYNC, ("syncType",)):
            names = self._texts.labelled(batch["syncType"], _SYNC_KINDS, "Sync")
            timing, event = self._add_device(batch, SliceKind.SYNC, "cuda_sync", names)
            self._attribute("sync_kind", event, timing, names.astype(np.int64))

    def _device_batches(self, table: str, more: Sequence[str]) -> Iterator[dict[str, I64]]:
        columns = ("start", "end", "deviceId", "contextId", "streamId", "correlationId")
        return self._database.batches(table, (*columns, "globalPid", *more))

    def _add_device(
        self, batch: dict[str, I64], kind: SliceKind | U8, category: str, names: U32
    ) -> tuple[_Timing, int]:
        kinds = np.full(names.size, kind, np.uint8) if isinstance(kind, SliceKind) else kind
        process = self._device_process(batch["globalPid"])
        is_sync = kind is SliceKind.SYNC
        device = self._devices(batch, process, is_sync)
        tracks = self._tracks.streams(process, device, batch["streamId"], "sync" if is_sync else "")
        timing = self._timing(batch, untimed=(batch["start"] == 0) & (batch["end"] == 0))
        categories = np.full(names.size, self._writer.category(category), np.uint16)
        event = self._add(timing, tracks, kinds, categories, names)
        correlation = self._correlation(batch, process)
        self._attribute("correlation", event, timing, correlation)
        self._attribute("device", event, timing, device)
        self._attribute("stream", event, timing, batch["streamId"])
        self._num_device += 0 if is_sync else int(timing.complete.sum())
        self._count(names.size)
        return timing, event

    def _device_process(self, global_pid: I64) -> I64:
        """Process keys; where the export does not say, the only process that made calls."""
        process = process_of(global_pid)
        unknown = process == ABSENT
        callers = [key for key in self._process_ordinals if key != ABSENT]
        if len(callers) == 1:
            return np.where(unknown, callers[0], process)
        self._num_without_process += int(unknown.sum()) if callers else 0
        return process

    def _devices(self, batch: dict[str, I64], process: I64, is_sync: bool) -> I64:
        """Physical device of each row. Sync rows say 0 whatever it is: go by their context."""
        unique, inverse = distinct_rows(process, batch["contextId"], batch["deviceId"])
        devices = []
        for key, context, cuda_device in unique:
            device = self._tracks.device_index(key, cuda_device)
            if is_sync:
                device = self._device_of_context.get((key, context), device)
            else:
                self._device_of_context[key, context] = device
            devices.append(device)
        return np.array(devices, np.int64)[inverse]

    def _dimensions(self, batch: dict[str, I64], names: Sequence[str]) -> I64:
        """String ids of ``[x, y, z]``, written as Kineto writes it; ABSENT where not given."""
        unique, inverse = distinct_rows(*(batch[name] for name in names))
        ids = [ABSENT if ABSENT in row else self._texts.intern(json.dumps(row)) for row in unique]
        return np.array(ids, np.int64)[inverse]

    # NVTX ---------------------------------------------------------------------------------

    def _read_nvtx(self) -> None:
        domains = self._domains()
        columns = ("start", "end", "eventType", "globalTid", "textId", "domainId")
        for batch, texts in self._database.batches_with_text(_NVTX, columns, "text"):
            event_type = np.where(
                batch["eventType"] == ABSENT, _NVTX_PUSH_POP[0], batch["eventType"]
            )
            parsed = parse_nvtx_texts(self._database, self._texts, texts, batch["textId"])
            categories = self._nvtx_categories(batch, domains)
            nested = np.isin(event_type, _NVTX_PUSH_POP)
            self._add_ranges(batch, parsed, categories, nested, TrackKind.CPU_THREAD, "")
            crossing = np.isin(event_type, _NVTX_START_END)
            self._add_ranges(batch, parsed, categories, crossing, TrackKind.ASYNC, "ranges")
            self._add_marks(batch, parsed, categories, np.isin(event_type, _NVTX_MARK))
            num_events = int(np.isin(event_type, _NVTX_EVENTS).sum())
            self._num_nvtx += num_events
            self._count(num_events)

    def _domains(self) -> dict[tuple[int, int], str]:
        """Names of NVTX domains by process and domain id."""
        columns = ("globalTid", "domainId", "text", "textId", "eventType")
        if not {"eventType", "domainId"} <= self._database.columns(_NVTX):
            return {}
        rows = self._database.rows(_NVTX, columns, f'"eventType" = {_NVTX_DOMAIN_CREATE}')
        texts = self._database.strings([row[3] for row in rows if isinstance(row[3], int)])
        domains: dict[tuple[int, int], str] = {}
        for tid, domain, text, text_id, _ in rows:
            name = text if isinstance(text, str) else texts.get(text_id)
            if isinstance(tid, int) and isinstance(domain, int) and name:
                domains[tid >> 24, domain] = name
        return domains

    def _nvtx_categories(self, batch: dict[str, I64], domains: dict[tuple[int, int], str]) -> U16:
        unique, inverse = distinct_rows(process_of(batch["globalTid"]), batch["domainId"])
        categories = []
        for process, domain in unique:
            plain = domain in (0, ABSENT)
            name = domains.get((process, domain), f"domain {domain}")
            categories.append(self._writer.category("nvtx" if plain else f"nvtx:{name}"))
        return np.array(categories, np.uint16)[inverse]

    def _add_ranges(
        self,
        batch: dict[str, I64],
        parsed: NvtxTexts,
        categories: U16,
        wanted: Bool,
        track_kind: TrackKind,
        suffix: str,
    ) -> None:
        if not wanted.any():
            return
        rows = {name: values[wanted] for name, values in batch.items()}
        timing = self._timing(rows)
        tracks = self._tracks.threads(rows["globalTid"], track_kind, suffix)
        is_op = parsed.is_op[wanted]
        kinds = np.where(is_op, SliceKind.CPU_OP, SliceKind.ANNOTATION).astype(np.uint8)
        event = self._add(timing, tracks, kinds, categories[wanted], parsed.name[wanted])
        self._attribute("sequence_number", event, timing, parsed.sequence[wanted])
        self._attribute("input_dims", event, timing, parsed.dims[wanted])

    def _add_marks(
        self, batch: dict[str, I64], parsed: NvtxTexts, categories: U16, wanted: Bool
    ) -> None:
        if not wanted.any():
            return
        has_time = wanted & (batch["start"] != ABSENT)
        self._num_unreadable += int(wanted.sum() - has_time.sum())
        size = int(has_time.sum())
        self._writer.add_instants(
            InstantBatch(
                ts_ns=batch["start"][has_time] + self._base_ns,
                track=self._tracks.threads(batch["globalTid"][has_time], TrackKind.CPU_THREAD),
                name=parsed.name[has_time],
                category=categories[has_time],
                args_offset=np.zeros(size, np.uint64),
                args_length=np.zeros(size, np.uint32),
            )
        )

    # Common -------------------------------------------------------------------------------

    def _timing(self, batch: dict[str, I64], untimed: Bool | None = None) -> _Timing:
        """Sort a batch's rows by what is known of their times; times become absolute."""
        start, end = batch["start"], batch["end"]
        readable = (start != ABSENT) & _is_time(start)
        if untimed is not None:  # CUPTI writes 0, 0 where it could not take the times
            self._num_untimed += int(untimed.sum())
            readable &= ~untimed
        self._num_unreadable += int((~readable).sum())
        complete = readable & (end != ABSENT) & _is_time(end) & (end >= start)
        duration = np.where(complete, end - start, 0)
        admitted = self._durations.admits(duration)
        self._num_impossible += int((~admitted).sum())
        complete &= admitted
        duration = np.where(complete, duration, 0)
        return _Timing(complete, readable & ~complete, start + self._base_ns, duration)

    def _add(self, timing: _Timing, tracks: U32, kinds: U8, categories: U16, names: U32) -> int:
        """Write the rows of a batch; returns the event index of its first slice."""
        rows, cut = timing.complete, timing.open_ended
        if cut.any():
            self._writer.add_unfinished(
                UnfinishedBatch(timing.start_ns[cut], tracks[cut], names[cut], categories[cut])
            )
        size = int(rows.sum())
        return self._writer.add_slices(
            SliceBatch(
                track=tracks[rows],
                kind=kinds[rows],
                category=categories[rows],
                name=names[rows],
                start_ns=timing.start_ns[rows],
                dur_ns=timing.dur_ns[rows],
                args_offset=np.zeros(size, np.uint64),
                args_length=np.zeros(size, np.uint32),
            )
        )

    def _attribute(
        self, key: str, event: int, timing: _Timing, values: npt.NDArray[np.int64]
    ) -> None:
        """Give a batch's slices an attribute, where the value is not ABSENT."""
        kept = values[timing.complete]
        has = kept != ABSENT
        if ATTRIBUTES[key] is AttributeType.UNSIGNED:
            has &= kept >= 0
        if has.any():
            events = (event + np.flatnonzero(has)).astype(np.uint32)
            self._writer.add_attribute(key, events, kept[has].astype(ATTRIBUTES[key].dtype))

    def _count(self, num_rows: int) -> None:
        self._num_rows += num_rows
        if self._progress is not None:
            total = max(self._rows_total, self._num_rows)
            self._progress(self._size * self._num_rows // total if total else 0, self._size)

    # Outcome ------------------------------------------------------------------------------

    def _source(self) -> TraceSource:
        wanted = ("EXPORT_PRODUCT_NAME", "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION")
        rows = dict(self._database.rows("META_DATA_EXPORT", ("name", "value")))
        metadata = {str(key): json.dumps(rows[key]) for key in wanted if key in rows}
        return TraceSource(
            path=str(self._path),
            format="nsys",
            num_events=self._num_rows,
            base_time_ns=self._base_ns,
            epoch=self._start_ns is not None,
            metadata=metadata,
        )

    def _health(self) -> Health:
        found = (*self._not_recorded(), *self._damage())
        return Health(
            complete=self._num_unreadable == 0 and self._num_impossible == 0,
            num_events_read=self._num_rows - self._num_unreadable,
            num_events_repaired=self._database.num_repaired_texts,
            num_events_unreadable=self._num_unreadable,
            warnings=tuple(HealthWarning(*each) for each in found),
        )

    def _not_recorded(self) -> list[tuple[str, str, int]]:
        """What the recording was not asked for, or did not see: no damage, but worth a line."""
        found = []
        if self._num_device == 0:
            found.append(("no-gpu-activity", "no GPU activity recorded in this export", 1))
        if not (self._database.has_rows(_RUNTIME) or self._database.has_rows(_DRIVER)):
            found.append(("no-runtime-calls", "no CUDA API calls recorded in this export", 1))
        if self._num_nvtx == 0:
            found.append(("no-nvtx", "no NVTX ranges recorded in this export", 1))
        return found

    def _damage(self) -> list[tuple[str, str, int]]:
        counted = (
            ("no-timestamp", "GPU rows without times (start and end 0)", self._num_untimed),
            (
                "null-time",
                "rows without a usable start time",
                self._num_unreadable - self._num_untimed,
            ),
            (
                "impossible-duration",
                "rows that would last for years (kept apart, without a duration)",
                self._num_impossible,
            ),
            ("missing-string", "names that StringIds does not hold", self._texts.num_missing),
            ("invalid-utf8", "texts that are no UTF-8", self._database.num_repaired_texts),
            (
                "no-process-id",
                "GPU rows that do not say which of several processes they belong to: "
                "not linked to a launch",
                self._num_without_process,
            ),
        )
        return [each for each in counted if each[2] > 0]


def _is_time(values: I64) -> Bool:
    return (values > -START_LIMIT_NS) & (values < START_LIMIT_NS)


def _copy_name(copy: int, source: int, target: int) -> str:
    """As Kineto writes it: ``Memcpy HtoD (Pageable -> Device)``."""
    name = f"Memcpy {_COPY_KINDS.get(copy, '')}".strip()
    if source in _MEMORY_KINDS and target in _MEMORY_KINDS:
        name += f" ({_MEMORY_KINDS[source]} -> {_MEMORY_KINDS[target]})"
    return name
