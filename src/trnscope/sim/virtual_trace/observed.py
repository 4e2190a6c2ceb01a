"""Turns what the compiled observer hands over into a :class:`Recording`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trnscope.sim.virtual_trace.python_frames import short_name
from trnscope.sim.virtual_trace.recording import (
    CollectiveInfo,
    HostKind,
    HostRow,
    Inputs,
    Launch,
    LaunchKind,
    MemoryRow,
    Message,
    Recording,
    Shape,
    Simulation,
    WaitRow,
    Work,
)

COLLECTIVE_ROW = "record_param_comms"
"""torch's name for the host row of a collective, whatever it is."""
TENSOR_LIST = "TensorList"
"""Kineto's type of an argument that is a list of tensors."""
_BACKWARD_SCOPE = 1
_USER_SCOPE = 7
_PYTHON_SCOPE = 200
"""kPythonScope in ``csrc/observer.h``."""
_PROFILER_OPS = "profiler::"
"""Ops by which record_function begins and ends a range: no work of the program."""
_COPIES = (LaunchKind.COPY_H2D, LaunchKind.COPY_D2H, LaunchKind.COPY_D2D)
_WAIT_NAMES = (
    "nrt_async_sema_wait",
    "nrt_async_sema_wait",
    "nrt_async_sema_wait",
    "nrt_tensor_read_wait",
    "nrt_queue_wait",
)
"""By the numbers of WaitKind in ``csrc/timeline.h``."""


@dataclass(frozen=True)
class Program:
    """What a row of the device's table of signatures stands for."""

    name: str
    cache_key: str | None = None
    on_cpu: bool = False
    collective: CollectiveInfo | None = None
    work: Work | None = None


Programs = Callable[[int], Program]
"""The program of a signature's number."""
Observed = Mapping[str, Any]
"""What ``observer_end`` returns; see ``csrc/profiler_bindings.cpp``."""


@dataclass(frozen=True)
class Process:
    """What the recording says of the process beside what was observed."""

    simulation: Simulation
    rank: int | None = None
    world_size: int | None = None
    with_shapes: bool = True
    code_folders: tuple[str, ...] = ()
    """Left out of the names of Python functions."""


def to_recording(observed: Observed, process: Process, programs: Programs) -> Recording:
    """The recording. Ranges outside of it are no one's parent."""
    inputs = [_inputs(*row) for row in observed["inputs"]] if process.with_shapes else []
    names = [short_name(name, process.code_folders) for name in observed["names"]]
    host = tuple(
        row for values in observed["ranges"] if _is_shown(row := _host_row(values, names, inputs))
    )
    known = {row.id for row in host if row.kind is not HostKind.PYTHON}
    programs = functools.cache(programs)
    call_ns = process.simulation.launch_call_ns
    launches = tuple(
        _with_call(_launch(values, known, programs, observed["collectives"]), call_ns)
        for values in observed["launches"]
    )
    return Recording(
        simulation=process.simulation,
        start_ns=observed["start_ns"],
        end_ns=observed["end_ns"],
        host=_with_messages(host, launches),
        launches=launches,
        waits=tuple(_wait(values, known) for values in observed["waits"]),
        memory=_memory(observed["memory"]),
        rank=process.rank,
        world_size=process.world_size,
        with_shapes=process.with_shapes,
        with_memory=bool(observed["memory"]),
        with_stack=observed["with_python"],
    )


def _is_shown(row: HostRow) -> bool:
    """A function in which no virtual time passes would have a place, but no length."""
    if row.kind is HostKind.PYTHON:
        return row.end_ns > row.start_ns
    return not row.name.startswith(_PROFILER_OPS)


def _with_messages(host: tuple[HostRow, ...], launches: Iterable[Launch]) -> tuple[HostRow, ...]:
    """Give the rows that stand for collectives what their launches say of them."""
    messages = {one.op: one.message for one in launches if one.message is not None}
    return tuple(
        replace(row, message=messages[row.id])
        if row.name == COLLECTIVE_ROW and row.id in messages
        else row
        for row in host
    )


