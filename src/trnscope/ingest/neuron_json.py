"""Reads Neuron's JSON documents into a store: system and device profiles, live events, summaries.

``system_profile.json`` has its events under ``trace_events``, under ``trace_event`` or is a bare
list of them. A device profile's instructions and DMA transfers are placed as those of the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trnscope.errors import TraceFormatError
from trnscope.ingest.gzip_stream import GzipReader
from trnscope.ingest.neuron_device import DevicePlacer
from trnscope.ingest.neuron_event import SystemEvent, event_from
from trnscope.ingest.neuron_figures import (
    METADATA_KEY,
    encode_figures,
    figures_of,
    is_block_name,
    is_summary,
)
from trnscope.ingest.neuron_findings import NeuronFindings
from trnscope.ingest.neuron_host_usage import add_cpu_usage, add_samples
from trnscope.ingest.neuron_json_kind import NeuronJson
from trnscope.ingest.neuron_json_stream import JsonStream
from trnscope.ingest.neuron_live import LiveEvents
from trnscope.ingest.neuron_places import NeuronTracks
from trnscope.ingest.neuron_rows import ObjectRows
from trnscope.ingest.neuron_simulation import SIMULATION_KEY, simulation_text
from trnscope.ingest.neuron_system import SystemPlacer
from trnscope.ingest.neuron_texts import Texts
from trnscope.ingest.neuron_values import as_text
from trnscope.model.source import TraceSource
from trnscope.store.writer import TraceWriter

Progress = Callable[[int, int], None]

_CHUNK_BYTES = 1 << 20
_ROWS_AT_ONCE = 1 << 15
_EPOCH_NS = 10**18
_EVENT_MEMBERS = ("trace_event", "trace_events", "events", "")
_INSTRUCTION_KEYS = {"start_ts": "timestamp", "duration_ns": "duration", "engine": "label"}
_DMA_KEYS = {
    "start_ts": "timestamp",
    "duration_ns": "duration",
    "transfer_bytes": "transfer_size",
}
_FORMATS = {
    NeuronJson.SYSTEM: "neuron-json",
    NeuronJson.DEVICE: "neuron-json",
    NeuronJson.LIVE: "neuron-live",
    NeuronJson.SUMMARY: "neuron-summary",
}


def read_neuron_json(
    path: Path,
    kind: NeuronJson,
    writer: TraceWriter,
    progress: Progress | None = None,
) -> None:
    """Read the document at ``path`` and finish ``writer``.

    Raises :class:`TraceFormatError` for one that holds nothing of Neuron's.
    """
    _JsonImporter(path, kind, writer, progress).run()


class _JsonImporter:
    """One run over one document."""

    def __init__(
        self, path: Path, kind: NeuronJson, writer: TraceWriter, progress: Progress | None
    ) -> None:
        self._path = path
        self._kind = kind
        self._writer = writer
        self._progress = progress
        self._texts = Texts()
        self._findings = NeuronFindings()
        self._tracks = NeuronTracks(writer)
        self._events: list[SystemEvent] = []
        self._live = LiveEvents()
        self._waiting: dict[str, list[Mapping[str, Any]]] = {}
        self._figures: list[tuple[str, dict[str, int | float]]] = []
        self._flat: dict[str, Any] = {}
        self._metadata: dict[str, Any] = {}
        device = self._tracks.device_number(0)
        self._device = DevicePlacer(
            writer, self._texts, self._tracks, device, self._findings.durations
        )

    def run(self) -> None:
        """Read every member, then write the store."""
        reader = GzipReader(self._path) if self._is_gzip() else None
        stream = JsonStream(self._plain_chunks() if reader is None else reader.chunks())
        for member, value in stream:
            self._take(member, value)
        for damage in () if reader is None else reader.damage:
            self._findings.note(damage.code, damage.message, loses_data=damage.data_lost)
        self._findings.note_skipped(stream.num_skipped, stream.first_skipped)
        if stream.problem is not None:
            self._findings.note("truncated", stream.problem, loses_data=True)
        self._finish()

    def _is_gzip(self) -> bool:
        with self._path.open("rb") as file:
            return file.read(2) == b"\x1f\x8b"

    def _plain_chunks(self) -> Iterator[bytes]:
        size, done = self._path.stat().st_size, 0
        with self._path.open("rb") as file:
            while data := file.read(_CHUNK_BYTES):
                yield data
                done += len(data)
                if self._progress is not None:
                    self._progress(done, size)

    # Members ------------------------------------------------------------------------------

    def _take(self, member: str, value: Any) -> None:
        if not isinstance(value, dict):
            self._take_plain(member, value)
        elif member in _EVENT_MEMBERS and self._kind is not NeuronJson.SUMMARY:
            self._take_event(value)
        elif member == "warnings":
            self._findings.note_message(as_text(value.get("message")) or json.dumps(value))
        elif self._kind is NeuronJson.SUMMARY or member == "summary":
            self._take_summary(member, value)
        elif member in ("system_profile_metadata", "profile_info"):
            self._metadata.update(value)
        elif member in ("instruction", "dma", "mem_usage", "cpu_util"):
            self._wait(member, value)

    def _take_plain(self, member: str, value: Any) -> None:
        """A member that is no object: a figure of a flat summary, or a warning's text."""
        if member == "warnings" and isinstance(value, str):
            self._findings.note_message(value)
        elif self._kind is NeuronJson.SUMMARY:
            self._flat[member] = value
        elif member in _EVENT_MEMBERS:
            self._findings.num_unreadable += 1

    def _take_event(self, value: Mapping[str, Any]) -> None:
        if self._kind is NeuronJson.LIVE:
            self._live.add(value)
            return
        event = event_from(value)
        if event is None:
            self._findings.num_unreadable += 1
        else:
            self._events.append(event)

    def _take_summary(self, member: str, value: Mapping[str, Any]) -> None:
        if is_summary(value) or is_block_name(member):
            self._figures.append((member, figures_of(value)))
            return
        for key, inner in value.items():
            if isinstance(inner, dict):
                self._figures.append((key, figures_of(inner)))

    def _wait(self, member: str, value: Mapping[str, Any]) -> None:
        rows = self._waiting.setdefault(member, [])
        rows.append(value)
        if len(rows) >= _ROWS_AT_ONCE:
            self._place(member)

    def _place(self, member: str) -> None:
        rows = self._waiting.pop(member, [])
        self._findings.num_read += len(rows)
        if member == "instruction":
            self._device.add_instructions(ObjectRows(rows, _INSTRUCTION_KEYS))
        elif member == "dma":
            self._device.add_transfers(ObjectRows(rows, _DMA_KEYS))
        elif member == "cpu_util":
            usage = ObjectRows(rows, {"util_percent": "util"})
            add_cpu_usage(usage, self._writer, self._tracks)
        elif member == "mem_usage":
            track = self._tracks.counter(None)
            memory = ObjectRows(rows, {"used_bytes": "usage"})
            add_samples(memory, self._writer, track, "host memory", "used_bytes")

    # Outcome ------------------------------------------------------------------------------

    def _finish(self) -> None:
        for member in list(self._waiting):
            self._place(member)
        self._finish_live()
        if is_summary(self._flat):
            self._figures.append(("", figures_of(self._flat)))
        self._tracks.describe(simulated=self._is_simulated(), device_name=None)
        durations = self._findings.durations
        placer = SystemPlacer(self._writer, self._texts, self._tracks, durations)
        placer.place(self._events)
        self._findings.note_impossible(placer.num_impossible + self._device.num_impossible)
        self._note_unfinished()
        self._findings.num_unreadable += self._device.num_unreadable
        self._findings.num_read += len(self._events) + len(self._figures)
        self._findings.num_read -= self._device.num_unreadable
        if self._findings.num_read <= 0:
            raise TraceFormatError(
                self._path,
                f"looks like a Neuron {self._kind.value}, but holds no events",
                hint="export it again with neuron-explorer view",
            )
        self._writer.finish(self._source(), self._findings.health(), self._texts.all)

    def _is_simulated(self) -> bool:
        return self._metadata.get("simulated") is True

    def _finish_live(self) -> None:
        self._live.finish()
        self._events += self._live.events
        self._findings.num_unreadable += self._live.num_unreadable
        lost = self._live.num_unmatched
        message = f"{lost} stops without a start: it was fetched before, or dropped"
        self._findings.note("end-without-begin", message, lost, loses_data=True)

    def _note_unfinished(self) -> None:
        count = sum(event.dur_ns is None for event in self._events)
        count += self._device.num_unfinished
        message = f"{count} events of unknown duration (kept apart, not as 0)"
        self._findings.note("unknown-duration", message, count, loses_data=True)

    def _source(self) -> TraceSource:
        metadata = {}
        if self._metadata:
            metadata["neuronMetadata"] = json.dumps(self._metadata)
        if self._figures:
            metadata[METADATA_KEY] = encode_figures(self._figures)
        model = as_text(self._metadata.get("model"))
        if self._is_simulated() and model is not None:
            metadata[SIMULATION_KEY] = simulation_text(model)
        starts = [event.start_ns for event in self._events]
        return TraceSource(
            path=str(self._path),
            format=_FORMATS[self._kind],
            num_events=self._findings.num_read,
            epoch=bool(starts) and min(starts) >= _EPOCH_NS,
            simulated=self._is_simulated(),
            metadata=metadata,
        )
