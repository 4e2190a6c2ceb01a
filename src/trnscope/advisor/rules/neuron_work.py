"""What a trace shows of NeuronCores: programs, engines, and where the time of programs goes."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext, once_per_context
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.errors import UnknownHardwareError
from trnscope.hardware.chips import find
from trnscope.hardware.neuroncore import least_dma_efficient_bytes, load_core
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import DeviceKind, SliceKind, TrackKind
from trnscope.store.tables import F64, U32

COMPUTING = ("tensor", "vector", "scalar", "gpsimd")
"""Engines that compute; the sync engine only starts transfers."""
_CORE = re.compile(r" \(core \d+\)$")
_PARTS = (SliceKind.INSTRUCTION, SliceKind.KERNEL, SliceKind.MEMCPY)


def neuron_tracks(context: StepContext, kind: TrackKind) -> list[int]:
    """Tracks of this kind on NeuronCores."""
    return [
        number
        for number, track in enumerate(context.trace.tracks)
        if track.kind is kind
        and track.device is not None
        and track.device.kind is DeviceKind.NEURON
    ]


@once_per_context
def programs(context: StepContext) -> U32:
    """Executions of programs (NEFFs) on NeuronCores that start in the window, rising."""
    ids = context.device(SliceKind.KERNEL)
    streams = neuron_tracks(context, TrackKind.DEVICE_STREAM)
    return np.asarray(ids[np.isin(context.trace.slices.track[ids], streams)], np.uint32)


def programs_of(context: StepContext, ops: U32) -> U32:
    """Programs that some ops launched: in their own time, or by the id that both carry where the
    runtime launches from threads of its own (system profiles)."""
    mine = programs(context)
    launched = mine[np.isin(mine, context.launched_in(ops))]
    known = context.trace.attribute("external_id")
    if launched.size or known is None:
        return launched
    every = context.ops()
    of_ops, of_programs = known.of(every[context.lies_in(every, ops)]), known.of(mine)
    ids = of_ops[1][of_ops[0]]
    return mine[of_programs[0] & np.isin(of_programs[1], ids)]


@dataclass(frozen=True, eq=False, repr=False)
class EngineTime:
    """When the engines and the DMA queues of one device worked in the window."""

    device: int
    """Its index."""
    engines: dict[str, Intervals]
    """By name; the physical cores of one device run the same program and count once."""
    instructions: dict[str, U32]
    dma: Intervals
    transfers: U32
    whole: Intervals
    """When programs ran, where that is recorded; else from the first begin to the last end."""

    @property
    def limit(self) -> str | None:
        """The engine that works longest; absent where none did."""
        return max(self.engines, key=lambda name: self.engines[name].total, default=None)

    def alone(self, name: str) -> Intervals:
        """When this engine works, no other does, and no transfer runs."""
        time = self.engines[name].subtract(self.dma)
        for other, theirs in self.engines.items():
            time = time if other == name else time.subtract(theirs)
        return time

    @property
    def dma_alone(self) -> Intervals:
        """When transfers run and no engine works."""
        time = self.dma
        for theirs in self.engines.values():
            time = time.subtract(theirs)
        return time


PARTITIONS = 128
"""A transfer has a piece in each; a piece takes a least time, whatever its size. It runs at the
full rate from the bytes on that the chip moves in that time: 2,436 on Trainium2 (public
measurements of DMA efficiency follow bytes / max(bytes, 2440) within 4 %), 1,340 on Trainium1."""
LEAST_LOST = 0.5
"""Of a transfer's time, that an efficient one would not take, for it to count as small."""
SCATTERED_RATE = 0.1
"""Of the DMA engines' rate: a transfer of any size below is made of small pieces, as a gather of
rows is. Ours: several transfers at once share the rate, but not ten for long."""


@dataclass(frozen=True, eq=False, repr=False)
class SmallTransfers:
    """Transfers too small, or of pieces too small, to be quick."""

    slices: U32
    lost: float
    """Of their time, what transfers of an efficient size would not take."""
    exposed_ns: int
    """When they run, and neither an engine nor a quicker transfer."""


def small_transfers(context: StepContext, found: EngineTime) -> SmallTransfers | None:
    """Absent where there are none, or their sizes are not known."""
    known = context.trace.attribute("bytes")
    if known is None:
        return None
    has, value = known.of(found.transfers)
    dur = np.maximum(context.trace.slices.dur_ns[found.transfers], 1).astype(np.float64)
    efficient = _efficient_bytes(context, found.transfers)
    each = _lost(value.astype(np.float64), dur, efficient, _dma_rate(context))
    lost = np.where(has & (value > 0), each, 0)
    small = lost >= LEAST_LOST
    if not small.any():
        return None
    ids = found.transfers[small]
    time = context.union_of(ids).subtract(context.union_of(found.transfers[~small]))
    for engine in found.engines.values():
        time = time.subtract(engine)
    share = float(np.sum(lost[small] * dur[small]) / np.sum(dur[small]))
    return SmallTransfers(ids, share, time.total)


