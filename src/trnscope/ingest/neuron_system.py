"""Places the events of a Neuron system profile: host threads, device executions, their links.

A call of the runtime and an event of the framework are slices of their thread. An execution of a
NEFF is a kernel of its logical core, a running collective is communication, and their chain back
to the op is kept as launch, op and flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import numpy as np

from trnscope.ingest.durations import LIMIT_NS, DurationBudget
from trnscope.ingest.kineto import Place, device_kind_by_name
from trnscope.ingest.neuron_event import SystemEvent
from trnscope.ingest.neuron_executions import Execution, ExecutionFinder, launch_of
from trnscope.ingest.neuron_places import NeuronTracks, core_key
from trnscope.ingest.neuron_texts import Texts
from trnscope.ingest.neuron_words import (
    EXECUTIONS,
    Origin,
    copy_direction,
    framework_kind,
    hardware_kind,
    is_point,
)
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.attributes import ATTRIBUTES
from trnscope.store.batches import (
    FLOW_END,
    FLOW_START,
    FLOW_STEP,
    FlowEnds,
    InstantBatch,
    SliceBatch,
    UnfinishedBatch,
)
from trnscope.store.writer import TraceWriter

FLOW_KIND = "neuron_flow"
"""Category of the links from op to runtime to device."""
_CATEGORIES = {
    Origin.FRAMEWORK: "framework",
    Origin.RUNTIME: "neuron_rt",
    Origin.HARDWARE: "neuron_hw",
}
_MAX_ID = (1 << 64) - 1


@dataclass(frozen=True)
class PlacedExecution:
    """A NEFF's execution in the store, for a device profile to be laid beside it."""

    device: int
    """Index of the device."""
    process: str
    core: int | None
    """The process's own number of the core."""
    correlation: int
    model: int | None
    start_ns: int
    end_ns: int
    core_time_ns: int | None
    """Its start on the core's own clock, where recorded."""
    track: int


@dataclass(frozen=True)
class _Row:
    """Where an event goes."""

    track: int
    kind: SliceKind
    name: str
    start_ns: int
    dur_ns: int
    category: str


