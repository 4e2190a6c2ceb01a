"""Which simulated device a script runs on: ``--device sim:trn2``, and its activation there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trnscope.errors import TrnscopeError, UnknownHardwareError, UsageError

if TYPE_CHECKING:
    from trnscope.sim.virtual_trace.recording import Recording

PREFIX = "sim:"
CHIPS = ("trn1", "trn2", "trn3", "inf2")
"""Each stands for its smallest instance."""
EXAMPLES = "sim:trn2, sim:trn1, sim:trn3, sim:inf2 or an instance type as in sim:trn2.48xlarge"


@dataclass(frozen=True)
class SimulatedTarget:
    """What to simulate."""

    instance: str
    """An instance type, or a chip: its smallest instance."""
    lnc: int | None = None
    """Physical cores for each logical one; None: the instance's default."""
    numerics: bool = True
    """False: values are not computed, every one is zero."""


def parse_target(device: str, lnc: int | None, *, numerics: bool) -> SimulatedTarget:
    """The target that the options name; unknown hardware raises, and so does a real device."""
    from trnscope.hardware.neuroncore import instance_names, load_instance

    if not device.startswith(PREFIX):
        raise UsageError(
            f"no simulated device: {device}",
            hint="leave --device out, devices that torch has are profiled as they are; "
            f"to simulate, give {EXAMPLES}",
        )
    name = device.removeprefix(PREFIX)
    if not name:
        raise UsageError(f"no simulated device: {device}", hint=f"give {EXAMPLES}")
    if name not in CHIPS and name not in instance_names():
        raise UnknownHardwareError(
            f"no simulated device: {device}",
            f"give one of {', '.join(PREFIX + chip for chip in CHIPS)}, or sim: with an instance "
            f"type: {', '.join(instance_names())}",
        )
    load_instance(name, lnc)
    return SimulatedTarget(name, lnc, numerics)


def activate(target: SimulatedTarget) -> None:
    """Give this process the device; where that fails, the script ends with one line on stderr."""
    from trnscope.sim import activate as activate_device

    try:
        activate_device(target.instance, target.lnc, target.numerics)
    except TrnscopeError as error:
        print(f"trnscope: error: {error}", file=sys.stderr)
        raise SystemExit(1) from error


def simulated_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of torch's profiler, with which a simulated device records virtual time too.

    Python has one hook for profilers: the recording in virtual time takes it, not torch's.
    """
    from trnscope.sim.virtual_trace.device import is_connected

    if not is_connected() or options.get("experimental_config") is not None:
        return dict(options)
    from trnscope.sim.neuronx.config import NeuronConfig

    config = NeuronConfig(_with_stack=bool(options.get("with_stack")))
    return {**options, "with_stack": False, "experimental_config": config}


def virtual_recording() -> Recording | None:
    """What a simulated device recorded beside the torch profile that has just ended."""
    from trnscope.sim.virtual_trace.device import is_connected, take_profiled

    return take_profiled() if is_connected() else None


def write_virtual(recording: Recording, path: Path) -> None:
    """Write a recording as a trace."""
    from trnscope.sim.virtual_trace.trace_json import write_trace

    write_trace(recording, path)


@contextmanager
def still_there(recording: Recording | None) -> Iterator[None]:
    """Let the user's own exporter have the recording too."""
    if recording is None:
        yield
        return
    from trnscope.sim.virtual_trace.device import kept

    with kept(recording):
        yield
