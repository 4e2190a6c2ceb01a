"""NeuronConfig: what to record, in the form that torch's profiler hands to a device's plugin.

torch takes nothing but its own ``_ExperimentalConfig``, so NeuronConfig is one. Its values travel
in ``custom_profiler_config`` as a JSON object, and every attribute reads that text: torch copies
the object, and a copy keeps the text only. Kineto reads options line by line as ``KEY=VALUE``
with ``#`` for comments and torch crashes on what does not parse, hence the two escapes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from torch._C._profiler import _ExperimentalConfig

from trnscope.sim.neuronx.cores import parse_cores
from trnscope.sim.neuronx.errors import ProfileArgumentError

DEFAULT_MAX_EVENTS = 1_000_000
"""The runtime's own default for each NeuronCore."""
DEFAULT_OUTPUT_DIR = "./output"
CACHE_VARIABLE = "TORCH_NEURONX_NEFF_CACHE_DIR"
BACKEND = "trnscope_sim"

if TYPE_CHECKING:

    class _Base:
        custom_profiler_config: str

        def __init__(self, *, custom_profiler_config: str) -> None: ...

else:
    _Base = _ExperimentalConfig


class ProfileMode(str, Enum):
    """What a profile records."""

    DEVICE = "device"
    """The instructions of each execution, by engine and queue."""
    RUNTIME = "runtime"
    """The calls of the runtime and the executions on each core."""
    CPU_UTIL = "cpu_util"
    """How busy the host's processors are."""
    HOST_MEMORY = "host_memory"
    """How much of the host's memory is in use."""


class NeuronConfig(_Base):
    """The options of a Neuron profile, for ``torch.profiler.profile(experimental_config=...)``.

    ``capture_enabled_for_nc`` names the cores to record (``"0,1,2-5"``; None: all).
    ``max_events_per_nc`` bounds the executions kept for each core; what does not fit is dropped,
    oldest first, and the number of drops is reported. ``neff_cache_dir`` and
    ``precache_node_info`` are accepted: a simulated NEFF has no file.
    """

    def __init__(
        self,
        modes: Sequence[ProfileMode | str] | None = None,
        max_events_per_nc: int | None = None,
        capture_enabled_for_nc: str | None = None,
        profile_output_dir: str | os.PathLike[str] | None = None,
        neff_cache_dir: str | os.PathLike[str] | None = None,
        precache_node_info: bool = True,
        correlate_device_time: bool = False,
        *,
        _with_stack: bool = False,
    ) -> None:
        chosen = (ProfileMode.DEVICE, ProfileMode.RUNTIME) if modes is None else _modes(modes)
        values = {
            "backend": BACKEND,
            "modes": [mode.value for mode in chosen],
            "max_events_per_nc": _max_events(max_events_per_nc),
            "capture_enabled_for_nc": _cores(capture_enabled_for_nc),
            "profile_output_dir": _path("profile_output_dir", profile_output_dir)
            or DEFAULT_OUTPUT_DIR,
            "neff_cache_dir": _path("neff_cache_dir", neff_cache_dir)
            or os.environ.get(CACHE_VARIABLE),
            "precache_node_info": _flag("precache_node_info", precache_node_info),
            "correlate_device_time": _flag("correlate_device_time", correlate_device_time),
            "with_stack": int(_with_stack),
        }
        super().__init__(custom_profiler_config=to_custom_config(values))

    def _value(self, key: str) -> Any:
        return json.loads(self.custom_profiler_config)[key]

    @property
    def modes(self) -> list[ProfileMode]:
        """What is recorded."""
        return [ProfileMode(value) for value in self._value("modes")]

    @property
    def max_events_per_nc(self) -> int:
        """Executions kept for each core."""
        return int(self._value("max_events_per_nc"))

    @property
    def capture_enabled_for_nc(self) -> str | None:
        """The cores to record, as given; None: all."""
        value = self._value("capture_enabled_for_nc")
        return None if value is None else str(value)

    @property
    def profile_output_dir(self) -> str:
        """The folder under which each process makes its own."""
        return str(self._value("profile_output_dir"))

    @property
    def neff_cache_dir(self) -> str | None:
        """As given, or from the environment."""
        value = self._value("neff_cache_dir")
        return None if value is None else str(value)

    @property
    def precache_node_info(self) -> bool:
        """As given."""
        return bool(self._value("precache_node_info"))

    @property
    def correlate_device_time(self) -> bool:
        """As given; simulated host and device share one clock."""
        return bool(self._value("correlate_device_time"))

    def cores(self) -> frozenset[int] | None:
        """The cores to record; None: all."""
        text = self.capture_enabled_for_nc
        return None if text is None else parse_cores(text)

    def __repr__(self) -> str:
        modes = ", ".join(mode.name for mode in self.modes)
        return f"NeuronConfig(modes=[{modes}], profile_output_dir={self.profile_output_dir!r})"


def to_custom_config(values: dict[str, Any]) -> str:
    """A JSON object without the characters that Kineto's reader of options stumbles over."""
    return json.dumps(values).replace("=", "\\u003d").replace("#", "\\u0023")


def _modes(modes: Sequence[ProfileMode | str]) -> tuple[ProfileMode, ...]:
    hint = "choose from ProfileMode." + ", ProfileMode.".join(ProfileMode.__members__)
    if isinstance(modes, str) or not isinstance(modes, Sequence):
        raise ProfileArgumentError(f"modes is no list: {modes!r}", hint=hint)
    values = {mode.value for mode in ProfileMode}
    unknown = [mode for mode in modes if mode not in values]
    if unknown:
        raise ProfileArgumentError(f"no ProfileMode: {unknown[0]!r}", hint=hint)
    chosen = dict.fromkeys(map(ProfileMode, modes))
    if not chosen:
        raise ProfileArgumentError("modes is empty", hint=hint)
    return tuple(chosen)


def _max_events(value: int | None) -> int:
    if value is None:
        return DEFAULT_MAX_EVENTS
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ProfileArgumentError(
            f"max_events_per_nc is no number of events: {value!r}", hint="give 1 or more"
        )
    return value


def _cores(value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ProfileArgumentError(
            f"capture_enabled_for_nc is no text: {value!r}", hint='write it as in "0,2-5"'
        )
    parse_cores(value)
    return value


def _path(name: str, value: str | os.PathLike[str] | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ProfileArgumentError(f"{name} is no path: {value!r}", hint="name a folder")
    return os.fspath(value)


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise ProfileArgumentError(f"{name} is neither True nor False: {value!r}")
    return value
