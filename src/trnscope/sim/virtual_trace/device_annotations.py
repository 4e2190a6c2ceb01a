"""Where the program's own ranges lie on the device: from the first to the last of their work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from trnscope.sim.virtual_trace.recording import HostKind, HostRow, Launch, Recording
from trnscope.sim.virtual_trace.steps import is_step


@dataclass(frozen=True)
class DeviceAnnotation:
    """A range of the program on one stream."""

    id: int
    """Of the host's row."""
    name: str
    core: int
    stream: int
    start_ns: int
    end_ns: int


def device_annotations(recording: Recording) -> tuple[DeviceAnnotation, ...]:
    """One for each range and stream that holds work launched in the range.

    As in Kineto's own traces it is the work that the range's thread launched. A step, which no op
    has for a parent, holds what was launched while it went on.
    """
    annotations = {row.id: row for row in recording.host if row.kind is HostKind.ANNOTATION}
    if not annotations:
        return ()
    steps = [row for row in annotations.values() if is_step(row.name)]
    around = _ranges_around(recording.host, annotations)
    found: dict[tuple[int, int, int], DeviceAnnotation] = {}
    for launch in recording.launches:
        for row in (*around(launch.op), *_steps_at(steps, launch)):
            key = (row.id, launch.core, launch.stream)
            found[key] = _extended(found.get(key), row, launch)
    return tuple(sorted(found.values(), key=lambda one: (one.start_ns, -one.end_ns, one.id)))


def _extended(known: DeviceAnnotation | None, row: HostRow, launch: Launch) -> DeviceAnnotation:
    start, end = launch.device_start_ns, launch.device_end_ns
    if known is None:
        return DeviceAnnotation(row.id, row.name, launch.core, launch.stream, start, end)
    return replace(known, start_ns=min(known.start_ns, start), end_ns=max(known.end_ns, end))


def _steps_at(steps: Sequence[HostRow], launch: Launch) -> Iterator[HostRow]:
    return (row for row in steps if row.start_ns <= launch.host_start_ns < row.end_ns)


def _ranges_around(
    host: Sequence[HostRow], annotations: dict[int, HostRow]
) -> Callable[[int | None], tuple[HostRow, ...]]:
    """For an op the ranges around it, steps apart, innermost first."""
    parents = {row.id: row.parent for row in host}

    @cache
    def around(op: int | None) -> tuple[HostRow, ...]:
        found = []
        while op is not None:
            row = annotations.get(op)
            if row is not None and not is_step(row.name):
                found.append(row)
            op = parents.get(op)
        return tuple(found)

    return around
