"""What a core's HBM holds during a step, by what it is for, and how it changes with sharding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class Use(str, Enum):
    """What a block of memory is for."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER_STATE = "optimizer_state"
    OPTIMIZER_TEMPORARIES = "optimizer_temporaries"
    """Allocated while the optimizer steps."""
    ACTIVATIONS = "activations"
    """Everything else that the step allocates: activations, their gradients, temporaries."""
    BEFORE = "before"
    """There before the step, and none of the above: inputs, buffers."""


SHARDED = (Use.PARAMETERS, Use.GRADIENTS, Use.OPTIMIZER_STATE, Use.OPTIMIZER_TEMPORARIES)
"""What fully sharded training splits over the cores."""


@dataclass(frozen=True)
class MemoryPoint:
    """Bytes in use at one moment."""

    parameters: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    optimizer_temporaries: int = 0
    activations: int = 0
    before: int = 0
    in_optimizer: bool = False
    """Whether the optimizer steps at this moment: no layer is gathered then."""

    def bytes_for(self, use: Use) -> int:
        """Bytes of one use."""
        return int(getattr(self, use.value))

    @property
    def sharded(self) -> int:
        """Bytes that fully sharded training splits."""
        return sum(self.bytes_for(use) for use in SHARDED)

    @property
    def kept(self) -> int:
        """Bytes that every core holds in full."""
        return self.activations + self.before

    @property
    def total(self) -> int:
        """All of them."""
        return self.sharded + self.kept

    def split(self, num_shards: int) -> MemoryPoint:
        """On one core of so many that share what can be shared; shards are rounded up."""
        parts = {use: self.bytes_for(use) for use in Use}
        parts |= {use: -(-parts[use] // num_shards) for use in SHARDED}
        return _point(parts, in_optimizer=self.in_optimizer)

    def to_json(self) -> dict[str, int]:
        """``<use>_bytes`` each."""
        return {f"{use.value}_bytes": self.bytes_for(use) for use in Use}


@dataclass(frozen=True)
class MemoryEvent:
    """A block is taken (positive) or given back (negative)."""

    time_ns: int
    address: int
    num_bytes: int


@dataclass(frozen=True)
class KnownBlocks:
    """Blocks whose use is known, by address, and when the optimizer stepped."""

    uses: Mapping[int, Use]
    sizes: Mapping[int, int]
    optimizer_spans: tuple[tuple[int, int], ...] = ()


def memory_points(
    start_bytes: int, events: Iterable[MemoryEvent], known: KnownBlocks
) -> list[MemoryPoint]:
    """The state at the start of a stretch, and after each event of it."""
    events = list(events)
    fresh = {event.address for event in events if event.num_bytes > 0}
    level = dict.fromkeys(Use, 0)
    for address, use in known.uses.items():
        if address not in fresh:
            level[use] += known.sizes[address]
    level[Use.BEFORE] = max(0, start_bytes - sum(level.values()))
    uses = dict(known.uses)
    points = [_point(level, in_optimizer=False)]
    for event in events:
        stepping = any(start <= event.time_ns < end for start, end in known.optimizer_spans)
        fresh_use = Use.OPTIMIZER_TEMPORARIES if stepping else Use.ACTIVATIONS
        if event.num_bytes > 0:
            uses.setdefault(event.address, fresh_use)
        level[uses.get(event.address, Use.BEFORE)] += event.num_bytes
        points.append(_point(level, in_optimizer=stepping))
    return points


def _point(level: Mapping[Use, int], *, in_optimizer: bool) -> MemoryPoint:
    bytes_by_use = {use.value: num_bytes for use, num_bytes in level.items()}
    return MemoryPoint(**bytes_by_use, in_optimizer=in_optimizer)


def frontier(points: Iterable[MemoryPoint]) -> tuple[MemoryPoint, ...]:
    """The moments that can be the peak for some number of shards; the others never are."""
    points = list(points)
    apart = ([p for p in points if p.in_optimizer is flag] for flag in (False, True))
    return tuple(point for group in apart for point in _frontier(group))


def _frontier(points: Iterable[MemoryPoint]) -> list[MemoryPoint]:
    best: list[MemoryPoint] = []
    for point in sorted(points, key=lambda p: (p.sharded, p.kept), reverse=True):
        if not best or point.kept > best[-1].kept:
            best.append(point)
    return best


@dataclass(frozen=True)
class Peak:
    """A core's fullest moment in a layout."""

    point: MemoryPoint
    gathered_bytes: int
    """Layers that are whole at that moment."""

    @property
    def total(self) -> int:
        """Bytes in use."""
        return self.point.total + self.gathered_bytes

    def to_json(self) -> dict[str, int]:
        """``memory`` in docs/reference/json.md."""
        return self.point.to_json() | {"gathered_bytes": self.gathered_bytes}


def peak(points: Iterable[MemoryPoint], num_shards: int, gathered_bytes: int) -> Peak:
    """The fullest moment when what can be shared is split over so many cores.

    ``gathered_bytes``: layers that are whole at a time, but while the optimizer steps.
    """
    found = (Peak(p.split(num_shards), 0 if p.in_optimizer else gathered_bytes) for p in points)
    return max(found, key=lambda one: one.total)
