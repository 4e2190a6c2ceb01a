"""Writes one profile: what was recorded, filtered, into its folder."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from trnscope.sim.neuronx.config import NeuronConfig, ProfileMode
from trnscope.sim.neuronx.folders import instance_id
from trnscope.sim.signature import CollectiveSpec, GraphSpec, OpSignature
from trnscope.sim.virtual_trace.artifacts import write_framework_trace, write_system_trace
from trnscope.sim.virtual_trace.host_samples import HostSamples
from trnscope.sim.virtual_trace.recording import Recording
from trnscope.sim.virtual_trace.selection import dropped_text, select
from trnscope.sim.virtual_trace.system_events import SystemEvent, filtered, system_events

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
    instance = instance_id(kept.simulation.instance)
    events = filtered(system_events(kept), choice.event_types)
    files = [write_framework_trace(kept, folder)]
    if _SYSTEM_MODES.intersection(choice.modes):
        shown = events if ProfileMode.RUNTIME in choice.modes else ()
        files.append(write_system_trace(kept, shown, samples, instance, folder))
    if ProfileMode.DEVICE in choice.modes:
        files.append(_write_tables(kept, events, samples, folder, instance))
    return tuple(files)


def _write_tables(
    recording: Recording,
    events: Sequence[SystemEvent],
    samples: HostSamples,
    folder: Path,
    instance: str,
) -> Path:
    """What each execution does inside, as Neuron Explorer's tables."""
    from trnscope.sim.activation import active_device
    from trnscope.sim.explorer_tables.from_recording import write_explorer_tables

    device = active_device()

    def signature_of(number: int) -> OpSignature | GraphSpec | CollectiveSpec | None:
        priced = device.prices.row(number)
        return None if priced is None else priced.signature

    return write_explorer_tables(
        recording, events, samples, device.model, signature_of, folder, instance
    )
