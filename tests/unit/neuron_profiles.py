"""Small Neuron profiles for tests: tables of chosen columns, and system events in short form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from trnscope.ingest import open_trace
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace

Rows = Sequence[Mapping[str, Any]]
SEQUENCE = (1 << 48) + 29
"""A sequence id as the runtime counts them: beyond 2**48."""
BIG = (1 << 62) + 3
"""An id that a float cannot hold."""


def write_tables(folder: Path, tables: Mapping[str, Rows], types: Mapping[str, Any] = {}) -> Path:
    """Write tables with just the columns that the rows name; ``types`` by column."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        arrays = [pa.array([row.get(key) for row in rows], types.get(key)) for key in columns]
        pq.write_table(pa.table(arrays, names=columns), folder / f"{name}.parquet")
    return folder


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def read(path: Path, tmp_path: Path) -> Trace:
    store = tmp_path / f"{path.name}.store"
    open_trace(path, store)
    return Trace(store)


def names(trace: Trace, *kinds: SliceKind) -> list[str]:
    return trace.strings.take(trace.slices.name[trace.slices.of_kind(*kinds)])


def spans(trace: Trace, *kinds: SliceKind) -> list[tuple[int, int]]:
    ids = trace.slices.of_kind(*kinds)
    return [(int(trace.slices.start_ns[i]), int(trace.slices.dur_ns[i])) for i in ids]


def values(trace: Trace, key: str, *kinds: SliceKind) -> list[Any]:
    """An attribute of all slices of a kind, null where a slice has none."""
    attribute = trace.attribute(key)
    ids = trace.slices.of_kind(*kinds)
    if attribute is None:
        return [None] * ids.size
    has, found = attribute.of(ids)
    texts = [trace.strings[v] if attribute.is_text else int(v) for v in found]
    return [text if known else None for text, known in zip(texts, has, strict=True)]


def warnings(trace: Trace) -> dict[str, int]:
    return {warning.code: warning.count for warning in trace.health.warnings}


def event(name: str, source: str, start: int, duration: int, **more: Any) -> dict[str, Any]:
    """A row of SystemProfileEvents; what has no column goes where the tables keep it."""
    columns = {"id", "instance_id", "process_id", "thread_id", "nc_idx", "pcore_idx"}
    columns |= {"worker_gid", "flow_id", "framework_stream_id"}
    row = {
        "id": start,
        "name": name,
        "start_ts": start,
        "end_ts": start + duration,
        "duration_ns": duration,
        "trace_event_source": source,
        "instance_id": "i-0",
        "process_id": 42,
        "thread_id": 7,
    }
    row |= {key: value for key, value in more.items() if key in columns}
    rest = {key.replace("_id_", " id"): v for key, v in more.items() if key not in columns}
    return row | {"extra_attributes_json": json.dumps(rest) if rest else None}


def chain(start: int, sequence: int, small: int, model: int, **more: Any) -> list[dict[str, Any]]:
    """An op, its call, and its execution on the two physical cores of logical core 0."""
    ids = [str(sequence), str(small)]
    run = {"model_id": model, "model_name": f"/a/neff_{model}.neff", "nc_idx": 0, **more}
    return [
        event(
            "aten::mm [trace.json]", "framework", start, 30, flow_id=[str(sequence)], cat="cpu_op"
        ),
        event("nrta_execute_schedule", "neuron_rt", start + 5, 10, flow_id=[str(sequence)]),
        event("kbl_exec_wait", "neuron_rt", start + 40, 60, thread_id=9, flow_id=ids, **run),
        event("nc_exec_running", "neuron_hw", start + 40, 60, pcore_idx=0, flow_id=ids[1:], **run),
        event("nc_exec_running", "neuron_hw", start + 41, 60, pcore_idx=1, flow_id=ids[1:], **run),
    ]
