"""The system trace of a recording: what the runtime and the cores did, by the runtime's names.

One chain of ids leads from an op to the device. The op, the runtime's call and the dispatch to
the core carry the sequence id; the wait of the runtime's worker carries it too, beside a small
id that is unique for its model; the execution on the core carries the small id. With two physical
cores for each logical one, each has an execution row of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from trnscope.sim.virtual_trace.recording import (
    HostKind,
    HostRow,
    Launch,
    LaunchKind,
    Recording,
    WaitRow,
)
from trnscope.sim.virtual_trace.trace_json import DRIVER_CALL, HOST_PROCESS, RUNTIME_CALLS

Source = Literal["framework", "neuron_rt", "neuron_hw"]
FRAMEWORK_SUFFIX = " [trace.json]"
"""Which file a framework event came from, as Neuron Explorer appends it to the name."""
COPIES = {
    LaunchKind.COPY_H2D: "dmem_buf_copyin",
    LaunchKind.COPY_D2H: "dmem_buf_copyout",
    LaunchKind.COPY_D2D: "dmem_buf_copy",
}
WORKER_THREAD = 9_000_000
"""Threads of the runtime's workers, one a core, count up from here."""
Attribute = int | str | None


@dataclass(frozen=True)
class SystemEvent:
    """One event. Times are virtual ns."""

    id: int
    name: str
    source: Source
    start_ns: int
    end_ns: int
    thread_id: int
    nc_idx: int | None = None
    pcore_idx: int | None = None
    flow_ids: tuple[int, ...] = ()
    framework_stream_id: int | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """What has no column in Neuron Explorer's table of system events."""


class _Models:
    """Numbers for programs and their executions, from 1, in order of first use."""

    def __init__(self) -> None:
        self._models: dict[str, int] = {}
        self._executions: dict[int, int] = defaultdict(int)

    def next_of(self, launch: Launch) -> tuple[int, int]:
        """Model and execution id of a launch."""
        model = self._models.setdefault(launch.cache_key or launch.name, len(self._models) + 1)
        self._executions[model] += 1
        return model, self._executions[model]


def system_events(recording: Recording) -> tuple[SystemEvent, ...]:
    """All events, numbered from 1 in the order of their starts."""
    found = [*_framework_events(recording), *_runtime_events(recording)]
    found.sort(key=lambda event: (event.start_ns, event.id))
    return tuple(
        SystemEvent(**{**event.__dict__, "id": number}) for number, event in enumerate(found, 1)
    )


def filtered(events: Iterable[SystemEvent], event_types: Sequence[str]) -> tuple[SystemEvent, ...]:
    """The events that a filter lets through: ``hardware``, ``software``, names, ``^exclude``."""
    excluded = {word[1:] for word in event_types if word.startswith("^")}
    wanted = {word for word in event_types if not word.startswith("^")}
    return tuple(
        event
        for event in events
        if not excluded & _types(event) and (not wanted or wanted & _types(event))
    )


def _types(event: SystemEvent) -> set[str]:
    return {event.name, "hardware" if event.source == "neuron_hw" else "software"}


def model_name(launch: Launch) -> str:
    """What a program is called."""
    return launch.cache_key or launch.name


def _framework_events(recording: Recording) -> Iterator[SystemEvent]:
    flows: dict[int, list[int]] = defaultdict(list)
    streams: dict[int, int] = {}
    for launch in recording.launches:
        if launch.op is not None:
            flows[launch.op].append(launch.sequence_id)
            streams[launch.op] = launch.stream
    for row in recording.host:
        if row.kind is HostKind.PYTHON:
            continue
        yield _framework_event(row, tuple(flows[row.id]), streams.get(row.id))


def _framework_event(row: HostRow, flows: tuple[int, ...], stream: int | None) -> SystemEvent:
    return SystemEvent(
        0,
        row.name + FRAMEWORK_SUFFIX,
        "framework",
        row.start_ns,
        row.end_ns,
        HOST_PROCESS + row.thread,
        flow_ids=flows,
        framework_stream_id=stream,
        attributes={
            "External id": row.id,
            "cat": "user_annotation" if row.kind is HostKind.ANNOTATION else "cpu_op",
        },
    )


