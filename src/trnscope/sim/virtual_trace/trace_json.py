"""Writes a recording as a Kineto trace in virtual time: the layout of torch 2.13's own files.

Host rows, runtime rows, driver rows and device work of one launch are joined in both ways that
readers know: by ``External id`` (op to runtime, driver and device) and by ``correlation`` with an
arrow ``ac2g`` (from what enqueued the work to the device). The header's ``trnscopeSimulation``
says that nothing in the file was measured.
"""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from trnscope.sim.virtual_trace import rows
from trnscope.sim.virtual_trace.backward_links import CATEGORY as BACKWARD_LINK
from trnscope.sim.virtual_trace.backward_links import backward_links
from trnscope.sim.virtual_trace.collective_args import collective_args, message_args
from trnscope.sim.virtual_trace.device_annotations import DeviceAnnotation, device_annotations
from trnscope.sim.virtual_trace.python_frames import python_args
from trnscope.sim.virtual_trace.recording import (
    HostKind,
    HostRow,
    Launch,
    LaunchKind,
    MemoryRow,
    Recording,
    Simulation,
    WaitRow,
)

HOST_PROCESS = 1_000_000
"""Stands for the process id, which would differ between two runs; ranks count up from it."""
TRACE_NAME = "trace.json"
"""The same for every file: the real name may hold a time."""
DEVICE_SORT = 5_000_000
PRIVATEUSE1 = 20
"""torch's number for the kind of device."""
CATEGORIES = {
    LaunchKind.KERNEL: "kernel",
    LaunchKind.GRAPH: "kernel",
    LaunchKind.COLLECTIVE: "kernel",
    LaunchKind.COPY_H2D: "gpu_memcpy",
    LaunchKind.COPY_D2H: "gpu_memcpy",
    LaunchKind.COPY_D2D: "gpu_memcpy",
    LaunchKind.MEMSET: "gpu_memset",
}
RUNTIME_CALLS = {
    LaunchKind.KERNEL: "nrta_execute_schedule",
    LaunchKind.GRAPH: "nrta_execute_schedule",
    LaunchKind.COLLECTIVE: "nrt_cc_schedule",
    LaunchKind.COPY_H2D: "nrt_tensor_write",
    LaunchKind.COPY_D2H: "nrt_tensor_read",
    LaunchKind.COPY_D2D: "nrt_tensor_copy",
    LaunchKind.MEMSET: "nrt_tensor_memset",
}
"""The host call that enqueues each kind of work, by the runtime's own names where it has one."""
DRIVER_CALL = "kmgr_exec_core"
"""The dispatch of an execution to its core: the last moment of the runtime's call."""
COMPILER = "neuronx-cc"
"""The compilation of a program that is not in the cache, before its first launch."""
PROGRAMS = (LaunchKind.KERNEL, LaunchKind.GRAPH, LaunchKind.COLLECTIVE)
"""What is dispatched to the cores; the rest is work of the copy engines alone."""
COPY_KINDS = {
    LaunchKind.COPY_H2D: ("HtoD", "Pageable", "Device"),
    LaunchKind.COPY_D2H: ("DtoH", "Device", "Pageable"),
    LaunchKind.COPY_D2D: ("DtoD", "Device", "Device"),
}