def _efficient_bytes(context: StepContext, transfers: U32) -> float:
    """Of a piece, by the chip. Where the profile names none, the least of all chips; 0, so that no
    size is small, where nothing is known of the one it names."""
    numbers = np.unique(context.trace.slices.track[transfers]).tolist()
    devices = (context.trace.tracks[number].device for number in numbers)
    names = {device.name for device in devices if device is not None}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        return least_dma_efficient_bytes()
    try:
        return load_core(find(name).name).dma_efficient_bytes
    except UnknownHardwareError:
        return 0.0


def _lost(num_bytes: F64, dur: F64, efficient: float, rate: float | None) -> F64:
    """Of each transfer's time, what an efficient one would not take: by its size, or its rate."""
    each = np.maximum(num_bytes / PARTITIONS, 1e-9)
    by_size = np.asarray(1.0 - each / np.maximum(each, efficient), np.float64)
    if rate is None:
        return by_size
    reached = num_bytes / dur / rate
    return np.maximum(by_size, np.where(reached < SCATTERED_RATE, 1.0 - reached, 0.0))


def _dma_rate(context: StepContext) -> float | None:
    """Bytes per ns of one core's DMA engines, where the profile gives it."""
    try:
        members = json.loads(context.trace.source.metadata.get("neuronMetadata", "{}"))
    except ValueError:
        return None
    rate = members.get("dma_ddr_bandwidth") if isinstance(members, dict) else None
    return rate / 1e9 if isinstance(rate, int | float) and rate > 0 else None


@once_per_context
def engine_time(context: StepContext) -> EngineTime | None:
    """Of the device whose programs take longest; absent where neither engines nor queues were
    recorded.

    Devices are not added up: the Tensor engine of one hides nothing of another's transfers.
    """
    by_device: defaultdict[int, list[int]] = defaultdict(list)
    for kind in (TrackKind.DEVICE_ENGINE, TrackKind.DEVICE_QUEUE):
        for track in neuron_tracks(context, kind):
            by_device[device_of(context, track)].append(track)
    times = [_time_of(context, device, tracks) for device, tracks in by_device.items()]
    known = [time for time in times if time is not None]
    return max(known, key=lambda time: time.whole.total, default=None)


def _time_of(context: StepContext, device: int, tracks: list[int]) -> EngineTime | None:
    """Of one device, by its tracks; absent where they are no engines that compute."""
    slices = context.trace.slices
    ids = context.inside(slices.of_kind(*_PARTS))
    by_engine: defaultdict[str, list[U32]] = defaultdict(list)
    queues = []
    for track in tracks:
        name = _CORE.sub("", _name_of(context, track))
        if context.trace.tracks[track].kind is TrackKind.DEVICE_QUEUE:
            queues.append(track)
        elif name in COMPUTING:
            by_engine[name].append(ids[slices.track[ids] == track])
    if not by_engine and not queues:
        return None
    transfers = np.asarray(ids[np.isin(slices.track[ids], queues)], np.uint32)
    instructions = {name: np.concatenate(parts) for name, parts in by_engine.items()}
    engines = {name: context.union_of(found) for name, found in instructions.items()}
    dma = context.union_of(transfers)
    whole = _whole(context, device, engines, dma)
    return EngineTime(device, engines, instructions, dma, transfers, whole)


def device_of(context: StepContext, track: int) -> int:
    """The index of a track's device; -1 for the host's."""
    device = context.trace.tracks[track].device
    return -1 if device is None else device.index


def _name_of(context: StepContext, track: int) -> str:
    found = context.trace.tracks[track]
    return found.thread_name or found.thread


def _whole(
    context: StepContext, device: int, engines: dict[str, Intervals], dma: Intervals
) -> Intervals:
    """When this device's programs ran."""
    streams = neuron_tracks(context, TrackKind.DEVICE_STREAM)
    mine = [track for track in streams if device_of(context, track) == device]
    ids = programs(context)
    ran = context.union_of(ids[np.isin(context.trace.slices.track[ids], mine)])
    if len(ran):
        return ran
    everything = dma
    for time in engines.values():
        everything = everything.union(time)
    if len(everything) == 0:
        return everything
    return Intervals(everything.start[:1], everything.end[-1:])


@dataclass(frozen=True, eq=False, repr=False)
class Shorter:
    """Programs that take less time: as removals for the replay, or without one as plain time."""

    low: Removal | None
    likely: Removal | None
    high: Removal | None
    direct_ns: tuple[int, int, int] | None


def shorter_programs(
    context: StepContext, gone_ns: int, whole_ns: int, shares: tuple[float, float, float]
) -> Shorter:
    """Without these shares (low, likely, high) of some of the time in which programs run.

    A device profile alone has no host to replay: its figures are that time itself.
    """
    ids = programs(context)
    if ids.size == 0 or context.replay is None:
        low, likely, high = (context.per_step(round(share * gone_ns)) for share in shares)
        return Shorter(None, None, None, (low, likely, high))
    part = min(1.0, gone_ns / max(whole_ns, 1))
    cuts = [Removal((), (DeviceCut(ids, share * part),)) for share in shares]
    return Shorter(cuts[0], cuts[1], cuts[2], None)
