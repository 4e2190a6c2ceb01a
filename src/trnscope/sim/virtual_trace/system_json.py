"""Writes ``system_profile.json``: the system trace in the documented form of Neuron Explorer.

Ids beyond 2**53 are text, as every other id there is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from trnscope.sim.virtual_trace.host_samples import HostSamples
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.selection import dropped_text
from trnscope.sim.virtual_trace.system_events import SystemEvent
from trnscope.sim.virtual_trace.trace_json import HOST_PROCESS

RUNTIME_TYPE = 11
FRAMEWORK_TYPE = 99999


def write_system_profile(
    recording: Recording,
    events: Iterable[SystemEvent],
    samples: HostSamples,
    instance_id: str,
    path: Path,
) -> Path:
    """Write ``path``, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    document = system_document(recording, events, samples, instance_id)
    try:
        unfinished.write_text(json.dumps(document, indent=1), encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def system_document(
    recording: Recording,
    events: Iterable[SystemEvent],
    samples: HostSamples,
    instance_id: str,
) -> dict[str, object]:
    """The document."""
    process = HOST_PROCESS + (recording.rank or 0)
    return {
        "trace_events": [_event(event, instance_id, process) for event in events],
        "mem_usage": list(_memory(samples, instance_id)),
        "cpu_util": list(_cpu(samples, instance_id)),
        "system_profile_metadata": [
            {
                "instance_id": instance_id,
                "simulated": True,
                "model": recording.simulation.model,
                "clock": "virtual",
                "first_ts_ns": str(recording.start_ns),
                "last_ts_ns": str(recording.end_ns),
            }
        ],
        "warnings": list(_warnings(recording, samples)),
    }


def _event(event: SystemEvent, instance_id: str, process: int) -> dict[str, object]:
    is_framework = event.source == "framework"
    group = f"framework-{event.thread_id}" if event.nc_idx is None else f"nrt-nc-{event.nc_idx:03d}"
    found: dict[str, object] = {
        "name": event.name,
        "timestamp": event.start_ns,
        "duration": event.end_ns - event.start_ns,
        "timestamp_unit": "ns",
        "group": group,
        "id": event.id,
        "type": FRAMEWORK_TYPE if is_framework else RUNTIME_TYPE,
        "trace_event_source": event.source,
        "instance_id": instance_id,
        "process_id": str(process),
        "thread_id": event.thread_id,
    }
    optional = {
        "nc_idx": event.nc_idx,
        "lnc_idx": None if event.nc_idx is None else str(event.nc_idx),
        "device_core_idx": event.pcore_idx,
        "flow_id": [str(number) for number in event.flow_ids] or None,
        "framework_stream_id": event.framework_stream_id,
        **event.attributes,
    }
    for key in ("nrta_seq_id", "size"):
        if optional.get(key) is not None:
            optional[key] = str(optional[key])
    found.update((key, value) for key, value in optional.items() if value is not None)
    return found


def _memory(samples: HostSamples, instance_id: str) -> Iterator[dict[str, object]]:
    for sample in samples.memory:
        yield {
            "timestamp": sample.time_ns,
            "duration": 0,
            "usage": sample.used_bytes,
            "percent_usage": 100 * sample.used_bytes / sample.total_bytes,
            "instance_id": instance_id,
            "clock": "real",
        }


def _cpu(samples: HostSamples, instance_id: str) -> Iterator[dict[str, object]]:
    for sample in samples.cpu:
        yield {
            "cpu_id": str(sample.cpu),
            "util": 100 * sample.busy_ratio,
            "timestamp": sample.time_ns,
            "duration": sample.duration_ns,
            "instance_id": instance_id,
            "clock": "real",
        }


def _warnings(recording: Recording, samples: HostSamples) -> Iterator[str]:
    yield f"simulated: all trace events are in the virtual time of {recording.simulation.model}"
    if samples.cpu or samples.memory:
        yield "cpu_util and mem_usage were measured on the real host, on the real clock"
    text = dropped_text(recording)
    if text is not None:
        yield text