def write_trace(recording: Recording, path: Path) -> Path:
    """Write ``path``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _opened(unfinished, compress=path.suffix == ".gz") as file:
            file.writelines(_document(recording))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


@contextmanager
def _opened(path: Path, *, compress: bool) -> Iterator[TextIO]:
    with path.open("wb") as raw:
        # Neither a name nor a time in the header: the same trace gives the same bytes.
        file: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compress else raw
        with io.TextIOWrapper(file, encoding="utf-8") as text:
            yield text


def trace_text(recording: Recording) -> str:
    """The whole document."""
    return "".join(_document(recording))


def _document(recording: Recording) -> Iterator[str]:
    yield "{\n"
    for key, value in _header(recording).items():
        yield f"  {json.dumps(key)}: {json.dumps(value)},\n"
    yield '  "traceEvents": [\n'
    separator = "  "
    for row in _rows(recording):
        yield f"{separator}{row}"
        separator = ",\n  "
    yield "\n  ]"
    if recording.rank is not None:
        yield f',\n  "distributedInfo": {json.dumps(_distributed(recording))}'
    yield f',\n  "traceName": "{TRACE_NAME}"\n}}\n'


def _header(recording: Recording) -> dict[str, object]:
    flags = {
        "record_shapes": recording.with_shapes,
        "profile_memory": recording.with_memory,
        "with_stack": recording.with_stack,
    }
    simulation = recording.simulation
    dropped = {str(core): count for core, count in recording.dropped.items()}
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            device_properties(simulation, index) for index in range(simulation.num_devices)
        ],
        "trnscopeSimulation": {
            **simulation_header(simulation, clock="virtual"),
            "dropped_events": dropped,
        },
        **{key: 1 for key, wanted in flags.items() if wanted},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 0,
    }


def simulation_header(simulation: Simulation, *, clock: str) -> dict[str, object]:
    """What made the times of a trace up."""
    return {
        "clock": clock,
        "hardware": simulation.hardware,
        "version": simulation.version,
        "model": simulation.model,
        "instance": simulation.instance,
        "lnc": simulation.lnc,
    }


def device_properties(simulation: Simulation, index: int) -> dict[str, object]:
    """An entry of ``deviceProperties``."""
    found: dict[str, object] = {"id": index, "name": simulation.title, "simulated": True}
    if simulation.memory_bytes is not None:
        found["totalGlobalMem"] = simulation.memory_bytes
    return found


def _distributed(recording: Recording) -> dict[str, object]:
    return {"backend": "neuron", "rank": recording.rank, "world_size": recording.world_size}


def _rows(recording: Recording) -> Iterator[str]:
    process = HOST_PROCESS + (recording.rank or 0)
    yield from _names(recording, process)
    functions = python_args(recording.host)
    for host in recording.host:
        yield _host_row(host, process, functions.get(host.id))
    for launch in recording.launches:
        yield from _launch_rows(launch, process)
    for annotation in device_annotations(recording):
        yield _device_annotation_row(annotation)
    for number, (forward, backward) in enumerate(backward_links(recording.host), 1):
        yield from _backward_link(number, forward, backward, process)
    for wait in recording.waits:
        yield _wait_row(wait, process)
    for memory in recording.memory:
        yield from _memory_rows(memory, process)
    yield rows.complete(
        "Trace",
        "PyTorch Profiler (0)",
        ("Spans", "PyTorch Profiler"),
        recording.start_ns,
        recording.end_ns,
        {"Op count": len(recording.host) - len(functions), "clock": "virtual"},
    )


def _names(recording: Recording, process: int) -> Iterator[str]:
    yield rows.metadata("process_name", (process, 0), "python")
    yield rows.metadata("process_labels", (process, 0), "CPU (virtual time)")
    yield rows.metadata("process_sort_index", (process, 0), process)
    for thread, name in sorted(_threads(recording).items()):
        yield rows.metadata("thread_name", (process, process + thread), name)
    label = f"{recording.simulation.title}, simulated ({recording.simulation.model})"
    for core in range(recording.simulation.num_devices):
        yield rows.metadata("process_name", (core, 0), label)
        yield rows.metadata("process_labels", (core, 0), f"NEURON {core}")
        yield rows.metadata("process_sort_index", (core, 0), DEVICE_SORT + core)
    for core, stream in sorted({(launch.core, launch.stream) for launch in recording.launches}):
        yield rows.metadata("thread_name", (core, stream), f"stream {stream}")


def _threads(recording: Recording) -> dict[int, str]:
    seen = {row.thread for row in recording.host}
    seen |= {launch.thread for launch in recording.launches}
    seen |= {wait.thread for wait in recording.waits}
    return {thread: f"thread {thread}" if thread else "main" for thread in seen}


def _host_row(row: HostRow, process: int, function: dict[str, object] | None) -> str:
    place = (process, process + row.thread)
    if function is not None:
        return rows.complete("python_function", row.name, place, row.start_ns, row.end_ns, function)
    args: dict[str, object] = {"External id": row.id, "Record function id": 0}
    if row.sequence_number is not None:
        args["Sequence number"] = row.sequence_number
        # torch counts threads from 1; 0 stands for an op that is no part of a backward.
        args["Fwd thread id"] = 0 if row.forward_thread is None else row.forward_thread + 1
    if row.inputs is not None:
        args["Input Dims"] = row.inputs.shapes
        args["Input type"] = row.inputs.dtypes
        args["Concrete Inputs"] = row.inputs.values
    if row.message is not None:
        args.update(message_args(row.message))
    category = "user_annotation" if row.kind is HostKind.ANNOTATION else "cpu_op"
    return rows.complete(category, row.name, place, row.start_ns, row.end_ns, args)


def _device_annotation_row(row: DeviceAnnotation) -> str:
    args = {"External id": row.id}
    place = (row.core, row.stream)
    return rows.complete("gpu_user_annotation", row.name, place, row.start_ns, row.end_ns, args)


def _backward_link(number: int, forward: HostRow, backward: HostRow, process: int) -> Iterator[str]:
    """An arrow between the begins of both."""
    for phase, row in (("s", forward), ("f", backward)):
        place = (process, process + row.thread)
        yield rows.flow(phase, number, place, row.start_ns, BACKWARD_LINK)


def _launch_rows(launch: Launch, process: int) -> Iterator[str]:
    """The row that enqueues the work has its correlation id: of a program, its dispatch.

    The runtime's call before that is time of the host, during which nothing is enqueued yet: a
    device that idles meanwhile waits for the host.
    """
    host = (process, process + launch.thread)
    linked: dict[str, object] = {} if launch.op is None else {"External id": launch.op}
    enqueued: dict[str, object] = {"correlation": launch.correlation, **linked}
    start, end = launch.call_ns
    is_program = launch.kind in PROGRAMS
    if launch.compile_ns:
        compiled = (start - launch.compile_ns, start)
        yield rows.complete("privateuse1_runtime", COMPILER, host, *compiled, linked)
    args = {**(linked if is_program else enqueued), **_runtime_args(launch)}
    yield rows.complete("privateuse1_runtime", RUNTIME_CALLS[launch.kind], host, start, end, args)
    if is_program:
        # Its last ns: at its end the next op may begin, and a reader would find it in there.
        args = {**enqueued, **_driver_args(launch)}
        start = max(start, end - 1)
        yield rows.complete("privateuse1_driver", DRIVER_CALL, host, start, end, args)
    yield rows.flow("s", launch.correlation, host, start)
    yield from _work_rows(launch, enqueued)


def _work_rows(launch: Launch, enqueued: dict[str, object]) -> Iterator[str]:
    device = (launch.core, launch.stream)
    span = (launch.device_start_ns, launch.device_end_ns)
    args = {"device": launch.core, "stream": launch.stream, **enqueued, **_work_args(launch)}
    yield rows.complete(CATEGORIES[launch.kind], work_name(launch), device, *span, args)
    yield rows.flow("f", launch.correlation, device, launch.device_start_ns)


def work_name(launch: Launch) -> str:
    """The device row's name: the program that an op runs as, for which torch has another row."""
    op = launch.name.rpartition("::")[2]
    if launch.kind is LaunchKind.KERNEL:
        return f"NEFF {op}"
    return f"Memset {op}" if launch.kind is LaunchKind.MEMSET else launch.name


