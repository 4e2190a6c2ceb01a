"""How much communication and copying hides behind compute, and which streams run together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.model.intervals import Intervals
from trnscope.model.track import Device
from trnscope.model.units import ratio
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


@dataclass(frozen=True)
class StreamOverlap:
    """Time that two streams of one device are both busy, ns; with itself: its busy time."""

    stream: int | None
    other: int | None
    both_busy_ns: int


@dataclass(frozen=True)
class DeviceOverlap:
    """Overlap on one device, ns. See docs/metrics/overlap.md."""

    source: int
    rank: int | None
    device: Device
    communication_ns: int
    overlapped_communication_ns: int
    """Communication while compute runs."""
    memcpy_ns: int
    overlapped_memcpy_ns: int
    """Copies while compute runs."""
    streams: tuple[StreamOverlap, ...]
    """Each unordered pair of streams once, each stream with itself first; by stream."""

    @property
    def exposed_communication_ns(self) -> int:
        """Communication while no compute runs."""
        return self.communication_ns - self.overlapped_communication_ns

    @property
    def exposed_memcpy_ns(self) -> int:
        """Copies while no compute runs."""
        return self.memcpy_ns - self.overlapped_memcpy_ns

    @property
    def communication_overlap_ratio(self) -> float | None:
        """Overlapped communication over all communication; absent without any."""
        return ratio(self.overlapped_communication_ns, self.communication_ns)

    @property
    def memcpy_overlap_ratio(self) -> float | None:
        """Overlapped copies over all copies; absent without any."""
        return ratio(self.overlapped_memcpy_ns, self.memcpy_ns)

    def to_json(self) -> dict[str, object]:
        """All of it; ``streams`` as ``{"stream", "other", "both_busy_ns"}``."""
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device.label,
            "communication_ns": self.communication_ns,
            "overlapped_communication_ns": self.overlapped_communication_ns,
            "exposed_communication_ns": self.exposed_communication_ns,
            "communication_overlap_ratio": self.communication_overlap_ratio,
            "memcpy_ns": self.memcpy_ns,
            "overlapped_memcpy_ns": self.overlapped_memcpy_ns,
            "exposed_memcpy_ns": self.exposed_memcpy_ns,
            "memcpy_overlap_ratio": self.memcpy_overlap_ratio,
            "streams": [
                {"stream": pair.stream, "other": pair.other, "both_busy_ns": pair.both_busy_ns}
                for pair in self.streams
            ],
        }


@dataclass(frozen=True)
class Overlap:
    """Overlap on every device of a profile."""

    devices: tuple[DeviceOverlap, ...]

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "devices": [...]}``."""
        return {"schema": 1, "devices": [device.to_json() for device in self.devices]}


def overlap(profile: Profile) -> Overlap:
    """Overlap of communication and copies with compute, by device."""
    return Overlap(
        tuple(
            _of_device(trace, work, source)
            for source, trace in enumerate(profile.traces)
            for work in device_work(trace)
        )
    )


def _of_device(trace: Trace, work: DeviceWork, source: int) -> DeviceOverlap:
    communication, memcpy = work.communication.total, work.memcpy.total
    return DeviceOverlap(
        source=source,
        rank=trace.source.rank,
        device=work.device,
        communication_ns=communication,
        overlapped_communication_ns=communication - work.exposed_communication.total,
        memcpy_ns=memcpy,
        overlapped_memcpy_ns=memcpy - work.exposed_memcpy.total,
        streams=_stream_pairs(trace, work),
    )


def _stream_pairs(trace: Trace, work: DeviceWork) -> tuple[StreamOverlap, ...]:
    track = trace.slices.track[work.slices]
    start = trace.slices.start_ns[work.slices]
    end = start + trace.slices.dur_ns[work.slices]
    busy = [
        (trace.tracks[index].stream, Intervals.union_of(start[mine], end[mine]))
        for index in np.flatnonzero(np.bincount(track)).tolist()
        for mine in [track == index]
    ]
    return tuple(
        StreamOverlap(stream, other, _both(own, others))
        for position, (stream, own) in enumerate(busy)
        for other, others in busy[position:]
    )


def _both(a: Intervals, b: Intervals) -> int:
    few, many = (a, b) if len(a) < len(b) else (b, a)
    return int(many.covered_within(few.start, few.end).sum())
