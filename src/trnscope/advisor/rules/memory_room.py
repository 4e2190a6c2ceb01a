"""How full the device's memory got, where the trace tells both sides."""

from __future__ import annotations

import json

from trnscope.analysis.memory import memory
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


def used_share(trace: Trace) -> float | None:
    """The most that any device's allocator had reserved (else handed out), over the device's
    memory; absent where memory was not recorded or the device's size is not in the trace."""
    capacity = _capacity(trace)
    if capacity is None:
        return None
    peaks = [
        one.peak_bytes if one.reserved is None else one.reserved.peak_bytes
        for one in memory(Profile((trace,))).devices
        if not one.device.startswith("cpu")
    ]
    return max(peaks) / capacity if peaks else None


def _capacity(trace: Trace) -> int | None:
    """Bytes of the smallest device that the trace describes."""
    try:
        described = json.loads(trace.source.metadata.get("deviceProperties", "[]"))
    except ValueError:
        return None
    if not isinstance(described, list):
        return None
    sizes = [one.get("totalGlobalMem") for one in described if isinstance(one, dict)]
    known = [int(size) for size in sizes if isinstance(size, int) and size > 0]
    return min(known) if known else None