def _runtime_args(launch: Launch) -> dict[str, object]:
    args: dict[str, object] = {"nrt_sequence_id": str(launch.sequence_id)}
    if launch.on_cpu:
        args["cpu_fallback"] = True
    return args


def _driver_args(launch: Launch) -> dict[str, object]:
    """Ids as text: they are beyond what a reader that knows only floats can hold."""
    args: dict[str, object] = {
        "device": launch.core,
        "framework_stream_id": launch.stream,
        "nrt_sequence_id": str(launch.sequence_id),
        "flow_id": str(launch.sequence_id),
    }
    if launch.cache_key is not None:
        args["neff_cache_key"] = launch.cache_key
    return args


def _work_args(launch: Launch) -> dict[str, object]:
    args: dict[str, object] = {"nrt_sequence_id": str(launch.sequence_id)}
    if launch.kind in COPY_KINDS:
        kind, source, target = COPY_KINDS[launch.kind]
        args.update(bytes=launch.num_bytes, kind=kind, src=source, dst=target)
    elif launch.kind is LaunchKind.MEMSET:
        args.update(bytes=launch.num_bytes)
    if launch.work is not None:
        args.update(asdict(launch.work))
    args.update(collective_args(launch))
    return args


def _wait_row(wait: WaitRow, process: int) -> str:
    args = {} if wait.op is None else {"External id": wait.op}
    place = (process, process + wait.thread)
    return rows.complete("privateuse1_runtime", wait.name, place, wait.start_ns, wait.end_ns, args)


def _memory_rows(memory: MemoryRow, process: int) -> Iterator[str]:
    args = {
        "Addr": memory.address,
        "Bytes": memory.num_bytes,
        "Device Type": PRIVATEUSE1,
        "Device Id": memory.core,
        "Total Allocated": memory.total_allocated,
        "Total Reserved": memory.total_reserved,
    }
    yield rows.instant("[memory]", (process, process + memory.thread), memory.time_ns, args)
    name = f"NEURON {memory.core} HBM"
    values = {"allocated bytes": memory.total_allocated}
    yield rows.counter(name, f"NEURON {memory.core} Counters", memory.time_ns, values)