class SystemPlacer:
    """Places one list of events."""

    def __init__(
        self, writer: TraceWriter, texts: Texts, tracks: NeuronTracks, durations: DurationBudget
    ) -> None:
        self._writer = writer
        self._texts = texts
        self._tracks = tracks
        self._durations = durations
        self._rows: list[_Row] = []
        self._row_of: dict[int, int] = {}
        self._attributes: dict[str, list[tuple[int, int]]] = {}
        self._owner_of_id: dict[int, str] = {}
        self._renamed: dict[tuple[str, int], int] = {}
        self._flow_ends: list[tuple[int, int, int, int]] = []
        self.executions: list[PlacedExecution] = []
        """NEFF executions, by start."""
        self.points: dict[int, tuple[int, int]] = {}
        """Event id to track and start, for tables that name events by id."""
        self.num_merged = 0
        """Rows of physical cores that were one execution with another row."""
        self.num_impossible = 0
        """Events that would last for years; kept apart like those that never ended."""

    def place(self, events: Sequence[SystemEvent]) -> None:
        """Write all of them."""
        events = self._admitted(events)
        self._tracks.number_cores(events)
        found = ExecutionFinder(events).find()
        has_device = any(events[one.rows[0]].name in EXECUTIONS for one in found)
        merged = {at for one in found for at in one.rows}
        for at, event in enumerate(events):
            if at not in merged:
                self._place(at, event, has_device)
        numbers = {id(one): number for number, one in enumerate(found, start=1)}
        for execution in found:
            number = numbers[id(execution.inside or execution)]
            self._place_execution(number, execution, events)
        self._write()

    def _admitted(self, events: Sequence[SystemEvent]) -> Sequence[SystemEvent]:
        """The events, without the durations that cannot be added up."""
        durations = [min(event.dur_ns or 0, LIMIT_NS) for event in events]
        admitted = self._durations.admits(np.array(durations, np.int64))
        if admitted.all():
            return events
        self.num_impossible += int((~admitted).sum())
        return [
            event if kept else replace(event, dur_ns=None)
            for event, kept in zip(events, admitted.tolist(), strict=True)
        ]

    # One event ----------------------------------------------------------------------------

    def _place(self, at: int, event: SystemEvent, has_device: bool) -> None:
        if is_point(event.name):
            self._add_instant(event)
            return
        if event.origin is Origin.FRAMEWORK:
            self._place_framework(at, event, has_device)
            return
        if event.origin is Origin.HARDWARE:
            kind = hardware_kind(event.name)
            track = self._tracks.stream(self._tracks.device_of(core_key(event)), None, "events")
        else:
            kind, track = SliceKind.RUNTIME, self._tracks.thread(event)
        self._add(at, event, track, kind)
        self._describe_copy(at, event)

    def _place_framework(self, at: int, event: SystemEvent, has_device: bool) -> None:
        kind, place = framework_kind(event.name, event.category)
        if place is Place.INSTANT:
            self._add_instant(event)
        elif place is Place.PROFILER:
            self._add(at, event, self._tracks.thread(event, TrackKind.PROFILER), kind)
        elif place is Place.HOST:
            self._add(at, event, self._tracks.thread(event), kind)
            self._identify(at, event)
        elif has_device:  # the framework's own view of what the device's rows say exactly
            track = self._tracks.thread(event, TrackKind.OTHER, "(device, as the framework saw it)")
            self._add(at, event, track, SliceKind.DEVICE_ANNOTATION)
        else:
            kind = device_kind_by_name(event.name) if place is Place.DRIVER else kind
            device = self._tracks.device_of(core_key(event))
            self._add(at, event, self._tracks.stream(device, event.stream, event.thread), kind)
            self._identify(at, event)

    def _identify(self, at: int, event: SystemEvent) -> None:
        """The id by which device work finds an op of the framework."""
        # 0 stands for none, as torch writes it.
        number = event.external_id or next(iter(event.flow_ids), 0)
        if number:
            self._attribute("external_id", at, self._own_id(event.process, number))

    def _describe_copy(self, at: int, event: SystemEvent) -> None:
        direction = copy_direction(event.name)
        if direction is not None:
            self._attribute("memcpy_kind", at, self._texts.intern(direction))
        if event.num_bytes is not None:
            self._attribute("bytes", at, event.num_bytes)

    def _add(self, at: int, event: SystemEvent, track: int, kind: SliceKind) -> None:
        category = event.category or _CATEGORIES[event.origin]
        if event.dur_ns is None:
            self._writer.add_unfinished(
                UnfinishedBatch(
                    np.array([event.start_ns], np.int64),
                    np.array([track], np.uint32),
                    self._texts.ids([event.name]),
                    np.array([self._writer.category(category)], np.uint16),
                )
            )
            return
        if event.id is not None:
            self.points[event.id] = (track, event.start_ns)
        self._row_of[at] = len(self._rows)
        self._rows.append(_Row(track, kind, event.name, event.start_ns, event.dur_ns, category))

    def _add_instant(self, event: SystemEvent) -> None:
        if event.origin is Origin.HARDWARE:
            device = self._tracks.device_of(core_key(event))
            track = self._tracks.stream(device, None, "events")
        else:
            track = self._tracks.thread(event)
        category = event.category or _CATEGORIES[event.origin]
        self._writer.add_instants(
            InstantBatch(
                ts_ns=np.array([event.start_ns], np.int64),
                track=np.array([track], np.uint32),
                name=self._texts.ids([event.name]),
                category=np.array([self._writer.category(category)], np.uint16),
                args_offset=np.zeros(1, np.uint64),
                args_length=np.zeros(1, np.uint32),
            )
        )

    # One execution ------------------------------------------------------------------------

    def _place_execution(
        self, number: int, execution: Execution, events: Sequence[SystemEvent]
    ) -> None:
        first = execution.rows[0]
        event = events[first]
        device = self._tracks.device_of(core_key(event))
        kind = hardware_kind(event.name)
        stream = event.stream if event.stream is not None else self._stream(execution, events)
        track = self._tracks.stream(device, stream, _stream_name(kind, stream))
        self.num_merged += len(execution.rows) - 1
        self._row_of[first] = len(self._rows)
        duration = execution.end_ns - execution.start_ns
        name = _execution_name(event)
        category = _CATEGORIES[Origin.HARDWARE]
        self._rows.append(_Row(track, kind, name, execution.start_ns, duration, category))
        for at in execution.rows:
            if (number_of_row := events[at].id) is not None:
                self.points[number_of_row] = (track, execution.start_ns)
        self._describe_copy(first, event)
        self._link(number, execution, events)
        if kind is SliceKind.KERNEL:
            self.executions.append(
                PlacedExecution(
                    device=device.index,
                    process=event.process,
                    core=event.core,
                    correlation=number,
                    model=event.model,
                    start_ns=execution.start_ns,
                    end_ns=execution.end_ns,
                    core_time_ns=event.core_time_ns,
                    track=track,
                )
            )

    @staticmethod
    def _stream(execution: Execution, events: Sequence[SystemEvent]) -> int | None:
        """The framework's stream, which the calls and the framework's rows name."""
        for at in (*execution.calls, *execution.framework):
            if events[at].stream is not None:
                return events[at].stream
        return None

    def _link(self, number: int, execution: Execution, events: Sequence[SystemEvent]) -> None:
        first = execution.rows[0]
        self._attribute("correlation", first, number)
        if execution.inside is not None:
            return
        launch = self._dispatch(execution, events)
        if launch is None:
            launch = launch_of(execution, events)
        if launch is not None and launch in self._row_of:
            self._attribute("correlation", launch, number)
        process = events[first].process
        external = self._external_id(execution, events)
        if external is not None:
            mine = self._own_id(process, external)
            self._attribute("external_id", first, mine)
            for at in execution.calls:
                self._attribute("external_id", at, mine)
        self._add_flow(number, execution, events)

    def _dispatch(self, execution: Execution, events: Sequence[SystemEvent]) -> int | None:
        """The framework's own call that enqueued it (``privateuse1_runtime``), if it is linked."""
        for at in execution.framework:
            kind, _ = framework_kind(events[at].name, events[at].category)
            if kind is SliceKind.RUNTIME and at in self._row_of:
                return at
        return None

    @staticmethod
    def _external_id(execution: Execution, events: Sequence[SystemEvent]) -> int | None:
        for at in execution.framework:
            if events[at].external_id:
                return events[at].external_id
        return execution.sequence

    def _add_flow(self, number: int, execution: Execution, events: Sequence[SystemEvent]) -> None:
        """A chain by time: framework, runtime, device."""
        chain = [at for at in (*execution.framework, *execution.calls) if at in self._row_of]
        if not chain:
            return
        chain.sort(key=lambda at: (events[at].start_ns, at))
        rows = [self._rows[self._row_of[at]] for at in (*chain, execution.rows[0])]
        last = len(rows) - 1
        for place, row in enumerate(rows):
            phase = FLOW_END if place == last else FLOW_STEP if place else FLOW_START
            self._flow_ends.append((number, phase, row.track, row.start_ns))

    # Writing ------------------------------------------------------------------------------

    def _attribute(self, key: str, at: int, value: int) -> None:
        if at in self._row_of:
            self._attributes.setdefault(key, []).append((self._row_of[at], value))

    def _own_id(self, process: str, number: int) -> int:
        """An id that no other process uses; the first process to use it keeps it."""
        if self._owner_of_id.setdefault(number, process) == process:
            return number & _MAX_ID
        return self._renamed.setdefault((process, number), _MAX_ID - len(self._renamed))

    def _write(self) -> None:
        if not self._rows:
            return
        rows = self._rows
        size = len(rows)
        category = self._writer.category
        event = self._writer.add_slices(
            SliceBatch(
                track=np.array([row.track for row in rows], np.uint32),
                kind=np.array([row.kind for row in rows], np.uint8),
                category=np.array([category(row.category) for row in rows], np.uint16),
                name=self._texts.ids([row.name for row in rows]),
                start_ns=np.array([row.start_ns for row in rows], np.int64),
                dur_ns=np.array([row.dur_ns for row in rows], np.int64),
                args_offset=np.zeros(size, np.uint64),
                args_length=np.zeros(size, np.uint32),
            )
        )
        for key, pairs in self._attributes.items():
            places = np.array([at for at, _ in pairs], np.uint32) + np.uint32(event)
            values = np.array([value for _, value in pairs], ATTRIBUTES[key].dtype)
            self._writer.add_attribute(key, places, values)
        self._write_flows()

    def _write_flows(self) -> None:
        if not self._flow_ends:
            return
        number, phase, track, time = zip(*self._flow_ends, strict=True)
        self._writer.add_flow_ends(
            FlowEnds(
                flow_id=np.array(number, np.uint64),
                kind=np.full(len(number), self._texts.intern(FLOW_KIND), np.uint32),
                phase=np.array(phase, np.uint8),
                track=np.array(track, np.uint32),
                ts_ns=np.array(time, np.int64),
            )
        )


def _stream_name(kind: SliceKind, stream: int | None) -> str:
    name = {SliceKind.COLLECTIVE: "collectives", SliceKind.MEMCPY: "copies"}.get(kind, "executions")
    return name if stream is None else f"{name} (stream {stream})"


def _execution_name(event: SystemEvent) -> str:
    """The NEFF's file name, else the model's number, else what the event is called."""
    if event.name not in EXECUTIONS:
        return event.name
    if event.model_name:
        return PurePosixPath(event.model_name).name or event.model_name
    return event.name if event.model is None else f"model {event.model}"
