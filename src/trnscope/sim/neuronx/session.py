"""Writes one profile: what was recorded, filtered, into its folder."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from trnscope.sim.neuronx.config import NeuronConfig, ProfileMode
from trnscope.sim.neuronx.folders import instance_id
from trnscope.sim.virtual_trace.artifacts import write_framework_trace, write_system_trace
from trnscope.sim.virtual_trace.host_samples import HostSamples
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.selection import dropped_text, select

_SYSTEM_MODES = {ProfileMode.RUNTIME, ProfileMode.CPU_UTIL, ProfileMode.HOST_MEMORY}


@dataclass(frozen=True)
class ProfileChoice:
    """What of a recording is written."""

    modes: Collection[ProfileMode]
    cores: frozenset[int] | None = None
    max_events_per_nc: int | None = None
    event_types: tuple[str, ...] = ()

    @staticmethod
    def of(config: NeuronConfig) -> ProfileChoice:
        """As a NeuronConfig says it."""
        return ProfileChoice(config.modes, config.cores(), config.max_events_per_nc)


def write_session(
    recording: Recording, samples: HostSamples, choice: ProfileChoice, folder: Path
) -> tuple[Path, ...]:
    """Write the files that the modes ask for; a warning tells of dropped events."""
    kept = select(recording, choice.cores, choice.max_events_per_nc)
    text = dropped_text(kept)
    if text is not None:
        warnings.warn(f"trnscope: {text}", stacklevel=3)
    files = [write_framework_trace(kept, folder)]
    if _SYSTEM_MODES.intersection(choice.modes):
        has_runtime = ProfileMode.RUNTIME in choice.modes
        instance = instance_id(kept.simulation.instance)
        files.append(
            write_system_trace(
                kept, samples, instance, folder, choice.event_types if has_runtime else None
            )
        )
    return tuple(files)
