"""``torch_neuronx`` on the simulated device: what scripts import under that name.

Only while the simulated device is active and the real package is not installed. Everything about
devices, streams and memory is ``torch.neuron``'s own.
"""

from __future__ import annotations

from typing import Any

import torch

from trnscope.sim.neuronx.api import profiling
from trnscope.sim.neuronx.op_tracking import clear_op_tracking, get_executed_ops, get_fallback_ops

__version__ = "0.0+trnscope.simulated"
is_simulated = True
"""No part of the real package has it."""

_DELEGATED = frozenset(
    {
        "synchronize",
        "Stream",
        "Event",
        "stream",
        "current_stream",
        "default_stream",
        "set_stream",
        "device_count",
        "current_device",
        "set_device",
        "is_available",
        "manual_seed",
        "manual_seed_all",
        "memory_stats",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "reset_peak_memory_stats",
        "reset_accumulated_memory_stats",
        "memory_summary",
        "empty_cache",
    }
)


def is_neuron_runtime_initialized() -> bool:
    """Whether the device has been used or set up."""
    return bool(_neuron().is_initialized())


def _neuron() -> Any:
    return getattr(torch, "neuron")  # noqa: B009 (torch does not declare it)


def __getattr__(name: str) -> Any:
    if name in _DELEGATED:
        return getattr(_neuron(), name)
    raise AttributeError(f"the simulated torch_neuronx has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_DELEGATED})


__all__ = [
    "clear_op_tracking",
    "get_executed_ops",
    "get_fallback_ops",
    "is_neuron_runtime_initialized",
    "is_simulated",
    "profiling",
]
