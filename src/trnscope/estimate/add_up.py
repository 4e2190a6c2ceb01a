"""Adds up a recorded stretch: its parts, phases, programs and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from trnscope.estimate.memory import KnownBlocks, MemoryPoint, frontier, memory_points
from trnscope.estimate.parts import COLLECTIVE, COPY, MEMORY, PROGRAM, Span, execution_spans, split
from trnscope.estimate.recorded import OptimizerWork, Recorded
from trnscope.estimate.stretch import StretchData
from trnscope.model.intervals import Intervals
from trnscope.sim.activation import ActiveDevice
from trnscope.sim.virtual_trace.recording import (
    EXECUTIONS,
    HostKind,
    HostRow,
    Launch,
    LaunchKind,
)

_OPTIMIZER = "Optimizer.step#"
"""How torch names the range around an optimizer's step."""


def add_up(data: StretchData, device: ActiveDevice, steps_by: str, trace: str) -> Recorded:
    """What the parent process needs of the stretch, for the core that did most."""
    launches, core = _of_busiest_core(data.recording.launches)
    start_ns, end_ns = data.steps[0].start_ns, data.steps[-1].end_ns
    launches = [one for one in launches if start_ns <= one.host_start_ns < end_ns]
    compile_ns = sum(one.compile_ns for one in launches)
    optimizer = _spans(data.recording.host, lambda row: row.name.startswith(_OPTIMIZER))
    backward = _spans(data.recording.host, lambda row: row.kind is HostKind.BACKWARD)
    programs = {one.signature for one in launches if one.kind in EXECUTIONS}
    spans = [span for one in launches for span in _device_spans(one, device)]
    simulation = data.recording.simulation
    return Recorded(
        hardware_model=simulation.model,
        instance=device.instance,
        lnc=device.lnc,
        capacity_bytes=device.model.hbm_bytes_per_core,
        num_steps=len(data.steps),
        first_step=data.steps[0].number,
        steps_by=steps_by,
        duration_ns=end_ns - start_ns - compile_ns,
        parts_ns=split(spans, start_ns, end_ns, compile_ns),
        optimizer_parts_ns=_parts_in(optimizer, launches, device),
        backward_ns=_without_compiler(backward, launches),
        optimizer_ns=_without_compiler(optimizer, launches),
        num_executions=sum(one.kind in EXECUTIONS and not one.on_cpu for one in launches),
        num_on_cpu=sum(one.on_cpu for one in launches),
        num_programs=len(programs),
        compile_ns=_compile_ns(programs, device),
        optimizer_work=_optimizer_work(launches, optimizer, device),
        memory=_memory(data, core, optimizer),
        units=data.units,
        batch=data.batch,
        num_cores_used=len({one.core for one in data.recording.launches}),
        trace=trace,
    )


def _of_busiest_core(launches: Iterable[Launch]) -> tuple[list[Launch], int]:
    time_ns: Counter[int] = Counter()
    by_core: dict[int, list[Launch]] = {}
    for one in launches:
        time_ns[one.core] += one.device_end_ns - one.device_start_ns
        by_core.setdefault(one.core, []).append(one)
    core = max(time_ns, key=lambda number: (time_ns[number], -number), default=0)
    return by_core.get(core, []), core


def _spans(rows: Iterable[HostRow], wanted: Callable[[HostRow], bool]) -> Intervals:
    ends = [(row.start_ns, row.end_ns) for row in rows if wanted(row)]
    table = np.array(ends, np.int64).reshape(-1, 2)
    return Intervals.union_of(table[:, 0], table[:, 1])


def _is_in(spans: Intervals, launch: Launch) -> bool:
    """Whether it was launched in one of them."""
    at = int(np.searchsorted(spans.start, launch.host_start_ns, side="right")) - 1
    return at >= 0 and launch.host_start_ns < int(spans.end[at])


def _without_compiler(spans: Intervals, launches: Sequence[Launch]) -> int:
    return spans.total - sum(one.compile_ns for one in launches if _is_in(spans, one))


def _parts_in(spans: Intervals, launches: Sequence[Launch], device: ActiveDevice) -> dict[str, int]:
    """Device time by part of what was launched in the spans."""
    parts: Counter[str] = Counter()
    for one in launches:
        if _is_in(spans, one):
            for span in _device_spans(one, device):
                parts[span.part] += span.end_ns - span.start_ns
    return dict(parts)


def _fixed_ns(one: Launch, device: ActiveDevice) -> int:
    return device.model.runtime.neff_fixed_ns + one.switch_ns


def _device_spans(one: Launch, device: ActiveDevice) -> tuple[Span, ...]:
    start_ns, end_ns = one.device_start_ns, one.device_end_ns
    if one.kind is LaunchKind.COLLECTIVE:
        return (Span(start_ns, end_ns, COLLECTIVE),)
    if one.kind not in EXECUTIONS:
        on_core = one.kind is LaunchKind.COPY_D2D
        return (Span(start_ns, end_ns, MEMORY if on_core else COPY),)
    priced = None if one.signature is None else device.prices.row(one.signature)
    if priced is None:
        return (Span(start_ns, end_ns, PROGRAM),)
    return execution_spans(start_ns, end_ns, priced.cost, _fixed_ns(one, device))


def _compile_ns(programs: Iterable[int | None], device: ActiveDevice) -> int:
    rows = (device.prices.row(number) for number in programs if number is not None)
    return sum(row.cost.compile_ns for row in rows if row is not None)


def _optimizer_work(
    launches: Sequence[Launch], spans: Intervals, device: ActiveDevice
) -> tuple[OptimizerWork, ...]:
    counts = Counter(
        OptimizerWork(
            one.host_end_ns - one.host_start_ns - one.compile_ns,
            _fixed_ns(one, device),
            one.device_end_ns - one.device_start_ns,
        )
        for one in launches
        if _is_in(spans, one)
    )
    return tuple(
        OptimizerWork(one.host_ns, one.fixed_ns, one.device_ns, count)
        for one, count in counts.items()
    )


def _memory(data: StretchData, core: int, optimizer: Intervals) -> tuple[MemoryPoint, ...]:
    spans = tuple(zip(optimizer.start.tolist(), optimizer.end.tolist(), strict=True))
    known = KnownBlocks(data.uses, data.sizes, spans)
    start_bytes = data.start_bytes[core] if core < len(data.start_bytes) else 0
    return frontier(memory_points(start_bytes, data.events.get(core, []), known))
