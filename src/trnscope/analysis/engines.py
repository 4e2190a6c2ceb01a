"""How busy is each engine of a NeuronCore, and its DMA queues: docs/metrics/engine-activity.md."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from trnscope.analysis.devices import device_work
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import INSIDE_DEVICE, SliceKind, TrackKind
from trnscope.model.track import Device, Track
from trnscope.model.units import ratio
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_WORK = (SliceKind.INSTRUCTION, SliceKind.KERNEL, SliceKind.MEMCPY)


@dataclass(frozen=True)
class EngineSummary:
    """What one engine, or all DMA queues of a device, did; ns."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    device: Device
    name: str
    """``tensor``, with its physical core where the device has several; ``DMA, 3 queues``."""
    unit: str
    """``engine`` or ``queue``."""
    num_instructions: int
    """Instructions or transfers; those that only wait are left out."""
    sum_ns: int
    """Their durations added."""
    busy_ns: int
    """Their union."""
    window_ns: int
    """What ``busy_ratio`` refers to: the time in which programs ran on the device, where these
    are recorded, else from the first begin to the last end on its engines and queues."""

    @property
    def busy_ratio(self) -> float | None:
        """``busy_ns`` over ``window_ns``."""
        return ratio(self.busy_ns, self.window_ns)

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device.label,
            "name": self.name,
            "unit": self.unit,
            "num_instructions": self.num_instructions,
            "sum_ns": self.sum_ns,
            "busy_ns": self.busy_ns,
            "window_ns": self.window_ns,
            "busy_ratio": self.busy_ratio,
        }


def engines(profile: Profile) -> tuple[EngineSummary, ...]:
    """Engines of every device, by trace, device and number; empty without device profiles."""
    return tuple(
        row for source, trace in enumerate(profile.traces) for row in _engines_of(trace, source)
    )


@dataclass(frozen=True)
class _Part:
    """The work on one track."""

    track: Track
    start: I64
    end: I64


def _engines_of(trace: Trace, source: int) -> list[EngineSummary]:
    by_device: defaultdict[Device, list[_Part]] = defaultdict(list)
    for part in _parts(trace):
        if part.track.device is not None:
            by_device[part.track.device].append(part)
    rows = []
    for device in sorted(by_device, key=lambda one: (one.kind, one.index)):
        parts = by_device[device]
        window_ns = _window_ns(trace, device, parts)
        engines = [part for part in parts if part.track.kind is TrackKind.DEVICE_ENGINE]
        queues = [part for part in parts if part.track.kind is TrackKind.DEVICE_QUEUE]
        for part in sorted(engines, key=_order):
            name = part.track.thread_name or part.track.thread
            rows.append(_row(trace, source, device, name, "engine", [part], window_ns))
        if queues:
            name = f"DMA, {len(queues)} queue{'' if len(queues) == 1 else 's'}"
            rows.append(_row(trace, source, device, name, "queue", queues, window_ns))
    return rows


def _order(part: _Part) -> tuple[int, str]:
    stream = part.track.stream
    return (1 << 31 if stream is None else stream, part.track.thread)


def _parts(trace: Trace) -> list[_Part]:
    lanes, slices = trace.lanes, trace.slices
    found: defaultdict[int, list[tuple[I64, I64]]] = defaultdict(list)
    for track, first, count in zip(
        lanes.track.tolist(), lanes.first.tolist(), lanes.count.tolist(), strict=True
    ):
        if trace.tracks[track].kind in INSIDE_DEVICE:
            rows = slice(first, first + count)
            is_work = np.isin(slices.kind[rows], _WORK)
            start = slices.start_ns[rows][is_work]
            found[track].append((start, start + slices.dur_ns[rows][is_work]))
    return [
        _Part(trace.tracks[track], *(np.concatenate(side) for side in zip(*pieces, strict=True)))
        for track, pieces in found.items()
        if any(start.size for start, _ in pieces)
    ]


def _window_ns(trace: Trace, device: Device, parts: list[_Part]) -> int:
    """Time of the programs on a device; without them the span of its engines and queues."""
    for work in device_work(trace):
        kinds = {trace.tracks[track].kind for track in np.unique(trace.slices.track[work.slices])}
        if work.device == device and TrackKind.DEVICE_STREAM in kinds and work.compute.total:
            return work.compute.total
    return max(int(part.end.max()) for part in parts) - min(int(p.start.min()) for p in parts)


def _row(
    trace: Trace,
    source: int,
    device: Device,
    name: str,
    unit: str,
    parts: list[_Part],
    window_ns: int,
) -> EngineSummary:
    start = np.concatenate([part.start for part in parts])
    end = np.concatenate([part.end for part in parts])
    return EngineSummary(
        source=source,
        rank=trace.source.rank,
        device=device,
        name=name,
        unit=unit,
        num_instructions=int(start.size),
        sum_ns=int((end - start).sum()),
        busy_ns=Intervals.union_of(start, end).total,
        window_ns=window_ns,
    )
