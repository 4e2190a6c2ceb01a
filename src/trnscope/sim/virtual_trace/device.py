"""The simulated device of this process, as recording needs it; activation connects it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from trnscope.errors import CaptureError
from trnscope.sim.virtual_trace.observed import Observed, Process, Programs, to_recording
from trnscope.sim.virtual_trace.python_frames import folders_of_code
from trnscope.sim.virtual_trace.recording import Recording, Simulation
from trnscope.sim.virtual_trace.trace_json import device_properties, simulation_header


class Extension(Protocol):
    """What is used of the compiled device; see ``csrc/profiler_bindings.cpp``."""

    def observer_begin(self, with_inputs: bool, with_python: bool = False) -> int:
        """Start a recording, with functions of Python where asked for; returns its handle."""

    def observer_end(self, recording: int) -> Observed:
        """Stop a recording."""

    def profiler_has_last(self) -> bool:
        """Whether a torch profile with a NeuronConfig has ended since the last take."""

    def profiler_take_last(self) -> Observed:
        """The recording that ran beside it."""

    def num_launches(self) -> int:
        """Programs and copies so far."""

    def now_ns(self) -> int:
        """The host's virtual clock."""

    def executions(self) -> list[tuple[int, str, int, int, bool]]:
        """Signature, name, kind, launches so far, and whether it falls back to the CPU."""

    def set_profiler_header(self, device_properties: str, simulation: str) -> None:
        """What torch's own traces say of the device."""


@dataclass(frozen=True)
class SimulatedDevice:
    """The compiled device and what its times come from."""

    extension: Extension
    simulation: Simulation
    programs: Programs


_connected: list[SimulatedDevice] = []


def connect(device: SimulatedDevice) -> None:
    """Make this the process's device, and have torch's own traces name it."""
    _connected[:] = [device]
    simulation = device.simulation
    properties = [device_properties(simulation, index) for index in range(simulation.num_devices)]
    header = simulation_header(simulation, clock="host real, device simulated")
    device.extension.set_profiler_header(", ".join(map(json.dumps, properties)), json.dumps(header))


def connected() -> SimulatedDevice:
    """The process's device; raises :class:`CaptureError` where none is active."""
    if not _connected:
        raise CaptureError(
            "no simulated device is active",
            hint="call trnscope.sim.activate() or use trnscope run --device sim:trn2",
        )
    return _connected[0]


def is_connected() -> bool:
    """Whether this process has a simulated device."""
    return bool(_connected)


def to_process_recording(observed: Observed, device: SimulatedDevice) -> Recording:
    """What was observed, with the rank of this process."""
    rank, size = _rank_and_size()
    folders = folders_of_code(sys.path)
    process = Process(device.simulation, rank, size, code_folders=folders)
    return to_recording(observed, process, device.programs)


_kept: list[Recording] = []


def take_profiled() -> Recording | None:
    """What ran beside the torch profile that ended last; None where it has no NeuronConfig."""
    if _kept:
        return _kept.pop()
    device = connected()
    if not device.extension.profiler_has_last():
        return None
    return to_process_recording(device.extension.profiler_take_last(), device)


@contextmanager
def kept(recording: Recording) -> Iterator[None]:
    """Let another reader take the recording again meanwhile."""
    _kept[:] = [recording]
    try:
        yield
    finally:
        _kept.clear()


class VirtualCapture:
    """One recording of this process in virtual time.

    ``with_stack`` records the functions of Python that run on the thread that starts it.
    """

    def __init__(self, device: SimulatedDevice | None = None, *, with_stack: bool = False) -> None:
        self._device = device or connected()
        self._with_stack = with_stack
        self._handle: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether it records now."""
        return self._handle is not None

    def start(self) -> None:
        """Record from now on."""
        if self._handle is None:
            self._handle = self._device.extension.observer_begin(True, self._with_stack)

    def stop(self) -> Recording:
        """Stop; returns what was recorded."""
        if self._handle is None:
            raise CaptureError("this recording is not running")
        handle, self._handle = self._handle, None
        observed = self._device.extension.observer_end(handle)
        return to_process_recording(observed, self._device)


def _rank_and_size(environment: Mapping[str, str] = os.environ) -> tuple[int | None, int | None]:
    """Of the process group, else of the launcher."""
    import torch.distributed

    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    texts = (environment.get("RANK"), environment.get("WORLD_SIZE"))
    rank, size = (int(text) if text and text.isdecimal() else None for text in texts)
    return rank, size
