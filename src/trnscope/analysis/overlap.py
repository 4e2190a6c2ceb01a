"""How much communication and copying hides behind compute, and which streams run together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trnscope.analysis.devices import DeviceWork, device_work
from trnscope.model.intervals import Intervals
from trnscope.model.track import Device
from trnscope.model.units import ratio
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_STREAMS_PAIRED = 64
"""Of more streams of one device only the busiest are paired: pairs grow with the square."""


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
    num_streams_left_out: int
    """Streams with work that are in no pair: only the 64 busiest of a device are paired."""

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
            "num_streams_left_out": self.num_streams_left_out,
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
    busy = _busy_by_stream(trace, work)
    communication, memcpy = work.communication.total, work.memcpy.total
    return DeviceOverlap(
        source=source,
        rank=trace.source.rank,
        device=work.device,
        communication_ns=communication,
        overlapped_communication_ns=communication - work.exposed_communication.total,
        memcpy_ns=memcpy,
        overlapped_memcpy_ns=memcpy - work.exposed_memcpy.total,
        streams=_pairs(_busiest(busy)),
        num_streams_left_out=max(0, len(busy) - _STREAMS_PAIRED),
    )


_Busy = list[tuple[int | None, Intervals]]
"""Streams, each with its busy time."""


def _busy_by_stream(trace: Trace, work: DeviceWork) -> _Busy:
    ids = work.slices[np.argsort(trace.slices.track[work.slices], kind="stable")]
    track, start = trace.slices.track[ids], trace.slices.start_ns[ids]
    end = start + trace.slices.dur_ns[ids]
    first = np.flatnonzero(np.append(True, track[1:] != track[:-1])).tolist()
    return [
        (trace.tracks[int(track[low])].stream, Intervals.union_of(start[low:high], end[low:high]))
        for low, high in pairwise([*first, ids.size])
    ]


def _busiest(busy: _Busy) -> _Busy:
    """The streams with most busy time, in the order given."""
    total_ns = np.array([own.total for _, own in busy], np.int64)
    kept = np.sort(np.argsort(-total_ns, kind="stable")[:_STREAMS_PAIRED])
    return [busy[position] for position in kept.tolist()]


def _pairs(busy: _Busy) -> tuple[StreamOverlap, ...]:
    return tuple(
        StreamOverlap(stream, other, _both(own, others))
        for position, (stream, own) in enumerate(busy)
        for other, others in busy[position:]
    )


def _both(a: Intervals, b: Intervals) -> int:
    few, many = (a, b) if len(a) < len(b) else (b, a)
    return int(many.covered_within(few.start, few.end).sum())
