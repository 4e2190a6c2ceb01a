"""Device work by kernel, device or stream: how often, how long, what share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np

from trnscope.analysis.devices import device_work
from trnscope.analysis.grouping import I64, group_percentiles, group_sum, pair_up
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.model.track import Device
from trnscope.model.units import ratio
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_KIND = {
    SliceKind.KERNEL: "kernel",
    SliceKind.COLLECTIVE: "communication",
    SliceKind.MEMCPY: "memcpy",
    SliceKind.MEMSET: "memset",
}
_NO_DEVICE = Device(DeviceKind.OTHER, 0)


class KernelsBy(str, Enum):
    """What makes two pieces of device work the same row; the kind always does."""

    NAME = "name"
    DEVICE = "device"
    STREAM = "stream"
    """Stream of one device."""


@dataclass(frozen=True)
class LaunchConfig:
    """A grid and block that kernels of a row ran with, and how many did."""

    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    count: int

    def to_json(self) -> dict[str, object]:
        """Its fields; a dimension that was not recorded is null."""
        return {
            "grid": None if self.grid is None else list(self.grid),
            "block": None if self.block is None else list(self.block),
            "count": self.count,
        }


@dataclass(frozen=True)
class KernelRow:
    """All device work of one kind and one name (or device, or stream). Times in ns."""

    name: str
    """Kernel name; the device's label or ``label stream N`` when grouped by those.

    With several files ``rank N`` stands before a label, or ``source N``, the index of the
    file, where they are not distinct ranks.
    """
    kind: str
    """``kernel``, ``communication``, ``memcpy`` or ``memset``."""
    count: int
    sum_ns: int
    mean_ns: int
    """Rounded to the nearest ns."""
    min_ns: int
    p50_ns: int
    """Percentiles are by nearest rank: durations that occurred."""
    p95_ns: int
    max_ns: int
    share_of_sum_ratio: float | None
    """``sum_ns`` over the table's ``sum_ns``; shares of all rows add up to 1."""
    devices: tuple[str, ...]
    streams: tuple[int, ...]
    """Stream, queue or engine numbers, over all its devices."""
    launch_configs: tuple[LaunchConfig, ...]
    """The most frequent first; empty where none was recorded."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "name": self.name,
            "kind": self.kind,
            "count": self.count,
            "sum_ns": self.sum_ns,
            "mean_ns": self.mean_ns,
            "min_ns": self.min_ns,
            "p50_ns": self.p50_ns,
            "p95_ns": self.p95_ns,
            "max_ns": self.max_ns,
            "share_of_sum_ratio": self.share_of_sum_ratio,
            "devices": list(self.devices),
            "streams": list(self.streams),
            "launch_configs": [config.to_json() for config in self.launch_configs],
        }


@dataclass(frozen=True)
class KernelsTable:
    """Device work of a profile, rows by ``sum_ns``, longest first."""

    group_by: KernelsBy
    rows: tuple[KernelRow, ...]
    sum_ns: int
    """Durations of all device work added up: the denominator of the shares."""
    busy_ns: int
    """Union of the device work of each device, added over devices and ranks."""

    @property
    def has_device(self) -> bool:
        """Whether any device work was recorded."""
        return bool(self.rows)

    def of_kind(self, kind: str) -> tuple[KernelRow, ...]:
        """The rows of one kind, to show apart."""
        return tuple(row for row in self.rows if row.kind == kind)

    def to_json(self) -> dict[str, object]:
        """``{"schema": 1, "kernels": [...], "sum_ns", "busy_ns"}``."""
        return {
            "schema": 1,
            "kernels": [row.to_json() for row in self.rows],
            "sum_ns": self.sum_ns,
            "busy_ns": self.busy_ns,
        }


_Config = tuple[str | None, str | None]
"""Grid and block as the trace writes them."""
_Dimensions = tuple[int, ...] | None


@dataclass(frozen=True)
class _Work:
    """Device work of the whole profile, one entry a slice."""

    kind: I64
    name: I64
    device: I64
    stream: I64
    """0, or 1 + the stream's number."""
    dur_ns: I64
    config: I64
    names: list[str]
    """Labels: ``names[name[i]]`` is the name of slice ``i``; devices and configs likewise."""
    devices: list[str]
    configs: list[_Config]


def kernels(profile: Profile, group_by: KernelsBy | str = KernelsBy.NAME) -> KernelsTable:
    """Count, sum, mean, range and percentiles of device work by name, device or stream.

    Kernels, communication, copies and fills are never in one row. By name, files are added up;
    devices and streams are those of one file.
    """
    group_by = KernelsBy(group_by)
    work = _collect(profile)
    busy_ns = sum(part.busy.total for trace in profile.traces for part in device_work(trace))
    return KernelsTable(
        group_by=group_by,
        rows=tuple(_rows(work, group_by)) if work.dur_ns.size else (),
        sum_ns=int(work.dur_ns.sum()),
        busy_ns=busy_ns,
    )


_Label = TypeVar("_Label")


class _Labels(dict[_Label, int]):
    """Numbers labels as they come."""

    def __missing__(self, label: _Label) -> int:
        self[label] = len(self)
        return self[label]


