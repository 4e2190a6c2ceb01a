"""Where a trace came from and what its header says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class TraceSource:
    """The file behind one trace.

    ``base_time_ns`` was already added to every time. ``epoch`` says whether times count
    from the Unix epoch (they can then be compared with another file of the same clock) or
    from an arbitrary zero. ``metadata`` holds the header's other keys as JSON text.
    """

    path: str
    format: str
    """``kineto``, ``chrome``, ``nsys`` ...; ``.gz`` is no format of its own."""
    num_events: int
    rank: int | None = None
    world_size: int | None = None
    base_time_ns: int = 0
    epoch: bool = False
    simulated: bool = False
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
