"""The rows of the timeline: tracks in groups, their lanes numbered over all traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from trnscope.analysis.time_axis import TimeAxis
from trnscope.model.kinds import TrackKind
from trnscope.model.track import Track
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import I64

_KINETO_THREAD = re.compile(r"thread (-?\d+) \((.+)\)")
"""A thread as Kineto names it; the name proper says more than the number."""
_UNIT = {
    TrackKind.DEVICE_STREAM: "stream",
    TrackKind.DEVICE_ENGINE: "engine",
    TrackKind.DEVICE_QUEUE: "queue",
}


@dataclass(frozen=True)
class TrackRow:
    """One track with slices, and where its lanes are."""

    source: int
    group: str
    """The device or the process that it belongs to."""
    name: str
    is_device: bool
    first_lane: int
    """Number over all traces; the track's lanes follow one another, by depth."""
    num_lanes: int
    num_slices: int

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "group": self.group,
            "name": self.name,
            "is_device": self.is_device,
            "first_lane": self.first_lane,
            "num_lanes": self.num_lanes,
            "num_slices": self.num_slices,
        }


@dataclass(frozen=True)
class Tracks:
    """All tracks that hold slices, in the order in which they are drawn."""

    axis: TimeAxis
    sources: tuple[str, ...]
    """What to call each trace."""
    rows: tuple[TrackRow, ...]

    def to_json(self) -> dict[str, object]:
        """The document of the timeline's frame."""
        return {
            "schema": 1,
            "axis": self.axis.to_json(),
            "sources": list(self.sources),
            "tracks": [row.to_json() for row in self.rows],
        }


def lane_bases(profile: Profile) -> I64:
    """The number of each trace's first lane, counted over all traces; and the end of all."""
    counts = [trace.lanes.first.size for trace in profile.traces]
    return np.cumsum([0, *counts], dtype=np.int64)


def tracks(profile: Profile, axis: TimeAxis) -> Tracks:
    """Devices before processes in each trace: what the device did is short and asked for first."""
    bases = lane_bases(profile).tolist()
    return Tracks(
        axis,
        tuple(_source_name(profile, index) for index in range(len(profile.traces))),
        tuple(
            row
            for index, trace in enumerate(profile.traces)
            for row in sorted(_rows(trace, index, bases[index]), key=_order(trace, bases[index]))
        ),
    )


def track_name(track: Track) -> str:
    """What a track is called under its group."""
    if track.stream is not None:
        default = f"{_UNIT.get(track.kind, 'track')} {track.stream}"
        named = track.thread_name
        return default if not named or named.strip() == default else f"{default} ({named.strip()})"
    name = (track.thread_name or "").strip()
    kineto = _KINETO_THREAD.fullmatch(name)
    if kineto is not None:
        return f"{kineto[2]} {kineto[1]}"
    if not name:
        return f"thread {track.thread}"
    return name if track.thread in name else f"{name} {track.thread}"


def group_name(track: Track) -> str:
    """The device, else the process."""
    if track.device is not None:
        device = track.device
        return f"{device.label} {device.name}" if device.name else device.label
    name = (track.process_name or "process").strip()
    return name if track.process in name else f"{name} {track.process}"


def _source_name(profile: Profile, index: int) -> str:
    source = profile.traces[index].source
    return f"rank {source.rank}" if profile.is_multi_rank else source.path.rpartition("/")[2]


def _rows(trace: Trace, source: int, base: int) -> Iterator[TrackRow]:
    lanes = trace.lanes
    numbered = enumerate(zip(lanes.track.tolist(), lanes.count.tolist(), strict=True))
    for number, members in groupby(numbered, key=lambda item: item[1][0]):
        found = list(members)
        track = trace.tracks[number]
        yield TrackRow(
            source=source,
            group=group_name(track),
            name=track_name(track),
            is_device=track.device is not None,
            first_lane=base + found[0][0],
            num_lanes=len(found),
            num_slices=sum(count for _, (_, count) in found),
        )


class _order:
    """Sort key of a trace's rows: devices, then processes, each with its busiest first track."""

    def __init__(self, trace: Trace, base: int) -> None:
        self._trace = trace
        self._base = base

    def __call__(self, row: TrackRow) -> tuple[object, ...]:
        track = self._trace.tracks[int(self._trace.lanes.track[row.first_lane - self._base])]
        device = track.device
        place = (0, 0) if device is None else (device.kind.value, device.index)
        last = track.kind in (TrackKind.PROFILER, TrackKind.OTHER, TrackKind.ASYNC)
        stream = -1 if track.stream is None else track.stream
        return (device is None, place, last and device is None, row.group, stream, row.first_lane)
