"""A Trainium without the chip: the device "neuron" of PyTorch, its profiler and its cost model.

:func:`activate` gives the process the device; torch is imported by that call, not before.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trnscope.sim.activation import ActiveDevice

__all__ = ["activate", "is_active"]


def activate(
    instance: str = "trn2.3xlarge", lnc: int | None = None, numerics: bool = True
) -> ActiveDevice:
    """Give this process the device "neuron"; see :mod:`trnscope.sim.activation`."""
    from trnscope.sim import activation

    return activation.activate(instance, lnc, numerics)


def is_active() -> bool:
    """Whether this process has the simulated device."""
    module = sys.modules.get("trnscope.sim.activation")
    return module is not None and bool(module.is_active())