def _collect(profile: Profile) -> _Work:
    names, devices, configs = _Labels[str](), _Labels[str](), _Labels[_Config]()
    columns: list[list[I64]] = [[np.empty(0, np.int64)] for _ in range(6)]
    for source, trace in enumerate(profile.traces):
        part = (
            trace.slices.kind[trace.launches.device_slice].astype(np.int64),
            _names(trace, names),
            *_places(trace, devices, _prefix(profile, source)),
            trace.slices.dur_ns[trace.launches.device_slice],
            _configs(trace, configs),
        )
        for column, piece in zip(columns, part, strict=True):
            column.append(piece)
    kind, name, device, stream, dur_ns, config = (np.concatenate(column) for column in columns)
    labels = (list(names), list(devices), list(configs))
    return _Work(kind, name, device, stream, dur_ns, config, *labels)


def _prefix(profile: Profile, source: int) -> str:
    """What tells the devices of one file from those of another."""
    if len(profile.traces) == 1:
        return ""
    if profile.is_multi_rank:
        return f"rank {profile.traces[source].source.rank} "
    return f"source {source} "


def _names(trace: Trace, names: _Labels[str]) -> I64:
    ids = trace.slices.name[trace.launches.device_slice]
    distinct, inverse = np.unique(ids, return_inverse=True)
    texts = trace.strings.take(distinct)
    return np.array([names[text] for text in texts], np.int64)[inverse]


def _places(trace: Trace, devices: _Labels[str], prefix: str) -> tuple[I64, I64]:
    """Device and stream of each piece of device work."""
    own = [(track.device or _NO_DEVICE).label for track in trace.tracks]
    track = trace.slices.track[trace.launches.device_slice].astype(np.int64)
    used = np.unique(track).tolist()
    device_of_track = np.zeros(len(own), np.int64)
    device_of_track[used] = [devices[prefix + own[at]] for at in used]
    streams = [0 if track.stream is None else track.stream + 1 for track in trace.tracks]
    return device_of_track[track], np.array(streams, np.int64)[track]


def _configs(trace: Trace, configs: _Labels[_Config]) -> I64:
    """The launch configuration of each piece of device work; (None, None) where absent."""
    ids = trace.launches.device_slice
    columns = []
    for key in ("grid", "block"):
        attribute = trace.attribute(key)
        if attribute is None:
            columns.append(np.zeros(ids.size, np.int64))
            continue
        has, value = attribute.of(ids)
        columns.append(np.where(has, value.astype(np.int64) + 1, 0))
    pairs = pair_up(*columns)
    grids, blocks = (
        [trace.strings[at - 1] if at else None for at in side.tolist()]
        for side in (pairs.first, pairs.second)
    )
    numbers = [configs[config] for config in zip(grids, blocks, strict=True)]
    return np.array(numbers, np.int64)[pairs.key]


def _rows(work: _Work, group_by: KernelsBy) -> Iterator[KernelRow]:
    by_stream = pair_up(work.device, work.stream)
    label = {
        KernelsBy.NAME: work.name,
        KernelsBy.DEVICE: work.device,
        KernelsBy.STREAM: by_stream.key.astype(np.int64),
    }[group_by]
    groups = pair_up(label, work.kind)
    count, total = group_sum(groups.key, work.dur_ns, groups.num_groups)
    order = np.argsort(groups.key, kind="stable")
    ends = np.cumsum(count)
    least, p50, p95, most = group_percentiles(
        groups.key, work.dur_ns, groups.num_groups, (0.0, 0.5, 0.95, 1.0)
    )
    all_ns = int(work.dur_ns.sum())
    texts = {
        KernelsBy.NAME: lambda at: work.names[at],
        KernelsBy.DEVICE: lambda at: work.devices[at],
        KernelsBy.STREAM: lambda at: _stream_label(
            work.devices[int(by_stream.first[at])], int(by_stream.second[at])
        ),
    }
    # Longest first; equal ones in the order of their labels.
    for group in np.lexsort((groups.first, -total)).tolist():
        members = order[ends[group] - count[group] : ends[group]]
        yield KernelRow(
            name=texts[group_by](int(groups.first[group])),
            kind=_KIND[SliceKind(int(groups.second[group]))],
            count=int(count[group]),
            sum_ns=int(total[group]),
            mean_ns=_rounded_ratio(int(total[group]), int(count[group])),
            min_ns=int(least[group]),
            p50_ns=int(p50[group]),
            p95_ns=int(p95[group]),
            max_ns=int(most[group]),
            share_of_sum_ratio=ratio(int(total[group]), all_ns),
            devices=tuple(work.devices[i] for i in np.unique(work.device[members]).tolist()),
            streams=tuple(i - 1 for i in np.unique(work.stream[members]).tolist() if i),
            launch_configs=tuple(_launch_configs(work, members)),
        )


def _rounded_ratio(total: int, count: int) -> int:
    return (2 * total + count) // (2 * count)


def _stream_label(device: str, stream: int) -> str:
    return f"{device} stream {stream - 1}" if stream else device


def _launch_configs(work: _Work, members: I64) -> Iterator[LaunchConfig]:
    number, counts = np.unique(work.config[members], return_counts=True)
    found: Counter[tuple[_Dimensions, _Dimensions]] = Counter()
    for at, count in zip(number.tolist(), counts.tolist(), strict=True):
        grid, block = work.configs[at]
        found[_dimensions(grid), _dimensions(block)] += count
    del found[None, None]
    for (grid_size, block_size), count in found.most_common():
        yield LaunchConfig(grid_size, block_size, count)


def _dimensions(text: str | None) -> _Dimensions:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not all(isinstance(member, int) for member in value):
        return None
    return tuple(value)
