"""Records a whole process where the environment asks for it, as the runtime itself does."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from trnscope.errors import TrnscopeError
from trnscope.sim.neuronx.config import ProfileMode
from trnscope.sim.neuronx.folders import process_folder
from trnscope.sim.neuronx.inspect_settings import InspectSettings, inspect_settings
from trnscope.sim.neuronx.session import ProfileChoice, write_session
from trnscope.sim.virtual_trace.device import VirtualCapture
from trnscope.sim.virtual_trace.host_samples import HostSampler

_running: list[InspectCapture] = []


class InspectCapture:
    """One capture of this process, from now to its end."""

    def __init__(self, settings: InspectSettings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._sampler = HostSampler(
            cpu=ProfileMode.CPU_UTIL in settings.modes,
            memory=ProfileMode.HOST_MEMORY in settings.modes,
        )
        self._capture = VirtualCapture()
        self._sampler.start()
        self._capture.start()

    def finish(self) -> tuple[Path, ...]:
        """Write the files; none in a process that was forked meanwhile."""
        if os.getpid() != self._pid or not self._capture.is_running:
            return ()
        recording = self._capture.stop()
        settings = self._settings
        choice = ProfileChoice(
            settings.modes, settings.cores, settings.max_events_per_nc, settings.event_types
        )
        folder = process_folder(settings.output_dir, recording.simulation.instance)
        folder.mkdir(parents=True, exist_ok=True)
        return write_session(recording, self._sampler.stop(), choice, folder)


def start_from_environment(environment: Mapping[str, str] = os.environ) -> InspectCapture | None:
    """Start where ``NEURON_RT_INSPECT_ENABLE`` asks for it, once in a process."""
    settings = inspect_settings(environment)
    if settings is None or _running:
        return None
    capture = InspectCapture(settings)
    _running.append(capture)
    atexit.register(_finish_at_exit, capture)
    return capture


def _finish_at_exit(capture: InspectCapture) -> None:
    try:
        capture.finish()
    except (TrnscopeError, OSError) as error:
        print(f"trnscope: the profile was not written: {error}", file=sys.stderr)
