"""Which ops ran on the device and which fell back to the CPU, since the last clear."""

from __future__ import annotations

from trnscope.sim.virtual_trace.device import connected
from trnscope.sim.virtual_trace.recording import LaunchKind

_TRACKED = (LaunchKind.KERNEL, LaunchKind.GRAPH)
_before: dict[int, int] = {}
"""Launches of each signature at the last clear."""


def get_executed_ops() -> list[str]:
    """Names of the ops and compiled graphs that ran on the device, sorted."""
    return _names(on_cpu=False)


def get_fallback_ops() -> list[str]:
    """Names of the ops that fell back to the CPU, sorted."""
    return _names(on_cpu=True)


def clear_op_tracking() -> None:
    """Start anew."""
    _before.clear()
    _before.update((row[0], row[3]) for row in connected().extension.executions())


def _names(*, on_cpu: bool) -> list[str]:
    return sorted(
        {
            name
            for signature, name, kind, launches, is_on_cpu in connected().extension.executions()
            if kind in _TRACKED and is_on_cpu == on_cpu and launches > _before.get(signature, 0)
        }
    )
