"""What ``import torch`` runs: nothing, unless ``TRNSCOPE_SIM`` names an instance to simulate."""

from __future__ import annotations

import os
import sys

VARIABLE = "TRNSCOPE_SIM"
"""An instance type or a chip: ``trn2.3xlarge``, ``trn2``."""


def autoload() -> None:
    """Give the process the device that the environment asks for."""
    instance = os.environ.get(VARIABLE)
    if not instance or "trnscope.sim.activation" in sys.modules:
        return
    from trnscope.errors import TrnscopeError
    from trnscope.sim.activation import activate

    try:
        activate(instance)
    except TrnscopeError as error:  # torch would hide it in a traceback of its own
        sys.stderr.write(f"trnscope: {VARIABLE}={instance}: {error}\n")
        raise SystemExit(1) from None
