"""A recorded stretch of whole steps on the simulated device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trnscope.estimate.memory import MemoryEvent, Use
from trnscope.estimate.recorded import Batch, Unit
from trnscope.estimate.tracked import TrackedModel
from trnscope.sim.activation import ActiveDevice
from trnscope.sim.virtual_trace.device import connected, to_process_recording
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.steps import Step


@dataclass(frozen=True)
class StretchData:
    """All that was seen of it."""

    recording: Recording
    steps: tuple[Step, ...]
    start_bytes: tuple[int, ...]
    """In use at its start, by core."""
    events: dict[int, list[MemoryEvent]]
    """By core."""
    uses: dict[int, Use]
    sizes: dict[int, int]
    units: tuple[Unit, ...]
    batch: Batch | None


class Stretch:
    """Begins with a quiet device, and each of its steps ends with one."""

    def __init__(self, device: ActiveDevice, tracked: TrackedModel, first_step: int) -> None:
        self._device = device
        self._tracked = tracked
        self._first_step = first_step
        self._wait()
        self._start_bytes = tuple(stats["current"] for stats in self._memory_stats())
        self._handle = device.extension.observer_begin(True)
        self._marks = [device.extension.now_ns()]

    @property
    def num_steps(self) -> int:
        """Whole steps so far."""
        return len(self._marks) - 1

    def step_ended(self) -> None:
        """The device is waited for, so that its work is in the step that launched it."""
        self._wait()
        self._marks.append(self._device.extension.now_ns())

    def end(self) -> StretchData:
        """Stop recording."""
        observed = self._device.extension.observer_end(self._handle)
        uses, sizes = self._tracked.known_blocks()
        return StretchData(
            to_process_recording(observed, connected()),
            tuple(self._steps()),
            self._start_bytes,
            _events(observed["memory"]),
            uses,
            sizes,
            self._tracked.units(),
            self._tracked.batch(max(1, self.num_steps)),
        )

    def _wait(self) -> None:
        for core, stats in enumerate(self._memory_stats()):
            if stats["current"] or core == 0:
                self._device.extension.synchronize(core)

    def _memory_stats(self) -> list[dict[str, int]]:
        extension = self._device.extension
        return [extension.memory_stats(core) for core in range(extension.num_cores())]

    def _steps(self) -> list[Step]:
        pairs = zip(self._marks, self._marks[1:], strict=False)
        return [Step(self._first_step + i, start, end) for i, (start, end) in enumerate(pairs)]


def _events(rows: Any) -> dict[int, list[MemoryEvent]]:
    found: dict[int, list[MemoryEvent]] = {}
    for time_ns, _thread, core, address, num_bytes, _total in rows:
        found.setdefault(core, []).append(MemoryEvent(time_ns, address, num_bytes))
    return found
