"""The version of the store, the columns of its tables, and its ``meta.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from trnscope.errors import TraceFormatError
from trnscope.model.health import Health, HealthWarning
from trnscope.model.kinds import DeviceKind, TrackKind
from trnscope.model.source import TraceSource
from trnscope.model.track import Device, Track
from trnscope.store.column_file import ColumnLayout, end_of
from trnscope.store.tables import CounterSeries

SCHEMA_VERSION = 1
"""Raise it with every change of a table or of ``meta.json``, and add a migration."""

META_FILE = "meta.json"

SLICE_COLUMNS: dict[str, Any] = {
    "start_ns": np.int64,
    "dur_ns": np.int64,
    "self_ns": np.int64,
    "op_self_ns": np.int64,
    "kind": np.uint8,
    "category": np.uint16,
    "name": np.uint32,
    "track": np.uint32,
    "depth": np.uint16,
    "parent": np.uint32,
    "args_offset": np.uint64,
    "args_length": np.uint32,
}
"""The slices table, in lane order."""


@dataclass(frozen=True)
class StoreMeta:
    """All of a store that is no table."""

    source: TraceSource
    health: Health
    categories: tuple[str, ...]
    tracks: tuple[Track, ...]
    counter_series: tuple[CounterSeries, ...]
    layouts: dict[str, tuple[ColumnLayout, ...]]
    """Table name to the columns of its file."""


def save_meta(directory: Path, meta: StoreMeta) -> None:
    """Write ``meta.json``: the last file of a store, so that it marks the store as whole."""
    source = {**asdict_source(meta.source), "metadata": dict(meta.source.metadata)}
    document = {
        "schema": SCHEMA_VERSION,
        "source": source,
        "health": asdict(meta.health),
        "categories": meta.categories,
        "tracks": _track_rows(meta.tracks),
        "counter_series": [asdict(series) for series in meta.counter_series],
        "layouts": {
            table: [[c.name, c.dtype, c.offset, c.num_rows] for c in columns]
            for table, columns in meta.layouts.items()
        },
    }
    partial = directory / (META_FILE + ".partial")
    partial.write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
    partial.rename(directory / META_FILE)


def asdict_source(source: TraceSource) -> dict[str, Any]:
    """The fields of a source but its metadata (a mapping proxy that dataclasses cannot copy)."""
    return {
        "path": source.path,
        "format": source.format,
        "num_events": source.num_events,
        "rank": source.rank,
        "world_size": source.world_size,
        "base_time_ns": source.base_time_ns,
        "epoch": source.epoch,
        "simulated": source.simulated,
    }


def load_meta(directory: Path) -> StoreMeta:
    """Read ``meta.json``; an older store is migrated, a newer one refused."""
    path = directory / META_FILE
    document = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    document = _migrated(path, document)
    source = document["source"]
    source["metadata"] = MappingProxyType(source["metadata"])
    health = document["health"]
    health["warnings"] = tuple(HealthWarning(**warning) for warning in health["warnings"])
    return StoreMeta(
        source=TraceSource(**source),
        health=Health(**health),
        categories=tuple(document["categories"]),
        tracks=_tracks(document["tracks"]),
        counter_series=tuple(CounterSeries(**series) for series in document["counter_series"]),
        layouts={
            table: tuple(ColumnLayout(*column) for column in columns)
            for table, columns in document["layouts"].items()
        },
    )


def load_sound_meta(directory: Path) -> StoreMeta | None:
    """``meta.json`` of a whole store; null where it, or the length of a table, is damaged."""
    try:
        meta = load_meta(directory)
        is_whole = all(
            (directory / f"{table}.arrow").stat().st_size >= end_of(columns)
            for table, columns in meta.layouts.items()
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return meta if is_whole else None


_MIGRATIONS: dict[int, Any] = {}
"""Version to the function that turns its document into the next version's."""


def _migrated(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    version = document.get("schema")
    if not isinstance(version, int):
        raise TraceFormatError(path, "is no trnscope store", hint="delete the folder")
    if version > SCHEMA_VERSION:
        raise TraceFormatError(
            path,
            f"was written by a newer trnscope (store version {version}, this one reads "
            f"{SCHEMA_VERSION})",
            hint="update trnscope",
        )
    while version < SCHEMA_VERSION:
        document = _MIGRATIONS[version](document)
        version = document["schema"]
    return document


def _track_rows(tracks: Sequence[Track]) -> list[list[Any]]:
    return [
        [
            int(t.kind),
            t.process,
            t.thread,
            t.process_name,
            t.thread_name,
            t.sort_index,
            None
            if t.device is None
            else [int(t.device.kind), t.device.index, t.device.name, t.device.simulated],
            t.stream,
        ]
        for t in tracks
    ]


def _tracks(rows: Sequence[Sequence[Any]]) -> tuple[Track, ...]:
    tracks = []
    for kind, process, thread, process_name, thread_name, sort_index, device, stream in rows:
        owner = None
        if device is not None:
            owner = Device(DeviceKind(device[0]), device[1], device[2], device[3])
        tracks.append(
            Track(
                TrackKind(kind),
                process,
                thread,
                process_name,
                thread_name,
                sort_index,
                owner,
                stream,
            )
        )
    return tuple(tracks)
