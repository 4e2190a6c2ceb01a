"""The tracks of a Neuron profile: host threads, cores with their engines and queues, counters."""

from __future__ import annotations

from collections.abc import Iterable

from trnscope.ingest.neuron_event import SystemEvent
from trnscope.ingest.neuron_words import Origin, engine_number
from trnscope.model.kinds import DeviceKind, TrackKind
from trnscope.model.track import Device, Track
from trnscope.store.writer import TraceWriter

CoreKey = tuple[str, str, int | None]
"""Instance, process and the process's own number of a logical core."""

_NUMBERS_PER_CORE = 8
"""Engines of one physical core that can be told apart by number."""


class NeuronTracks:
    """Finds or makes tracks; a core is a device."""

    def __init__(
        self, writer: TraceWriter, *, simulated: bool = False, device_name: str | None = None
    ) -> None:
        self._writer = writer
        self._simulated = simulated
        self._device_name = device_name
        self._found: dict[tuple[object, ...], int] = {}
        self._cores: dict[CoreKey, int] = {}
        self._several_instances = False

    def describe(self, *, simulated: bool, device_name: str | None) -> None:
        """Say what the devices are, before any of them is asked for."""
        self._simulated = simulated
        self._device_name = device_name

    def number_cores(self, events: Iterable[SystemEvent]) -> None:
        """Number the cores that a profile names.

        A process numbers its cores from 0. With one process these are the numbers; with several
        the worker's number over all of them, else the order of instance, process and core.
        """
        workers: dict[CoreKey, int | None] = {}
        for event in events:
            if event.core is not None or event.origin is Origin.HARDWARE:
                workers.setdefault(core_key(event), event.worker)
        keys = sorted(workers, key=lambda key: (key[0], key[1], key[2] or 0))
        self._several_instances = len({key[0] for key in keys}) > 1
        given = list(workers.values())
        if len({key[:2] for key in keys}) <= 1:
            self._cores = {key: key[2] or 0 for key in keys}
        elif None not in given and len(set(given)) == len(given):
            self._cores = {key: worker or 0 for key, worker in workers.items()}
        else:
            self._cores = {key: number for number, key in enumerate(keys)}

    def device_of(self, key: CoreKey) -> Device:
        """The device of a process's core."""
        index = self._cores.get(key, key[2] or 0)
        return Device(DeviceKind.NEURON, index, self._device_name, self._simulated)

    def device_number(self, index: int) -> Device:
        """The device of that number."""
        return Device(DeviceKind.NEURON, index, self._device_name, self._simulated)

    def thread(
        self, event: SystemEvent, kind: TrackKind = TrackKind.CPU_THREAD, suffix: str = ""
    ) -> int:
        """The track of the thread that an event names."""
        key = (event.instance, event.process, event.thread, kind, suffix)
        if key not in self._found:
            process_name = event.instance if self._several_instances else None
            thread = f"{event.thread} {suffix}".strip()
            track = Track(kind, event.process, thread, process_name=process_name)
            self._found[key] = self._writer.add_track(track)
        return self._found[key]

    def stream(self, device: Device, stream: int | None, name: str) -> int:
        """A track of executions, collectives or copies of a device."""
        return self._on_device(TrackKind.DEVICE_STREAM, device, name, stream)

    def engine(self, device: Device, engine: str, physical_core: int | None) -> int:
        """The track of an engine of a physical core."""
        core = physical_core or 0
        number = engine_number(engine)
        stream = None if number is None else core * _NUMBERS_PER_CORE + number
        name = engine if physical_core is None else f"{engine} (core {core})"
        return self._on_device(TrackKind.DEVICE_ENGINE, device, name, stream)

    def queue(self, device: Device, queue: str, physical_core: int | None) -> int:
        """The track of a DMA queue of a physical core."""
        name = queue if physical_core is None else f"{queue} (core {physical_core})"
        return self._on_device(TrackKind.DEVICE_QUEUE, device, name, None)

    def counter(self, device: Device | None, process: str = "host") -> int:
        """The track of counters of a device, or of the host."""
        owner = process if device is None else device.label
        key = (owner, TrackKind.COUNTER)
        if key not in self._found:
            track = Track(TrackKind.COUNTER, owner, "counters", device=device)
            self._found[key] = self._writer.add_track(track)
        return self._found[key]

    def _on_device(self, kind: TrackKind, device: Device, name: str, stream: int | None) -> int:
        key = (device.index, kind, name, stream)
        if key not in self._found:
            track = Track(kind, device.label, name, thread_name=name, device=device, stream=stream)
            self._found[key] = self._writer.add_track(track)
        return self._found[key]


def core_key(event: SystemEvent) -> CoreKey:
    """The core that an event names."""
    return event.instance, event.process, event.core
