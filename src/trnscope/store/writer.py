"""Builds a store: collects what an importer reads, then nests, orders, links and writes it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from trnscope.errors import TraceFormatError
from trnscope.model.health import Health, HealthWarning
from trnscope.model.source import TraceSource
from trnscope.model.track import Track
from trnscope.store.attributes import ATTRIBUTES
from trnscope.store.batches import (
    CounterBatch,
    FlowEnds,
    InstantBatch,
    MemoryBatch,
    SliceBatch,
    UnfinishedBatch,
)
from trnscope.store.column_file import ColumnFileWriter, ColumnLayout, write_table
from trnscope.store.links import find_launches, pair_flows
from trnscope.store.nesting import EnclosingQueries, WrittenSlices, write_slices
from trnscope.store.pyramid import write_zoom_tables
from trnscope.store.schema import StoreMeta, save_meta
from trnscope.store.spill import SpilledTable
from trnscope.store.strings import EncodedStrings
from trnscope.store.tables import U32, CounterSeries

_BATCH_COLUMNS: dict[str, dict[str, Any]] = {
    "slices": {
        "track": np.uint32,
        "kind": np.uint8,
        "category": np.uint16,
        "name": np.uint32,
        "start_ns": np.int64,
        "dur_ns": np.int64,
        "args_offset": np.uint64,
        "args_length": np.uint32,
    },
    "flow_ends": {
        "flow_id": np.uint64,
        "kind": np.uint32,
        "phase": np.uint8,
        "track": np.uint32,
        "ts_ns": np.int64,
    },
    "instants": {
        "ts_ns": np.int64,
        "track": np.uint32,
        "name": np.uint32,
        "category": np.uint16,
        "args_offset": np.uint64,
        "args_length": np.uint32,
    },
    "counters": {"series": np.uint32, "ts_ns": np.int64, "value": np.float64},
    "memory": {
        "ts_ns": np.int64,
        "track": np.uint32,
        "address": np.uint64,
        "size_bytes": np.int64,
        "device_type": np.int64,
        "device_index": np.int64,
        "has_total": np.uint8,
        "total_allocated_bytes": np.int64,
        "total_reserved_bytes": np.int64,
    },
    "unfinished": {
        "start_ns": np.int64,
        "track": np.uint32,
        "name": np.uint32,
        "category": np.uint16,
    },
}

_TIME_COLUMNS = {
    "slices": "start_ns",
    "flow_ends": "ts_ns",
    "instants": "ts_ns",
    "counters": "ts_ns",
    "memory": "ts_ns",
    "unfinished": "start_ns",
}

_MAX_SLICES = (1 << 32) - 1
"""Slice ids have 32 bits, and the highest one stands for none."""

Batch = SliceBatch | FlowEnds | InstantBatch | CounterBatch | MemoryBatch | UnfinishedBatch


class TraceWriter:
    """Writes one trace into ``directory``, which must be new or empty.

    Add batches in any number and order, then call :meth:`finish` once. Memory is bounded by
    the largest track, about 40 bytes a slice, since all else waits on disk.
    """

    def __init__(self, directory: Path, source_path: Path | None = None) -> None:
        """``source_path`` is what an error names, else the folder."""
        self._directory = directory
        self._source_path = source_path or directory
        self._spill = directory / "spill"
        self._spill.mkdir(parents=True)
        self._tracks: list[Track] = []
        self._categories: dict[str, int] = {}
        self._series: dict[CounterSeries, int] = {}
        self._attributes: dict[str, SpilledTable] = {}
        self._tables = {
            name: SpilledTable(self._spill, name, columns)
            for name, columns in _BATCH_COLUMNS.items()
        }

    def add_track(self, track: Track) -> int:
        """Register a track; returns its index."""
        self._tracks.append(track)
        return len(self._tracks) - 1

    def set_track(self, index: int, track: Track) -> None:
        """Replace a registered track, when more became known about it."""
        self._tracks[index] = track

    def category(self, text: str) -> int:
        """The index of a category text, registering it at need."""
        return self._categories.setdefault(text, len(self._categories))

    def counter_series(self, track: int, name: str, key: str) -> int:
        """The index of a counter series, registering it at need."""
        return self._series.setdefault(CounterSeries(track, name, key), len(self._series))

    def add_slices(self, batch: SliceBatch) -> int:
        """Add slices; returns the event index of the first (they count up from there).

        Raises :class:`TraceFormatError` when there are more than ids for them.
        """
        if self._tables["slices"].num_rows + batch.track.size > _MAX_SLICES:
            raise TraceFormatError(self._source_path, f"holds more than {_MAX_SLICES:,} slices")
        return self._append("slices", batch)

    def add_flow_ends(self, batch: FlowEnds) -> None:
        """Add ends of flows."""
        self._append("flow_ends", batch)

    def add_instants(self, batch: InstantBatch) -> None:
        """Add points in time."""
        self._append("instants", batch)

    def add_counter_samples(self, batch: CounterBatch) -> None:
        """Add counter samples."""
        self._append("counters", batch)

    def add_memory(self, batch: MemoryBatch) -> None:
        """Add allocator events."""
        self._append("memory", batch)

    def add_unfinished(self, batch: UnfinishedBatch) -> None:
        """Add slices of unknown duration."""
        self._append("unfinished", batch)

    def add_attribute(self, key: str, events: U32, values: Any) -> None:
        """Give slices, by event index, a value of one attribute; a later value wins."""
        table = self._attributes.get(key)
        if table is None:
            columns = {"event": np.uint32, "value": ATTRIBUTES[key].dtype}
            table = SpilledTable(self._spill, f"attribute.{key}", columns)
            self._attributes[key] = table
        table.append({"event": events, "value": values})

    def shift_times(self, by_ns: int) -> None:
        """Add to every time given so far (a base time that stands at the end of the file)."""
        for table, column in _TIME_COLUMNS.items():
            self._tables[table].shift(column, by_ns)

    def _append(self, table: str, batch: Batch) -> int:
        columns = {field.name: getattr(batch, field.name) for field in fields(batch)}
        return self._tables[table].append(columns)

    def finish(
        self, source: TraceSource, health: Health, strings: Sequence[str] | EncodedStrings
    ) -> None:
        """Write the store. Ids in the batches index ``strings``, ``tracks`` and so on."""
        encoded = strings if isinstance(strings, EncodedStrings) else EncodedStrings.of(strings)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            layouts, num_too_deep = self._write_tables(encoded, pool)
        shutil.rmtree(self._spill)
        meta = StoreMeta(
            source,
            _with_depth(health, num_too_deep),
            tuple(self._categories),
            tuple(self._tracks),
            tuple(self._series),
            layouts,
        )
        save_meta(self._directory, meta)

    def _write_tables(
        self, strings: EncodedStrings, pool: Executor
    ) -> tuple[dict[str, tuple[ColumnLayout, ...]], int]:
        """The layout of every table, and how many slices lie too deep."""
        layouts: dict[str, tuple[ColumnLayout, ...]] = {}
        flow_ends, memory = self._tables["flow_ends"].map(), self._tables["memory"].map()
        num_tracks = len(self._tracks)
        in_slice = EnclosingQueries(flow_ends["track"], flow_ends["ts_ns"], num_tracks)
        in_op = EnclosingQueries(memory["track"], memory["ts_ns"], num_tracks, ops_only=True)
        written = write_slices(
            self._path("slices"), self._tables["slices"], num_tracks, (in_slice, in_op)
        )
        layouts["slices"] = written.layout
        layouts["lanes"] = self._write("lanes", written.lanes)
        zoom = pool.submit(write_zoom_tables, self._directory, dict(layouts))
        attributes = {
            f"attribute.{key}": pool.submit(self._write_attribute, key, written)
            for key in self._attributes
        }
        memory["has_op"], memory["op_slice"] = in_op.found, in_op.slice
        layouts["memory"] = self._write_sorted("memory", memory, "ts_ns")
        flows = pair_flows(flow_ends, in_slice.found, in_slice.slice)
        layouts["flows"] = self._write("flows", flows)
        self._tables["flow_ends"].release_pages()
        layouts |= {name: layout.result() for name, layout in attributes.items()}
        launches = find_launches(self._directory, layouts, flows)
        layouts["launches"] = self._write("launches", launches)
        counters = self._tables["counters"].map()
        order = np.lexsort((counters["ts_ns"], counters["series"]))
        layouts["counters"] = self._write("counters", {k: v[order] for k, v in counters.items()})
        for name, time in (("instants", "ts_ns"), ("unfinished", "start_ns")):
            layouts[name] = self._write_sorted(name, self._tables[name].map(), time)
        layouts["string_ends"] = self._write("string_ends", {"end": strings.ends})
        layouts["string_data"] = self._write("string_data", {"byte": strings.data})
        return layouts | zoom.result(), written.num_too_deep

    def _write_attribute(self, key: str, written: WrittenSlices) -> tuple[ColumnLayout, ...]:
        table = self._attributes[key]
        rows = written.by_slice(table.map())
        table.release_pages()
        return self._write(f"attribute.{key}", rows)

    def _path(self, table: str) -> Path:
        return self._directory / f"{table}.arrow"

    def _write(self, table: str, columns: dict[str, Any]) -> tuple[ColumnLayout, ...]:
        return write_table(self._path(table), columns)

    def _write_sorted(
        self, table: str, columns: dict[str, Any], key: str
    ) -> tuple[ColumnLayout, ...]:
        """Write rows by rising ``key``; holds one column at a time."""
        times = columns[key]
        in_order = bool(np.all(times[1:] >= times[:-1]))
        order = slice(None) if in_order else np.argsort(times, kind="stable")
        dtypes = {name: values.dtype for name, values in columns.items()}
        with ColumnFileWriter(self._path(table), dtypes, times.size) as file:
            for name, values in columns.items():
                file.write(name, 0, values[order])
                self._tables[table].release_pages()
            return file.layout


def _with_depth(health: Health, num_too_deep: int) -> Health:
    """The health, with a warning where slices are nested too deep to be told apart."""
    if num_too_deep == 0:
        return health
    message = f"{num_too_deep} slices nested deeper than 65,535 levels overlap in the deepest lane"
    warning = HealthWarning("too-deep", message, num_too_deep)
    return replace(health, warnings=(*health.warnings, warning))
