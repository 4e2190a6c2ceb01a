"""Records a stretch of a program on the simulated device, in virtual time, with or without steps.

It needs no torch profiler, so a script may use its own meanwhile.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from trnscope.sim.virtual_trace.device import VirtualCapture, connected, is_connected
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.steps import Step, with_steps
from trnscope.sim.virtual_trace.trace_json import write_trace

ACTIVITIES = ("CPU", "NEURON")
NO_STACKS = (
    "trnscope: no Python stacks were recorded: another profiler of Python, or a debugger, held the "
    "interpreter's hook for profilers; leave it out, or drop --stack"
)


class VirtualRecorder:
    """Implements :class:`trnscope.capture.window.StepRecorder`."""

    needs_prepare = False
    excludes_torch_profiler = False
    """Whether it cannot run beside the script's own torch profiler."""
    ran_out_of_room = False

    def __init__(
        self, has_steps: bool, destination: Callable[[], Path], *, with_stack: bool = False
    ) -> None:
        self._has_steps = has_steps
        self._destination = destination
        self._with_stack = with_stack
        self._capture: VirtualCapture | None = None
        self._recording: Recording | None = None
        self._steps: list[Step] = []
        self._number = 0
        self._step_start_ns = 0
        self.activities = ACTIVITIES
        self.trace: Path | None = None

    def prepare(self) -> None:
        """Nothing has to be set up."""

    def begin(self, step: int) -> None:
        """Record from now on; the step that starts now has number ``step``."""
        self._steps.clear()
        self._number, self._step_start_ns = step, virtual_now_ns()
        self._capture = VirtualCapture(with_stack=self._with_stack)
        self._capture.start()

    def next_step(self) -> None:
        """A recorded step has ended, the next one starts."""
        now = virtual_now_ns()
        self._steps.append(Step(self._number, self._step_start_ns, now))
        self._number, self._step_start_ns = self._number + 1, now

    def has_room(self) -> bool:
        """Always: what is recorded is as large while recording as after it."""
        return True

    def stop(self, inside_step: bool) -> None:
        """Stop recording; a step that is still going on is left out."""
        if self._capture is None:
            return
        if not inside_step:
            self.next_step()
        self._recording = self._capture.stop()
        self._capture = None
        if self._with_stack and not self._recording.with_stack:
            warnings.warn(NO_STACKS, stacklevel=2)

    def export(self) -> None:
        """Write the trace; a window in which nothing ran leaves no file."""
        recording, self._recording = self._recording, None
        if recording is None or not (recording.host or recording.launches):
            return
        steps = self._steps if self._has_steps else []
        self.trace = write_trace(with_steps(recording, steps), self._destination())

    def cancel(self) -> None:
        """Stop and drop what was recorded."""
        if self._capture is not None:
            self._capture.stop()
            self._capture = None


def simulated_target() -> str | None:
    """The simulated device that this process has, as ``--device`` takes it."""
    return connected().simulation.target if is_connected() else None


def virtual_now_ns() -> int:
    """The host's virtual clock."""
    return connected().extension.now_ns()


def virtual_num_launches() -> int:
    """Programs and copies that this process gave the device since it has it."""
    return connected().extension.num_launches()
