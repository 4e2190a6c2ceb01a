"""Steps of a recording: ranges ``ProfilerStep#N`` from one step's end to the next one's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trnscope.sim.virtual_trace.recording import HostKind, HostRow, Recording

_STEP = re.compile(r"ProfilerStep#\d+$")


@dataclass(frozen=True)
class Step:
    """One step in virtual time."""

    number: int
    start_ns: int
    end_ns: int

    @property
    def name(self) -> str:
        """As torch's profiler calls it."""
        return f"ProfilerStep#{self.number}"


def is_step(name: str) -> bool:
    """Whether a range is a step."""
    return _STEP.match(name) is not None


def with_steps(recording: Recording, steps: Sequence[Step]) -> Recording:
    """The recording with these steps on the main thread, in the place of any of the script's own.

    Without steps of ours the script's own stay.
    """
    if not steps:
        return recording
    others = tuple(row for row in recording.host if not is_step(row.name))
    first = max((row.id for row in recording.host), default=0) + 1
    own = tuple(
        HostRow(first + i, HostKind.ANNOTATION, step.name, 0, step.start_ns, step.end_ns)
        for i, step in enumerate(steps)
    )
    # A step encloses its ops: it stands before the rows that start when it does.
    return replace(recording, host=own + others)
