"""Runs a script on the simulated device without values, records whole steps, and ends it.

``python -m trnscope.estimate.measure SETTINGS RESULT SCRIPT ARGS...``, in a process of its own.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from dataclasses import replace
from pathlib import Path

from trnscope.capture.hooks import ModuleHooks, OptimizerHooks, when_first_call
from trnscope.capture.options import StepsBy
from trnscope.capture.simulation import SimulatedTarget, activate
from trnscope.capture.steps import StepFinder
from trnscope.estimate.add_up import add_up
from trnscope.estimate.options import MeasureSettings, Refusal
from trnscope.estimate.stretch import Stretch, StretchData
from trnscope.estimate.tensor_parallel import SplitError, TensorParallel
from trnscope.estimate.tracked import TrackedModel
from trnscope.sim.activation import active_device
from trnscope.sim.virtual_trace.steps import with_steps
from trnscope.sim.virtual_trace.trace_json import write_trace

_BOUNDLESS = 1 << 60
"""Bytes of HBM that the script finds: what is beyond the real capacity is counted, not refused."""
_RESHAPE = (
    "its reshapes must take the number of heads from the tensor, as in "
    "view(batch, tokens, -1, head_width); or leave --tp out"
)


def main(settings: MeasureSettings, result: Path, command: list[str]) -> None:
    """Make the device, listen, run the script as Python would."""
    activate(SimulatedTarget(settings.instance, settings.lnc, numerics=False))
    active_device().extension.set_capacity(_BOUNDLESS)
    session = Session(settings, result)
    atexit.register(session.script_ends)
    sys.argv = command
    sys.path[0] = str(Path(command[0]).resolve().parent)
    try:
        runpy.run_path(command[0], run_name="__main__")
    except Exception as error:
        if settings.tp == 1:
            raise
        session.refuse(error)


class Session:
    """Finds the steps and records them; implements :class:`trnscope.capture.hooks.HookListener`."""

    def __init__(self, settings: MeasureSettings, result: Path) -> None:
        self._settings = settings
        self._result = result
        self._finder = StepFinder()
        self._tracked = TrackedModel()
        self._stretch: Stretch | None = None
        self._warm_up: StretchData | None = None
        self._num_steps = 0
        self._is_over = False
        self._optimizers = OptimizerHooks(self)
        self._modules = ModuleHooks(self)
        # Before anything is recorded: it changes the shapes of the first call.
        self._split = TensorParallel(settings.tp) if settings.tp > 1 else None
        when_first_call(self._begin)

    def refuse(self, error: Exception) -> None:
        """The script fails with its layers split: say why in one line, and record nothing."""
        self._is_over = True
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if isinstance(error, SplitError):
            refusal = Refusal(reason, "choose another --tp, or leave it out")
        else:
            refusal = Refusal(f"it fails then ({reason})", _RESHAPE)
        refusal.write(self._result)
        sys.exit(1)

    def optimizer_made(self, optimizer: object) -> None:
        """It decides the steps from now on."""
        self._finder.optimizer_made(optimizer)

    def optimizer_stepped(self, optimizer: object) -> None:
        """The gradients are there; it may end a step."""
        if self._is_over:
            return
        self._tracked.optimizer_stepped(optimizer)
        if self._finder.optimizer_stepped(optimizer):
            self._step_ended()

    def module_called(self, module: object) -> None:
        """What it was given; it may end a step where there is no optimizer."""
        if self._is_over:
            return
        self._tracked.module_called(module, self._modules.first_input)
        if self._finder.waiting_optimizers or self._finder.num_optimizers_made:
            return
        if self._finder.module_called(module):
            self._step_ended()

    def hook_failed(self, error: Exception) -> None:
        """Nothing can be said without the hooks."""
        raise error

    def script_ends(self) -> None:
        """Fewer steps than were asked for: take those that there are."""
        if self._is_over:
            return
        if self._stretch is not None:
            last = self._take(self._stretch)
            best = last if last.steps else self._warm_up
            if best is not None:
                self._write(best)
        self._is_over = True

    def _begin(self) -> None:
        self._tracked.begin()
        if self._split is not None:
            self._split.begin()
        self._stretch = Stretch(active_device(), self._tracked, self._num_steps)

    def _step_ended(self) -> None:
        self._num_steps += 1
        if self._stretch is None:
            self._begin()
            return
        self._stretch.step_ended()
        if self._num_steps <= self._settings.warmup:
            self._warm_up = self._take(self._stretch)
            self._begin()
        elif self._stretch.num_steps >= self._settings.steps:
            self._write(self._take(self._stretch))
            _end_process()

    def _take(self, stretch: Stretch) -> StretchData:
        self._stretch = None
        return stretch.end()

    def _write(self, data: StretchData) -> None:
        self._is_over = True
        found, trace = self._finder.found, self._settings.trace
        write_trace(with_steps(data.recording, data.steps), Path(trace))
        steps_by = StepsBy.FORWARD if found is None else found
        recorded = add_up(data, active_device(), steps_by.value, trace)
        if self._split is not None:
            sent = self._split.sent()
            recorded = replace(recorded, tp=self._settings.tp, tensor_collectives=sent)
        recorded.write(self._result)


def _end_process() -> None:
    """Further steps would say nothing new, and the values that the script waits for are zeros."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(MeasureSettings.from_text(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
