"""Capture by environment variables: ``NEURON_RT_INSPECT_ENABLE=1`` and what refines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trnscope.sim.neuronx.config import DEFAULT_MAX_EVENTS, DEFAULT_OUTPUT_DIR, ProfileMode
from trnscope.sim.neuronx.cores import parse_cores
from trnscope.sim.neuronx.errors import ProfileArgumentError

PREFIX = "NEURON_RT_INSPECT_"
ENABLE = f"{PREFIX}ENABLE"
_SWITCHES = {
    "SYSTEM_PROFILE": (ProfileMode.RUNTIME, "1"),
    "DEVICE_PROFILE": (ProfileMode.DEVICE, "0"),
    "CPU_UTIL": (ProfileMode.CPU_UTIL, "0"),
    "HOST_MEMORY": (ProfileMode.HOST_MEMORY, "0"),
}
_ON = ("1", "true", "model", "session")
_OFF = ("0", "false", "")


@dataclass(frozen=True)
class InspectSettings:
    """What the environment asks for."""

    modes: tuple[ProfileMode, ...]
    output_dir: str
    cores: frozenset[int] | None
    max_events_per_nc: int
    event_types: tuple[str, ...]
    """``hardware``, ``software``, names of events; a leading ``^`` excludes. Empty: all."""


def is_enabled(environment: Mapping[str, str]) -> bool:
    """Whether the environment asks for a capture."""
    return _is_on(environment, "ENABLE", "0")


def inspect_settings(environment: Mapping[str, str]) -> InspectSettings | None:
    """The settings; None where no capture is asked for."""
    if not is_enabled(environment):
        return None
    modes = tuple(
        mode for name, (mode, default) in _SWITCHES.items() if _is_on(environment, name, default)
    )
    cores = environment.get(f"{PREFIX}EVENT_FILTER_NC", "")
    types = environment.get(f"{PREFIX}EVENT_FILTER_TYPE", "")
    return InspectSettings(
        modes=modes,
        output_dir=environment.get(f"{PREFIX}OUTPUT_DIR", DEFAULT_OUTPUT_DIR),
        cores=parse_cores(cores) if cores else None,
        max_events_per_nc=_count(environment, "SYS_TRACE_MAX_EVENTS_PER_NC", DEFAULT_MAX_EVENTS),
        event_types=tuple(word.strip() for word in types.split(",") if word.strip()),
    )


def _is_on(environment: Mapping[str, str], name: str, default: str) -> bool:
    value = environment.get(f"{PREFIX}{name}", default).lower()
    if value in _ON:
        return True
    if value in _OFF:
        return False
    raise ProfileArgumentError(f"{PREFIX}{name} is neither 0 nor 1: {value!r}")


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(f"{PREFIX}{name}")
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ProfileArgumentError(f"{PREFIX}{name} is no number of events: {text!r}")
    return int(text)
