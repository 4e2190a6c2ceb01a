"""Lays a device profile, on the core's clock, beside the system profile, on the host's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trnscope.ingest.neuron_system import PlacedExecution


@dataclass(frozen=True)
class Alignment:
    """What to add to the device profile's times."""

    offset_ns: int
    is_same_clock: bool
    """The times already stood on the host's clock."""


def align(first_start_ns: int | None, executions: Sequence[PlacedExecution]) -> Alignment | None:
    """The alignment of a device profile that begins at ``first_start_ns``; null if unknown.

    ``executions`` are those of its core (and model), by start. Times between the first and the
    last of them need no shift. Else the first execution's start on the core's clock tells the
    difference, and where it is not recorded the profile is taken to begin with that execution:
    Neuron captures the first execution of each NEFF on each core.
    """
    if first_start_ns is None or not executions:
        return None
    first, last = executions[0], max(one.end_ns for one in executions)
    if first.start_ns <= first_start_ns <= last:
        return Alignment(0, True)
    if first.core_time_ns is not None:
        offset = first.start_ns - first.core_time_ns
        if first.start_ns <= first_start_ns + offset <= last:
            return Alignment(offset, False)
    return Alignment(first.start_ns - first_start_ns, False)
