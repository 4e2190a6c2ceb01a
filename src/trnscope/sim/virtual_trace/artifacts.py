"""Writes the files of one profile into its folder, by the modes that were asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from trnscope.sim.virtual_trace.host_samples import HostSamples
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.system_events import SystemEvent
from trnscope.sim.virtual_trace.system_json import write_system_profile
from trnscope.sim.virtual_trace.trace_json import write_trace

FRAMEWORK_TRACE = "trace.json"
SYSTEM_PROFILE = "system_profile.json"
MAPPING_VERSION = 1


def write_framework_trace(recording: Recording, folder: Path) -> Path:
    """``trace.json``: ops, launches and device work in virtual time."""
    return write_trace(recording, folder / FRAMEWORK_TRACE)


def write_system_trace(
    recording: Recording,
    events: Iterable[SystemEvent],
    samples: HostSamples,
    instance_id: str,
    folder: Path,
) -> Path:
    """``system_profile.json``: calls of the runtime, executions, samples of the host."""
    path = folder / SYSTEM_PROFILE
    return write_system_profile(recording, events, samples, instance_id, path)


def write_framework_mapping(recording: Recording, path: Path) -> Path:
    """The table that joins the runtime's sequence ids to autograd's sequence numbers."""
    path.write_text(json.dumps(framework_mapping(recording)), encoding="utf-8")
    return path


def framework_mapping(recording: Recording) -> Mapping[str, object]:
    """Its document: an entry for each launch under an op with a sequence number."""
    rows = {row.id: row for row in recording.host}
    data = []
    for launch in recording.launches:
        row = rows.get(launch.op) if launch.op is not None else None
        if row is not None and row.sequence_number is not None:
            ids = {
                "seq_nr": row.sequence_number,
                "th_id": row.thread,
                "stream_id": launch.stream,
            }
            data.append({"nrta_seq_id": launch.sequence_id, "framework_op_exec_ids": [ids]})
    return {"version": MAPPING_VERSION, "data": data}
