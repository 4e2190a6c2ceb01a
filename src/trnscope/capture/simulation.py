"""Which simulated device a script runs on: ``--device sim:trn2``, and its activation there."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.errors import UsageError

PREFIX = "sim:"
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
    from trnscope.hardware.neuroncore import load_instance

    if not device.startswith(PREFIX) or device == PREFIX:
        raise UsageError(f"no simulated device: {device}", hint=f"give {EXAMPLES}")
    name = device.removeprefix(PREFIX)
    load_instance(name, lnc)
    return SimulatedTarget(name, lnc, numerics)
