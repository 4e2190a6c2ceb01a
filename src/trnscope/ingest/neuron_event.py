"""One event of a Neuron system profile, whatever file it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trnscope.ingest.neuron_values import as_ids, as_int, as_object, as_text, first_of
from trnscope.ingest.neuron_words import Origin, origin_of, plain_name
from trnscope.ingest.rows import START_LIMIT_NS


@dataclass(frozen=True, slots=True)
class SystemEvent:
    """An event with the fields that trnscope uses; null where the file does not say."""

    id: int | None
    name: str
    origin: Origin
    start_ns: int
    dur_ns: int | None
    """Null: it never ended, or would last for years."""
    instance: str
    process: str
    thread: str
    core: int | None
    """Logical core."""
    physical_core: int | None
    worker: int | None
    """The core's number over all processes."""
    flow_ids: tuple[int, ...]
    model: int | None
    execution: int | None
    """The runtime's number of an execution of that model."""
    model_name: str | None
    stream: int | None
    category: str | None
    external_id: int | None
    num_bytes: int | None
    core_time_ns: int | None
    """Its start on the core's own clock."""


def event_from(row: Mapping[str, Any]) -> SystemEvent | None:
    """An event from an object of ``system_profile.json`` or a row of SystemProfileEvents.

    A key may stand in the object itself, in ``args``, or in the JSON text that the tables keep
    for what has no column. Null where name or start are missing or make no sense.
    """
    fields = _fields(row)
    name = as_text(row.get("name"))
    start = as_int(first_of(row, "start_ts", "timestamp"))
    if name is None or start is None or not 0 <= start < START_LIMIT_NS:
        return None
    get = fields.get
    group = as_text(get("group")) or ""
    source = as_text(first_of(fields, "trace_event_source", "source"))
    return SystemEvent(
        id=_whole(row.get("id")),
        name=plain_name(name),
        origin=origin_of(source, name, group, as_int(get("type"))),
        start_ns=start,
        dur_ns=_duration(row, start),
        instance=as_text(get("instance_id")) or "",
        process=as_text(first_of(fields, "process_id", "pid")) or "unknown",
        thread=as_text(first_of(fields, "thread_id", "tid")) or "unknown",
        core=_index(first_of(fields, "nc_idx", "lnc_idx")),
        physical_core=_index(first_of(fields, "pcore_idx", "device_core_idx")),
        worker=_index(get("worker_gid")),
        flow_ids=as_ids(first_of(fields, "flow_id", "nrt_sequence_id", "nrta_seq_id")),
        model=as_int(get("model_id")),
        execution=as_int(get("exec_id")),
        model_name=as_text(get("model_name")),
        stream=_whole(get("framework_stream_id")),
        category=as_text(first_of(fields, "cat", "category")),
        external_id=as_int(first_of(fields, "External id", "external_id")),
        num_bytes=_whole(first_of(fields, "size", "bytes", "size_bytes")),
        core_time_ns=as_int(first_of(fields, "nc_start_timestamp_ns", "nc_timestamp_ns")),
    )


def _fields(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with what it keeps in ``args`` and as JSON text; its own values count first."""
    kept = row.get("extra_attributes_json")
    args = row.get("args")
    if not kept and not args:
        return row
    fields = dict(row)
    more = as_object(kept)
    for layer in (as_object(args), more, as_object(more.get("args"))):
        for key, value in layer.items():
            if fields.get(key) is None:
                fields[key] = value
    return fields


def _duration(row: Mapping[str, Any], start: int) -> int | None:
    """From the end, else from the duration; null where neither makes sense."""
    end = as_int(row.get("end_ts"))
    if end is not None and end >= start:
        return end - start
    duration = as_int(first_of(row, "duration_ns", "duration"))
    return duration if duration is not None and duration >= 0 else None


def _whole(value: Any) -> int | None:
    """A number of at most 63 bits; null for any other: it is damage."""
    number = as_int(value)
    return number if number is not None and 0 <= number < 1 << 63 else None


def _index(value: Any) -> int | None:
    """The number of a core; null for one that no machine has."""
    number = as_int(value)
    return number if number is not None and 0 <= number < 1 << 31 else None
