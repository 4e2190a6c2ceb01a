"""How busy is each device: kernel, copy and communication time, and what hides behind what.

All device figures come from the slices whose kind is in ``DEVICE_WORK``. Annotations, sync
rows and counters on a device track occupy nothing and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trnscope.analysis.memo import once_per_trace
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.model.track import Device
from trnscope.store.reader import Trace
from trnscope.store.tables import U32, Bool

_UNKNOWN_DEVICE = Device(DeviceKind.OTHER, 0)


@dataclass(frozen=True)
class DeviceWork:
    """The device work of one device of one trace."""

    device: Device
    slices: U32
    """Slice ids, rising; at least one."""
    start_ns: int
    """First start of a slice, also of one without length."""
    end_ns: int
    """Last end of a slice."""
    is_linked: Bool
    """For each slice: whether its launch is in the trace."""
    launches: U32
    """For each slice: the slice id of its launch; meaningful where ``is_linked``."""
    compute: Intervals
    """Union of kernels and memsets: a fill runs as a kernel does."""
    communication: Intervals
    """Union of collectives."""
    memcpy: Intervals
    """Union of copies."""
    busy: Intervals
    """Union of all of it."""

    @property
    def exposed_communication(self) -> Intervals:
        """Communication while no compute runs."""
        return self.communication.subtract(self.compute)

    @property
    def exposed_memcpy(self) -> Intervals:
        """Copies while no compute runs; communication may run beside them."""
        return self.memcpy.subtract(self.compute)


@dataclass(frozen=True)
class DeviceSummary:
    """Time of one device, in ns. See docs/metrics/busy-and-idle.md."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    device: Device
    num_kernels: int
    """Kernels and collectives."""
    sum_ns: int
    """Durations added: kernels, collectives, copies and memsets."""
    busy_ns: int
    """Their union."""
    idle_ns: int
    """The rank's device window minus busy."""
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int
    unlinked_ns: int
    """Durations added of the device work whose launch is not in the trace; part of sum_ns."""

    def to_json(self) -> dict[str, object]:
        """The contract's member of ``devices``, plus ``rank`` and ``source``."""
        return {
            "source": self.source,
            "rank": self.rank,
            "device": self.device.label,
            "kind": self.device.kind.name.lower(),
            "simulated": self.device.simulated,
            "num_kernels": self.num_kernels,
            "sum_ns": self.sum_ns,
            "busy_ns": self.busy_ns,
            "idle_ns": self.idle_ns,
            "compute_ns": self.compute_ns,
            "communication_ns": self.communication_ns,
            "exposed_communication_ns": self.exposed_communication_ns,
            "memcpy_ns": self.memcpy_ns,
            "exposed_memcpy_ns": self.exposed_memcpy_ns,
            "unlinked_ns": self.unlinked_ns,
        }


@once_per_trace
def device_work(trace: Trace) -> tuple[DeviceWork, ...]:
    """The device work of a trace, one entry a device, by kind and index.

    Work on a track that names no device goes to ``other:0``: it is never dropped.
    """
    ids = trace.launches.device_slice
    if ids.size == 0:
        return ()
    devices, device_of_track = _devices_by_track(trace)
    owner = device_of_track[trace.slices.track[ids]]
    present = np.flatnonzero(np.bincount(owner)).tolist()
    return tuple(_work_of(trace, devices[index], owner == index) for index in present)


def _work_of(trace: Trace, device: Device, mine: Bool) -> DeviceWork:
    ids = trace.launches.device_slice[mine]
    start, dur = trace.slices.start_ns[ids], trace.slices.dur_ns[ids]
    kind = trace.slices.kind[ids]
    is_compute = (kind == SliceKind.KERNEL) | (kind == SliceKind.MEMSET)
    is_collective, is_memcpy = kind == SliceKind.COLLECTIVE, kind == SliceKind.MEMCPY
    compute = Intervals.lasting(start[is_compute], dur[is_compute])
    communication = Intervals.lasting(start[is_collective], dur[is_collective])
    memcpy = Intervals.lasting(start[is_memcpy], dur[is_memcpy])
    return DeviceWork(
        device=device,
        slices=ids,
        start_ns=int(start.min()),
        end_ns=int((start + dur).max()),
        is_linked=trace.launches.has_launch[mine],
        launches=trace.launches.launch_slice[mine],
        compute=compute,
        communication=communication,
        memcpy=memcpy,
        busy=compute.union(communication).union(memcpy),
    )


def device_window(works: tuple[DeviceWork, ...]) -> tuple[int, int] | None:
    """From the first start to the last end of device work, over all devices of a rank, ns."""
    if not works:
        return None
    return min(work.start_ns for work in works), max(work.end_ns for work in works)


def summarize_devices(trace: Trace, source: int = 0) -> tuple[DeviceSummary, ...]:
    """One row a device; empty where the trace holds no device work.

    The window that idle time refers to spans all devices of the trace, so that the idle
    times of one rank's devices can be compared.
    """
    works = device_work(trace)
    window = device_window(works)
    window_ns = 0 if window is None else window[1] - window[0]
    return tuple(_summarize(trace, work, window_ns, source) for work in works)


def _summarize(trace: Trace, work: DeviceWork, window_ns: int, source: int) -> DeviceSummary:
    dur = trace.slices.dur_ns[work.slices]
    kind = trace.slices.kind[work.slices]
    is_kernel = (kind == SliceKind.KERNEL) | (kind == SliceKind.COLLECTIVE)
    busy_ns = work.busy.total
    return DeviceSummary(
        source=source,
        rank=trace.source.rank,
        device=work.device,
        num_kernels=int(np.count_nonzero(is_kernel)),
        sum_ns=int(dur.sum()),
        busy_ns=busy_ns,
        idle_ns=window_ns - busy_ns,
        compute_ns=work.compute.total,
        communication_ns=work.communication.total,
        exposed_communication_ns=work.exposed_communication.total,
        memcpy_ns=work.memcpy.total,
        exposed_memcpy_ns=work.exposed_memcpy.total,
        unlinked_ns=int(dur[~work.is_linked].sum()),
    )


def _devices_by_track(trace: Trace) -> tuple[list[Device], I64]:
    """The trace's devices in order, and for each track the index of its device there."""
    of_track = [track.device or _UNKNOWN_DEVICE for track in trace.tracks]
    first: dict[tuple[DeviceKind, int], Device] = {}
    for device in of_track:
        first.setdefault((device.kind, device.index), device)
    keys = sorted(first)
    index = [keys.index((device.kind, device.index)) for device in of_track]
    return [first[key] for key in keys], np.array(index, dtype=np.int64)
