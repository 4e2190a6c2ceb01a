"""Reads a folder of Neuron Explorer's Parquet tables into a store.

Read: SystemProfileEvents; Instruction, DmaPacketAggregated (else DmaPacket), CcOp, ActiveTime
(where instructions are missing), ExecutionInfo, FrameworkNode, Flow, Throttle, Error; the usage
tables as counters; Summary, Metadata and Warning. Device profiles that a system profile lists are
read with it. Not read: the compiler's levels (BIR, Penguin, HLO), stack frames, SBUF allocations,
semaphores. Source of the schema: Neuron Explorer, schema 7.4.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trnscope.errors import TraceFormatError
from trnscope.ingest import neuron_device as device_tables
from trnscope.ingest.neuron_clock import align
from trnscope.ingest.neuron_device import DevicePlacer
from trnscope.ingest.neuron_event import SystemEvent, event_from
from trnscope.ingest.neuron_figures import METADATA_KEY, encode_figures, figures_of
from trnscope.ingest.neuron_findings import NeuronFindings
from trnscope.ingest.neuron_folder import DeviceFolder, device_folders
from trnscope.ingest.neuron_host_usage import add_host_usage
from trnscope.ingest.neuron_places import NeuronTracks
from trnscope.ingest.neuron_rows import is_time
from trnscope.ingest.neuron_simulation import SIMULATION_KEY, chip_title, simulation_text
from trnscope.ingest.neuron_system import PlacedExecution, SystemPlacer
from trnscope.ingest.neuron_tables import NeuronTables
from trnscope.ingest.neuron_texts import Texts
from trnscope.ingest.neuron_values import as_text
from trnscope.model.source import TraceSource
from trnscope.store.tables import I64
from trnscope.store.writer import TraceWriter

Progress = Callable[[int, int], None]

_EPOCH_NS = 10**18
_KNOWN_SCHEMA = 7
"""Major version of the schema whose names are read."""
_USAGE: dict[str, tuple[str, ...]] = {
    "HbmUsage": ("current_throughput", "total_transfer_bytes"),
    "DmaUsage": ("current_throughput", "total_transfer_bytes"),
    "SbufUsage": ("avg_util_percent",),
    "PsumUsage": ("avg_util_percent",),
    "PendingDma": ("value",),
}


def read_neuron_folder(folder: Path, writer: TraceWriter, progress: Progress | None = None) -> None:
    """Read the tables in ``folder`` and finish ``writer``.

    Raises :class:`TraceFormatError` where none of them can be read.
    """
    _FolderImporter(folder, writer, progress).run()


class _FolderImporter:
    """One run over one folder, with the device profiles beside it."""

    def __init__(self, folder: Path, writer: TraceWriter, progress: Progress | None) -> None:
        self._folder = folder
        self._writer = writer
        self._progress = progress
        self._tables = NeuronTables(folder)
        self._devices = device_folders(folder, self._tables)
        self._texts = Texts()
        self._findings = NeuronFindings()
        self._figures: list[tuple[str, dict[str, int | float]]] = []
        metadata = [self._tables.first("Metadata")]
        metadata += [one.tables.first("Metadata") for one in self._devices if one.folder != folder]
        self._metadata = next((one for one in metadata if one), {})
        self._simulated = any(one.get("is_simulation") is True for one in metadata)
        self._tracks = NeuronTracks(
            writer, simulated=self._simulated, device_name=self._device_name()
        )
        self._system = SystemPlacer(writer, self._texts, self._tracks, self._findings.durations)
        self._epoch = False
        everything = (self._tables, *(one.tables for one in self._devices))
        self._all_tables = tuple(dict.fromkeys(everything))
        self._rows_total = sum(tables.estimate_rows() for tables in self._all_tables)
        self._size = sum(tables.num_bytes for tables in self._all_tables)

    def run(self) -> None:
        """Read every table, then write the store."""
        self._read_system()
        for device in self._devices:
            self._read_device(device)
        self._read_messages()
        for tables in self._all_tables:
            self._findings.note_damaged(tables.damaged)
        self._findings.num_read = sum(tables.num_rows for tables in self._all_tables)
        self._findings.num_read -= self._findings.num_unreadable
        self._require_something()
        self._writer.finish(self._source(), self._findings.health(), self._texts.all)

    def _require_something(self) -> None:
        if self._findings.num_read > 0:
            return
        damaged = [problem for tables in self._all_tables for problem in tables.damaged.items()]
        if damaged:
            name, problem = damaged[0]
            raise TraceFormatError(
                self._folder / name,
                f"is a damaged Parquet table ({problem})",
                hint="export the profile again with neuron-explorer view",
            )
        raise TraceFormatError(
            self._folder,
            "holds tables of Neuron Explorer, but no rows",
            hint="export the profile again with neuron-explorer view",
        )

    # System profile -----------------------------------------------------------------------

    def _read_system(self) -> None:
        events: list[SystemEvent] = []
        for row in self._tables.objects("SystemProfileEvents"):
            event = event_from(row)
            if event is None:
                self._findings.num_unreadable += 1
            else:
                events.append(event)
            if len(events) % 50_000 == 0:
                self._report()
        self._epoch = bool(events) and min(one.start_ns for one in events) >= _EPOCH_NS
        self._system.place(events)
        self._findings.note_impossible(self._system.num_impossible)
        add_host_usage(self._tables, self._writer, self._tracks)

    # Device profiles ----------------------------------------------------------------------

    def _read_device(self, one: DeviceFolder) -> None:
        device = self._tracks.device_number(self._number_of(one))
        placer = DevicePlacer(
            self._writer, self._texts, self._tracks, device, self._findings.durations
        )
        self._lay_beside(one, device.index, placer)
        tables = one.tables
        for table, columns, add in self._event_tables(tables, placer):
            for rows in tables.batches(table, columns):
                add(rows)
                self._report()
        for table, keys in _USAGE.items():
            for rows in tables.batches(table, ("timestamp", "pcore_idx", *keys)):
                placer.add_counters(rows, table, keys)
        self._read_flows(tables, placer)
        self._note_device(tables, placer, device.label)
        summary = tables.first("Summary")
        if summary:
            self._figures.append((device.label, figures_of(summary)))

    def _number_of(self, one: DeviceFolder) -> int:
        """The device's number: the system profile's for that process and core."""
        for execution in self._system.executions:
            event_key = (execution.process, execution.core)
            if event_key == (one.process, one.core):
                return execution.device
        return one.core

    def _event_tables(
        self, tables: NeuronTables, placer: DevicePlacer
    ) -> Iterator[tuple[str, Sequence[str], Callable[[Any], Any]]]:
        if tables.has("Instruction"):
            yield "Instruction", device_tables.INSTRUCTION_COLUMNS, placer.add_instructions
        elif tables.has("ActiveTime"):
            columns = (*device_tables.TIMES, "engine", "pcore_idx")
            yield "ActiveTime", columns, placer.add_active_times
        has_sets = tables.has("DmaPacketAggregated")
        dma = "DmaPacketAggregated" if has_sets else "DmaPacket"
        yield dma, device_tables.DMA_COLUMNS, placer.add_transfers
        yield "CcOp", device_tables.COLLECTIVE_COLUMNS, placer.add_collectives
        if not self._system.executions:
            yield "ExecutionInfo", device_tables.EXECUTION_COLUMNS, placer.add_executions
        yield "FrameworkNode", device_tables.NODE_COLUMNS, placer.add_framework_nodes
        yield "Throttle", ("timestamp", "duration", "type"), placer.add_throttling

    def _lay_beside(self, one: DeviceFolder, number: int, placer: DevicePlacer) -> None:
        executions = self._executions_of(one, number)
        if not executions:
            return
        # Tables of its own: these rows are read again, and must not count twice.
        alignment = align(_first_start(NeuronTables(one.folder)), executions)
        if alignment is None:
            return
        placer.lay_beside(executions, alignment.offset_ns)
        if not alignment.is_same_clock:
            self._findings.note(
                "device-clock-aligned",
                f"neuron:{number}: the device profile was laid on the host's clock by its first "
                "execution; order across both is not exact",
            )

    def _executions_of(self, one: DeviceFolder, number: int) -> list[PlacedExecution]:
        mine = [each for each in self._system.executions if each.device == number]
        of_model = [each for each in mine if each.model == one.model]
        return of_model if one.model is not None and of_model else mine

    def _read_flows(self, tables: NeuronTables, placer: DevicePlacer) -> None:
        lost = 0
        for rows in tables.batches("Flow", device_tables.FLOW_COLUMNS):
            lost += placer.add_flows(rows, self._system.points)
        message = f"{lost} dependencies name a row that is not in the profile, or not shown"
        self._findings.note("unlinked-dependency", message, lost)

    def _note_device(self, tables: NeuronTables, placer: DevicePlacer, label: str) -> None:
        errors = 0
        for rows in tables.batches("Error", ("timestamp", "description")):
            errors += placer.add_errors(rows)
        self._findings.note(
            "hardware-error", f"{label}: {errors} errors reported by the hardware", errors
        )
        self._findings.num_unreadable += placer.num_unreadable
        self._findings.note_impossible(placer.num_impossible, f"{label}: ")
        self._findings.note(
            "unknown-duration",
            f"{label}: {placer.num_unfinished} rows of unknown duration (kept apart, not as 0)",
            placer.num_unfinished,
            loses_data=True,
        )

    # Outcome ------------------------------------------------------------------------------

    def _read_messages(self) -> None:
        version = as_text(self._metadata.get("profile_schema_version")) or ""
        major = version.split(".")[0]
        if major.isdecimal() and int(major) > _KNOWN_SCHEMA:
            self._findings.note(
                "newer-schema",
                f"the tables are of schema {version}, trnscope knows {_KNOWN_SCHEMA}: what was "
                "renamed since is absent here",
            )
        for tables in self._all_tables:
            for row in tables.objects("Warning"):
                message = as_text(row.get("message"))
                if message is not None:
                    self._findings.note_message(message)

    def _device_name(self) -> str | None:
        """The chip, by the instance type."""
        instance = as_text(self._metadata.get("instance_type"))
        return None if instance is None else chip_title(instance)

    def _report(self) -> None:
        if self._progress is not None:
            done = sum(tables.num_rows for tables in self._all_tables)
            total = max(self._rows_total, done, 1)
            self._progress(self._size * done // total, self._size)

    def _source(self) -> TraceSource:
        metadata = {"neuronMetadata": json.dumps(self._metadata, default=str)}
        model = as_text(self._metadata.get("explorer_version"))
        if self._simulated and model is not None:
            metadata[SIMULATION_KEY] = simulation_text(model)
        if self._figures:
            metadata[METADATA_KEY] = encode_figures(self._figures)
        return TraceSource(
            path=str(self._folder),
            format="neuron-parquet",
            num_events=self._findings.num_read,
            epoch=self._epoch,
            simulated=self._simulated,
            metadata=metadata,
        )


def _first_start(tables: NeuronTables) -> int | None:
    """The first start in a device profile."""
    for table, column in (("ExecutionInfo", "execution_start_ts"), ("Instruction", "start_ts")):
        starts = [
            int(known.min())
            for rows in tables.batches(table, (column,))
            if (known := _usable(rows.ints(column))).size
        ]
        if starts:
            return min(starts)
    return None


def _usable(starts: I64) -> I64:
    return starts[is_time(starts) & (starts >= 0)]
