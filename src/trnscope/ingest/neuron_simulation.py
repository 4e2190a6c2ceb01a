"""What a Neuron profile says of the machine behind it: which chip, and whether it is a model."""

from __future__ import annotations

import json
import re

from trnscope.errors import UnknownHardwareError

SIMULATION_KEY = "trnscopeSimulation"
"""Member of a source's metadata that names the model behind simulated times."""

_FAMILY = re.compile(r"(trn\d|inf\d)[a-z]*\.")


def simulation_text(model: str) -> str:
    """The member's value."""
    return json.dumps({"model": model})


def chip_title(instance_type: str) -> str:
    """The chip of an instance type (``trn2.48xlarge``), or the type where it is not known."""
    from trnscope.hardware import chips

    family = _FAMILY.match(instance_type)
    if family is None:
        return instance_type
    try:
        return chips.find(family[1]).title
    except UnknownHardwareError:
        return instance_type