def _runtime_events(recording: Recording) -> Iterator[SystemEvent]:
    models = _Models()
    for launch in recording.launches:
        yield _call(launch)
        if launch.kind in COPIES:
            yield _copy(launch)
        elif launch.kind is LaunchKind.COLLECTIVE:
            attributes = _collective(launch)
            yield _on_device(launch, "cc_running", (launch.sequence_id,), 0, attributes)
        else:
            yield from _execution(launch, models, recording.simulation.lnc)
    for wait in recording.waits:
        yield _wait(wait)


def _collective(launch: Launch) -> Mapping[str, Attribute]:
    message = launch.message
    if message is None:
        return {}
    return {
        "operation": message.call,
        "process_group": message.group_name,
        "replica_group": str(list(message.ranks)),
        "in_elements": message.in_elements,
        "out_elements": message.out_elements,
        "dtype": message.dtype,
    }


def _call(launch: Launch) -> SystemEvent:
    attributes: dict[str, Attribute] = {"nrta_seq_id": launch.sequence_id}
    if launch.compile_ns:
        attributes["compile_ns"] = launch.compile_ns
    return SystemEvent(
        1,
        RUNTIME_CALLS[launch.kind],
        "neuron_rt",
        *launch.call_ns,
        HOST_PROCESS + launch.thread,
        launch.core,
        flow_ids=(launch.sequence_id,),
        framework_stream_id=launch.stream,
        attributes=attributes,
    )


def _copy(launch: Launch) -> SystemEvent:
    return _on_device(
        launch, COPIES[launch.kind], (launch.sequence_id,), 0, {"size": launch.num_bytes}
    )


def _execution(launch: Launch, models: _Models, lnc: int) -> Iterator[SystemEvent]:
    model, execution = models.next_of(launch)
    attributes: dict[str, Attribute] = {
        "model_id": model,
        "model_name": model_name(launch),
        "exec_id": execution,
        "nc_start_timestamp_ns": launch.device_start_ns,
        "nc_stop_timestamp_ns": launch.device_end_ns,
    }
    if launch.cache_key is not None:
        attributes["neff_cache_key"] = launch.cache_key
    ids = (launch.sequence_id, execution)
    at = launch.host_end_ns
    yield _by_worker(launch, DRIVER_CALL, at - 1, at, (launch.sequence_id,), attributes)
    span = (launch.device_start_ns, launch.device_end_ns)
    yield _by_worker(launch, "kbl_exec_wait", *span, ids, attributes)
    if launch.switch_ns:
        yield _model_switch(launch, attributes)
    for physical in range(lnc):
        attributes = {**attributes, "device_core_idx": physical}
        yield _on_device(launch, "nc_exec_running", (execution,), physical, attributes)


def _model_switch(launch: Launch, attributes: Mapping[str, Attribute]) -> SystemEvent:
    start = launch.device_start_ns
    return SystemEvent(
        2,
        "nc_model_switch",
        "neuron_hw",
        start,
        start + launch.switch_ns,
        WORKER_THREAD + launch.core,
        launch.core,
        0,
        attributes={"model_id": attributes["model_id"], "model_name": attributes["model_name"]},
    )


def _by_worker(
    launch: Launch,
    name: str,
    start_ns: int,
    end_ns: int,
    ids: tuple[int, ...],
    attributes: Mapping[str, Attribute],
) -> SystemEvent:
    return SystemEvent(
        2,
        name,
        "neuron_rt",
        start_ns,
        end_ns,
        WORKER_THREAD + launch.core,
        launch.core,
        flow_ids=ids,
        framework_stream_id=launch.stream,
        attributes=attributes,
    )


def _on_device(
    launch: Launch,
    name: str,
    ids: tuple[int, ...],
    physical: int,
    attributes: Mapping[str, Attribute],
) -> SystemEvent:
    return SystemEvent(
        3,
        name,
        "neuron_hw",
        launch.device_start_ns,
        launch.device_end_ns,
        WORKER_THREAD + launch.core,
        launch.core,
        physical,
        ids,
        launch.stream,
        attributes,
    )


def _wait(wait: WaitRow) -> SystemEvent:
    thread = HOST_PROCESS + wait.thread
    return SystemEvent(1, wait.name, "neuron_rt", wait.start_ns, wait.end_ns, thread)
