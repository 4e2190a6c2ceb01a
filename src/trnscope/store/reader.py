"""Opens a store and hands out its columns."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trnscope.model.health import Health
from trnscope.model.source import SourcePlace, TraceSource, rank_in_file_name
from trnscope.model.track import Track
from trnscope.store.args import ArgsReader
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.column_file import MappedTable
from trnscope.store.lock import FileIdentity, StoreLock
from trnscope.store.schema import StoreMeta, load_meta
from trnscope.store.strings import Strings
from trnscope.store.tables import (
    Attribute,
    CounterSamples,
    CounterSeries,
    Flows,
    Instants,
    Lanes,
    Launches,
    MemoryEvents,
    Slices,
    Unfinished,
)


class Trace:
    """One opened trace. Columns are mapped when first asked for; nothing is copied."""

    def __init__(
        self,
        directory: Path,
        source_path: Path | None = None,
        *,
        meta: StoreMeta | None = None,
        identity: FileIdentity | None = None,
        lock: StoreLock | None = None,
        beside: SourcePlace | None = None,
    ) -> None:
        """Open the store in ``directory``.

        ``source_path`` is where the source file is now, if it moved; ``identity`` is what that
        file must still be when args are read from it. ``lock`` is held as long as the trace.
        ``beside`` is what the source's place tells.
        Raises :class:`TraceFormatError` for a store that a newer trnscope wrote.
        """
        self.directory = directory
        self._meta = load_meta(directory) if meta is None else meta
        self._lock = lock
        self._args = ArgsReader(source_path or Path(self._meta.source.path), identity)
        beside = beside or SourcePlace()
        self.source: TraceSource = _source_at(self._meta.source, source_path, beside.rank)
        self.health: Health = self._meta.health
        if beside.warnings:
            warnings = (*self.health.warnings, *beside.warnings)
            self.health = replace(self.health, warnings=warnings)
        self.categories: tuple[str, ...] = self._meta.categories
        self.tracks: tuple[Track, ...] = self._meta.tracks
        self.counter_series: tuple[CounterSeries, ...] = self._meta.counter_series

    def table(self, name: str) -> dict[str, npt.NDArray[Any]]:
        """The columns of one table of the store, by name."""
        return self._mapped(name).columns()

    def _mapped(self, name: str) -> MappedTable:
        return MappedTable(self.directory / f"{name}.arrow", self._meta.layouts[name])

    @cached_property
    def _slice_table(self) -> MappedTable:
        return self._mapped("slices")

    def release_pages(self) -> None:
        """Give back the memory that reading many slices took; they are mapped again when needed."""
        self._slice_table.release_pages()

    @cached_property
    def strings(self) -> Strings:
        """The string table."""
        return Strings(self.table("string_ends")["end"], self.table("string_data")["byte"])

    @cached_property
    def slices(self) -> Slices:
        """All slices, in lane order."""
        return Slices(**self._slice_table.columns())

    @cached_property
    def lanes(self) -> Lanes:
        """Row ranges of the slices table."""
        return Lanes(**self.table("lanes"))

    @cached_property
    def launches(self) -> Launches:
        """Device work and what caused it."""
        columns = self.table("launches")
        for name in ("has_launch", "has_op"):
            columns[name] = columns[name].view(np.bool_)
        return Launches(**columns)

    @cached_property
    def flows(self) -> Flows:
        """Links as the source states them."""
        return Flows(**self.table("flows"))

    @cached_property
    def instants(self) -> Instants:
        """Points in time, by time."""
        return Instants(**self.table("instants"))

    @cached_property
    def counters(self) -> CounterSamples:
        """Counter samples, by series and time."""
        return CounterSamples(**self.table("counters"))

    @cached_property
    def memory(self) -> MemoryEvents:
        """Allocator events, by time."""
        columns = self.table("memory")
        for name in ("has_total", "has_op"):
            columns[name] = columns[name].view(np.bool_)
        return MemoryEvents(**columns)

    @cached_property
    def unfinished(self) -> Unfinished:
        """Slices of unknown duration."""
        return Unfinished(**self.table("unfinished"))

    def attribute(self, key: str) -> Attribute | None:
        """One lifted argument; null where no slice has it. Raises KeyError for unknown keys."""
        kind = ATTRIBUTES[key]
        if f"attribute.{key}" not in self._meta.layouts:
            return None
        columns = self.table(f"attribute.{key}")
        return Attribute(columns["slice"], columns["value"], kind is AttributeType.TEXT)

    def args_text(self, slice_id: int) -> bytes:
        """The raw JSON text of a slice's args; empty where it has none."""
        at = self.slices
        return self._args.text(int(at.args_offset[slice_id]), int(at.args_length[slice_id]))

    def args(self, slice_id: int) -> dict[str, Any]:
        """A slice's args, decoded; ids keep all their digits."""
        at = self.slices
        return self._args.value(int(at.args_offset[slice_id]), int(at.args_length[slice_id]))

    def args_at(self, offset: int, length: int) -> dict[str, Any]:
        """Args by position in the source (for instants)."""
        return self._args.value(offset, length)


def _source_at(stored: TraceSource, path: Path | None, rank: int | None = None) -> TraceSource:
    """The source as it is found now.

    The same content may have been read first under another name; so the name's rank, which
    counts where the header gives none, is never stored. ``rank`` is what the folder says.
    """
    source = stored if path is None else replace(stored, path=str(path))
    if source.rank is not None:
        return source
    by_name = rank_in_file_name(Path(source.path))
    return replace(source, rank=rank if by_name is None else by_name)
