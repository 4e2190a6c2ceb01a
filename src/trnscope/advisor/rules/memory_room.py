"""How full the device's memory got, where the trace tells both sides."""

from __future__ import annotations

from trnscope.analysis.device_properties import smallest
from trnscope.analysis.memory import memory
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


def used_share(trace: Trace) -> float | None:
    """The most that any device's allocator had reserved (else handed out), over the device's
    memory; absent where memory was not recorded or the device's size is not in the trace."""
    capacity = smallest(trace, "totalGlobalMem")
    if capacity is None:
        return None
    peaks = [
        one.peak_bytes if one.reserved is None else one.reserved.peak_bytes
        for one in memory(Profile((trace,))).devices
        if not one.device.startswith("cpu")
    ]
    return max(peaks) / capacity if peaks else None
