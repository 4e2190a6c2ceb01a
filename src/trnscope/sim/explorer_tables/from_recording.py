"""Writes the tables of a recording of the simulated device: what its DEVICE mode leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from trnscope.sim.cost.lowering.work import size_bytes
from trnscope.sim.cost.model import CostModel
from trnscope.sim.cost.program import item_bytes
from trnscope.sim.explorer_tables.course import course_of, machine_of
from trnscope.sim.explorer_tables.device_profile import MAX_ROWS
from trnscope.sim.explorer_tables.profile import ExplorerProfile
from trnscope.sim.explorer_tables.rows import (
    CollectiveRow,
    Course,
    CpuRow,
    DeviceExecution,
    HostMemoryRow,
    SystemRow,
    TensorRow,
    WarningRow,
)
from trnscope.sim.signature import CollectiveSpec, GraphSpec, OpSignature
from trnscope.sim.virtual_trace.host_samples import HostSamples
from trnscope.sim.virtual_trace.recording import (
    EXECUTIONS,
    CollectiveInfo,
    Launch,
    LaunchKind,
    Recording,
)
from trnscope.sim.virtual_trace.selection import dropped_text
from trnscope.sim.virtual_trace.system_events import SystemEvent, model_name
from trnscope.sim.virtual_trace.trace_json import HOST_PROCESS

Signature = OpSignature | GraphSpec | CollectiveSpec | None
Signatures = Callable[[int], Signature]
"""What has a number in the device's table of signatures."""

PROFILE_NAME = "profile"


def write_explorer_tables(
    recording: Recording,
    events: Sequence[SystemEvent],
    samples: HostSamples,
    model: CostModel,
    signatures: Signatures,
    root: Path,
    instance_id: str,
    *,
    name: str = PROFILE_NAME,
    max_rows: int = MAX_ROWS,
) -> Path:
    """Write the profile under ``root``; returns the folder to open."""
    process = HOST_PROCESS + (recording.rank or 0)
    profile = ExplorerProfile(
        root,
        name,
        machine_of(model),
        instance_id=instance_id,
        process_id=process,
        max_rows=max_rows,
    )
    with profile:
        profile.system.add_events(_system_row(event, process) for event in events)
        _add_host(profile, samples)
        _Devices(profile, model, signatures, events).add(recording.launches)
        dropped = dropped_text(recording)
        if dropped is not None:
            profile.system.add_warning(WarningRow(dropped, "Missing Data"))
    return profile.folder


def _system_row(event: SystemEvent, process: int) -> SystemRow:
    return SystemRow(
        id=event.id,
        name=event.name,
        source=event.source,
        start_ns=event.start_ns,
        end_ns=event.end_ns,
        process_id=process,
        thread_id=event.thread_id,
        core=event.nc_idx,
        physical_core=event.pcore_idx,
        flow_ids=event.flow_ids,
        stream=event.framework_stream_id,
        attributes=event.attributes,
    )


def _add_host(profile: ExplorerProfile, samples: HostSamples) -> None:
    profile.system.add_cpu(CpuRow(s.time_ns, str(s.cpu), s.busy_ratio) for s in samples.cpu)
    profile.system.add_host_memory(
        HostMemoryRow(s.time_ns, s.used_bytes, s.total_bytes) for s in samples.memory
    )
    if samples.cpu or samples.memory:
        message = "CpuUsage and HostMemUsage were measured on the real host, on the real clock"
        profile.system.add_warning(WarningRow(message, "Clock"))


class _Devices:
    """Writes the launches of each core; a program's course is worked out once."""

    def __init__(
        self,
        profile: ExplorerProfile,
        model: CostModel,
        signatures: Signatures,
        events: Iterable[SystemEvent],
    ) -> None:
        self._profile = profile
        self._model = model
        self._signatures = signatures
        self._courses: dict[int, Course | None] = {}
        self._events = {
            (event.nc_idx, event.framework_stream_id, event.start_ns): event
            for event in events
            if event.name == "nc_exec_running" and not event.pcore_idx
        }

    def add(self, launches: Iterable[Launch]) -> None:
        """All of them, by start on the device."""
        for launch in sorted(launches, key=lambda one: (one.device_start_ns, one.sequence_id)):
            if launch.kind is LaunchKind.COLLECTIVE:
                self._add_collective(launch)
            elif launch.kind in EXECUTIONS and not launch.on_cpu:
                self._add_execution(launch)

    def _add_execution(self, launch: Launch) -> None:
        event = self._events.get((launch.core, launch.stream, launch.device_start_ns))
        model_id = None if event is None else event.attributes.get("model_id")
        self._profile.device(launch.core).add_execution(
            DeviceExecution(
                core=launch.core,
                start_ns=launch.device_start_ns,
                end_ns=launch.device_end_ns,
                program=model_name(launch),
                op=launch.name,
                course=self._course(launch),
                model_id=model_id if isinstance(model_id, int) else None,
                event_id=None if event is None else event.id,
            )
        )

    def _course(self, launch: Launch) -> Course | None:
        number = launch.signature
        if number is None:
            return None
        if number not in self._courses:
            signature = self._signatures(number)
            self._courses[number] = (
                course_of(self._model, signature)
                if isinstance(signature, OpSignature | GraphSpec)
                else None
            )
            self._profile.device(launch.core).add_tensors(_tensors(model_name(launch), signature))
        return self._courses[number]

    def _add_collective(self, launch: Launch) -> None:
        info = launch.collective
        if info is not None:
            self._profile.device(launch.core).add_collective(_collective_row(launch, info))


def _collective_row(launch: Launch, info: CollectiveInfo) -> CollectiveRow:
    message, size = launch.message, item_bytes(info.dtype)
    return CollectiveRow(
        core=launch.core,
        start_ns=launch.device_start_ns,
        end_ns=launch.device_end_ns,
        operation="".join(word.capitalize() for word in info.name.split("_")),
        num_elements=info.num_elements,
        dtype=info.dtype,
        num_bytes=info.num_elements * size,
        num_ranks=info.group_size,
        group=None if message is None else message.ranks,
        input_bytes=None if message is None else message.in_elements * size,
        output_bytes=None if message is None else message.out_elements * size,
        stream=launch.stream,
        trigger_ns=launch.host_end_ns,
    )


def _tensors(program: str, signature: Signature) -> Iterable[TensorRow]:
    """Inputs and outputs of an op; a graph's values have no names."""
    if not isinstance(signature, OpSignature):
        return
    for role, specs in (("IN", signature.inputs), ("OUT", signature.outputs)):
        for at, spec in enumerate(specs):
            if spec is not None:
                name = f"{program}/{role.lower()}{at}"
                yield TensorRow(program, name, role, spec.shape, size_bytes(spec))
