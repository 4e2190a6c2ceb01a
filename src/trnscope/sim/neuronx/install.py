"""Puts the stand-ins for ``torch_neuronx`` where ``import`` finds them, and takes them away."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType

from trnscope.sim.neuronx.inspect_capture import start_from_environment

PACKAGE = "torch_neuronx"
_STAND_INS = {
    PACKAGE: "trnscope.sim.neuronx.api",
    f"{PACKAGE}.profiling": "trnscope.sim.neuronx.api.profiling",
}


def is_real_installed() -> bool:
    """Whether the vendor's package is there: then it is used, and the simulator stays away."""
    return importlib.machinery.PathFinder.find_spec(PACKAGE) is not None


def install() -> bool:
    """Install the stand-ins, and record where the environment asks for it.

    Returns whether the stand-ins are used.
    """
    if is_real_installed():
        return False
    for name, module in _STAND_INS.items():
        sys.modules[name] = importlib.import_module(module)
    start_from_environment()
    return True


def remove() -> None:
    """Take the stand-ins away again."""
    for name, module in _STAND_INS.items():
        if _is_stand_in(sys.modules.get(name), module):
            del sys.modules[name]


def _is_stand_in(module: ModuleType | None, name: str) -> bool:
    return module is not None and module.__name__ == name
