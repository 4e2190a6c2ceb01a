"""NeuronProfiler: writes what torch's profiler recorded of the device into the documented folder.

Two forms: ``NeuronProfiler(config).export_trace`` as ``on_trace_ready`` of torch's profiler, and
the older one that is started and stopped by itself or used as a context manager.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch.profiler

from trnscope.sim.neuronx.config import DEFAULT_OUTPUT_DIR, NeuronConfig, ProfileMode
from trnscope.sim.neuronx.errors import ProfileArgumentError, ProfileStateError
from trnscope.sim.neuronx.folders import new_session_folder, timestamp
from trnscope.sim.neuronx.inspect_settings import ENABLE, is_enabled
from trnscope.sim.neuronx.session import ProfileChoice, write_session
from trnscope.sim.virtual_trace.artifacts import write_framework_mapping
from trnscope.sim.virtual_trace.device import take_profiled
from trnscope.sim.virtual_trace.host_samples import HostSampler, HostSamples
from trnscope.sim.virtual_trace.recording import Recording

_profiler: Any = torch.profiler
PYTORCH_TRACE = "pytorch_trace.json"


class NeuronProfiler:
    """Exports profiles of the neuron device.

    ``config`` is the NeuronConfig that torch's profiler was given. In the older form the other
    arguments stand instead of it: ``event_filters={"nc": ["0", "4-7"]}`` names the cores.
    """

    def __init__(
        self,
        config: NeuronConfig | Iterable[Any] | None = None,
        record_shapes: bool = False,
        pytorch_trace_file: str | None = None,
        neuron_output_dir: str = DEFAULT_OUTPUT_DIR,
        event_filters: Mapping[str, Iterable[str]] | None = None,
        pytorch_activities: Iterable[Any] | None = None,
    ) -> None:
        if is_enabled(os.environ):
            raise ProfileArgumentError(
                f"{ENABLE} is set, which excludes a profile by torch.profiler",
                hint="unset one of the two",
            )
        if isinstance(config, NeuronConfig):
            self.config, activities = config, pytorch_activities
        elif config is None or not isinstance(config, (str, bytes, dict)):
            self.config = _config_of(neuron_output_dir, event_filters)
            activities = config if pytorch_activities is None else pytorch_activities
        else:
            raise ProfileArgumentError(
                f"no NeuronConfig: {config!r}", hint="write NeuronProfiler(NeuronConfig(...))"
            )
        self._activities = activities
        self._record_shapes = record_shapes
        self._trace_file = pytorch_trace_file
        self._running: Any = None
        self._sampler = self._new_sampler()
        self.output_folder: Path | None = None
        """Where the last profile was written."""

    def export_trace(self, prof: Any) -> None:
        """Write the profile that has just ended; give this as ``on_trace_ready``."""
        recording = take_profiled()
        if recording is None:
            raise ProfileStateError(
                "the profile did not record the neuron device",
                hint="give torch.profiler.profile activities with ProfilerActivity.PrivateUse1 "
                "and experimental_config=NeuronConfig(...)",
            )
        samples = _since(self._sampler.stop(), _start_of(prof))
        self._sampler = self._new_sampler()
        self._write(recording, samples)

    # ---- the older form

    def start(self) -> None:
        """Start torch's profiler with this configuration."""
        if self._running is not None:
            raise ProfileStateError("Profiler is already active", hint="stop it first")
        self._running = _profiler.profile(
            activities=self._activities or _profiler.supported_activities(),
            record_shapes=self._record_shapes,
            experimental_config=self.config,
        )
        self._running.__enter__()

    def stop(self) -> None:
        """Stop, and write the profile beside torch's own trace."""
        if self._running is None:
            raise ProfileStateError("Profiler is not active", hint="start it first")
        running, self._running = self._running, None
        running.__exit__(None, None, None)
        self.export_trace(running)
        if self.output_folder is None:
            return
        target = self._trace_file or str(self.output_folder / PYTORCH_TRACE)
        running.export_chrome_trace(target)

    def __enter__(self) -> NeuronProfiler:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # ---- the work

    def _new_sampler(self) -> HostSampler:
        modes = self.config.modes
        sampler = HostSampler(
            cpu=ProfileMode.CPU_UTIL in modes, memory=ProfileMode.HOST_MEMORY in modes
        )
        sampler.start()
        return sampler

    def _write(self, recording: Recording, samples: HostSamples) -> None:
        folder = new_session_folder(self.config.profile_output_dir, recording.simulation.instance)
        write_session(recording, samples, ProfileChoice.of(self.config), folder)
        write_framework_mapping(recording, folder / f"framework_mapping_{timestamp()}.json")
        self.output_folder = folder


def _config_of(output_dir: str, filters: Mapping[str, Iterable[str]] | None) -> NeuronConfig:
    cores = None
    if filters is not None:
        unknown = set(filters) - {"nc", "types"}
        if unknown:
            raise ProfileArgumentError(
                f"no event filter: {', '.join(sorted(unknown))}", hint="filter by nc or types"
            )
        cores = ",".join(filters.get("nc", ())) or None
    return NeuronConfig(
        [ProfileMode.RUNTIME], capture_enabled_for_nc=cores, profile_output_dir=output_dir
    )


def _start_of(prof: Any) -> int:
    """When torch started to record, epoch ns."""
    inner = getattr(prof, "profiler", prof)
    results = getattr(inner, "kineto_results", None)
    return int(results.trace_start_ns()) if results is not None else 0


def _since(samples: HostSamples, start_ns: int) -> HostSamples:
    """Without the samples from before the recording."""
    return HostSamples(
        tuple(one for one in samples.cpu if one.time_ns + one.duration_ns > start_ns),
        tuple(one for one in samples.memory if one.time_ns >= start_ns),
    )
