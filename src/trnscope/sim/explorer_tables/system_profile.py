"""Writes the tables of a system profile: events of framework, runtime and cores; host samples."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trnscope.sim.explorer_tables.metadata import metadata_row
from trnscope.sim.explorer_tables.parquet import TableSet
from trnscope.sim.explorer_tables.rows import (
    CpuRow,
    HostMemoryRow,
    Machine,
    SystemRow,
    WarningRow,
)


class SystemProfileWriter:
    """Takes rows in any order; :meth:`close` finishes the files."""

    def __init__(self, folder: Path, machine: Machine, name: str, instance_id: str) -> None:
        self.folder = folder
        self._machine = machine
        self._name = name
        self._instance = instance_id
        self._tables = TableSet(folder)
        self._span: tuple[int, int] | None = None

    def add_events(self, rows: Iterable[SystemRow]) -> None:
        """Events, by start."""
        self._tables["SystemProfileEvents"].add(self._event(row) for row in rows)

    def _event(self, row: SystemRow) -> dict[str, Any]:
        first, last = self._span or (row.start_ns, row.end_ns)
        self._span = (min(first, row.start_ns), max(last, row.end_ns))
        attributes = {key: value for key, value in row.attributes.items() if value is not None}
        return {
            "id": row.id,
            "name": row.name,
            "start_ts": row.start_ns,
            "end_ts": row.end_ns,
            "duration_ns": row.end_ns - row.start_ns,
            "trace_event_source": row.source,
            "instance_id": self._instance,
            "process_id": row.process_id,
            "thread_id": row.thread_id,
            "nc_idx": row.core,
            "pcore_idx": row.physical_core,
            "worker_gid": row.worker,
            "flow_id": [str(number) for number in row.flow_ids] or None,
            "framework_stream_id": None if row.stream is None else str(row.stream),
            "extra_attributes_json": json.dumps(attributes) if attributes else None,
        }

    def add_cpu(self, rows: Iterable[CpuRow]) -> None:
        """How busy the host's processors were; on the real clock."""
        self._tables["CpuUsage"].add(
            {
                "timestamp": row.time_ns,
                "util_percent": 100 * row.busy_ratio,
                "cpu_id": row.cpu,
                "instance_id": self._instance,
            }
            for row in rows
        )

    def add_host_memory(self, rows: Iterable[HostMemoryRow]) -> None:
        """Memory of the host; on the real clock."""
        self._tables["HostMemUsage"].add(
            {
                "timestamp": row.time_ns,
                "used_bytes": row.used_bytes,
                "used_percent": 100 * row.used_bytes / row.total_bytes,
                "instance_id": self._instance,
            }
            for row in rows
        )

    def add_device_profile(self, name: str, process_id: int, core: int) -> None:
        """Name a device profile that belongs to this one."""
        self._tables["DeviceProfileList"].add(
            [
                {
                    "device_profile_name": name,
                    "instance_id": self._instance,
                    "process_id": process_id,
                    "nc_id": core,
                    "session_id": 0,
                }
            ]
        )

    def add_warning(self, row: WarningRow) -> None:
        """What a reader should know."""
        self._tables["Warning"].add([{"message": row.message, "category": row.category}])

    def close(self) -> None:
        """Finish every file."""
        first, last = self._span or (0, 0)
        self._tables["Metadata"].add([metadata_row(self._machine, self._name, first, last, None)])
        self._tables["SystemProfileMetadata"].add(
            [
                {
                    "first_ts": f"{first} ns (virtual)",
                    "last_ts": f"{last} ns (virtual)",
                    "first_ts_ns": str(first),
                    "last_ts_ns": str(last),
                    "ntff_version": 0,
                    "hbm_capacity_bytes": self._machine.hbm_bytes,
                }
            ]
        )
        self._tables.close()