def _inputs(
    shapes: Sequence[Sequence[Sequence[int]]], types: Sequence[str], values: Sequence[str]
) -> Inputs:
    found = (_shape(*one) for one in zip(shapes, types, strict=True))
    return Inputs(tuple(found), tuple(types), tuple(values))


def _shape(shapes: Sequence[Sequence[int]], dtype: str) -> Shape:
    """Of a list of tensors all shapes, of a tensor its own."""
    if dtype == TENSOR_LIST:
        return tuple(map(tuple, shapes))
    return tuple(shapes[0]) if shapes else ()


def _host_row(values: Sequence[Any], names: Sequence[str], inputs: Sequence[Inputs]) -> HostRow:
    number, scope, name, thread, start, end, sequence, forward, place, parent = values
    kinds = {
        _BACKWARD_SCOPE: HostKind.BACKWARD,
        _USER_SCOPE: HostKind.ANNOTATION,
        _PYTHON_SCOPE: HostKind.PYTHON,
    }
    return HostRow(
        id=number,
        kind=kinds.get(scope, HostKind.OP),
        name=names[name],
        thread=thread,
        start_ns=start,
        end_ns=end,
        sequence_number=None if sequence < 0 else sequence,
        forward_thread=forward - 1 if forward > 0 else None,
        inputs=inputs[place] if 0 <= place < len(inputs) else None,
        parent=parent or None,
    )


def _launch(
    values: Sequence[Any],
    known: set[int],
    programs: Programs,
    collectives: Sequence[Sequence[Any]],
) -> Launch:
    (sequence, correlation, kind, signature, core, stream, thread, host_start, host_end,
     device_start, device_end, op, num_bytes, compile_ns, switch_ns,
     collective, collective_sequence) = values  # fmt: skip
    program = programs(signature)
    is_copy = kind in _COPIES
    return Launch(
        sequence_id=sequence,
        correlation=correlation,
        kind=LaunchKind(kind),
        name=program.name,
        core=core,
        stream=stream,
        thread=thread,
        host_start_ns=host_start,
        host_end_ns=host_end,
        device_start_ns=device_start,
        device_end_ns=device_end,
        op=op if op in known else None,
        num_bytes=num_bytes,
        cache_key=None if is_copy else program.cache_key,
        compile_ns=compile_ns,
        switch_ns=switch_ns,
        on_cpu=program.on_cpu,
        collective=program.collective,
        message=None if collective < 0 else _message(collectives[collective], collective_sequence),
        work=program.work,
        signature=signature,
    )


def _message(values: Sequence[Any], sequence: int) -> Message:
    (call, in_elements, out_elements, in_splits, out_splits, dtype, group, description, ranks,
     rank, source, destination) = values  # fmt: skip
    return Message(
        call=call,
        in_elements=in_elements,
        out_elements=out_elements,
        dtype=dtype,
        group_name=group,
        ranks=tuple(ranks),
        rank=rank,
        group_description=description,
        in_splits=tuple(in_splits),
        out_splits=tuple(out_splits),
        source=None if source < 0 else source,
        destination=None if destination < 0 else destination,
        sequence_number=sequence,
    )


def _with_call(launch: Launch, call_ns: int | None) -> Launch:
    """Tell the runtime's call from the dispatch and the compilation before it."""
    if call_ns is None:
        return launch
    earliest = launch.host_start_ns + launch.compile_ns
    return replace(launch, call_start_ns=max(earliest, launch.host_end_ns - call_ns))


def _wait(values: Sequence[Any], known: set[int]) -> WaitRow:
    kind, thread, start, end, op, _core, _stream = values
    return WaitRow(_WAIT_NAMES[kind], thread, start, end, op if op in known else None)


def _memory(rows: Sequence[Sequence[Any]]) -> tuple[MemoryRow, ...]:
    """Addresses become numbers by first appearance: real ones differ from run to run."""
    fresh = itertools.count(1)
    numbers: dict[int, int] = {}
    found = []
    for time_ns, thread, core, address, num_bytes, total in rows:
        if num_bytes > 0 and address not in numbers:
            numbers[address] = next(fresh)
        number = numbers.get(address) or next(fresh)
        if num_bytes < 0:
            numbers.pop(address, None)
        found.append(MemoryRow(time_ns, thread, core, number, num_bytes, total, total))
    return tuple(found)
