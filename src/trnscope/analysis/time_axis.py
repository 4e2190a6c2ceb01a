"""One axis for the times of all traces of a profile."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.analysis.span import work_window
from trnscope.store.profile import Profile


@dataclass(frozen=True)
class TimeAxis:
    """Where each trace's zero lies, and how long the axis is. Times in ns."""

    zeros_ns: tuple[int, ...]
    """For each trace the time that is 0 on the axis."""
    length_ns: int
    """The last end of real work on the axis; the same as the summary's ``span_ns``."""
    is_common: bool
    """Whether the traces share one clock; else each begins at 0 and they cannot be compared."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "zeros_ns": list(self.zeros_ns),
            "length_ns": self.length_ns,
            "is_common": self.is_common,
        }


def time_axis(profile: Profile) -> TimeAxis:
    """The axis from the first start to the last end of real work.

    Files whose times all count from the Unix epoch share one zero; others each have their own.
    """
    windows = [work_window(trace) or (0, 0) for trace in profile.traces]
    real = [window for window in windows if window != (0, 0)]
    is_common = len(profile.traces) == 1 or all(trace.source.epoch for trace in profile.traces)
    if not real:
        return TimeAxis(tuple(0 for _ in windows), 0, is_common)
    if is_common:
        zero = min(start for start, _ in real)
        return TimeAxis(tuple(zero for _ in windows), max(end for _, end in real) - zero, is_common)
    return TimeAxis(
        tuple(start for start, _ in windows), max(end - start for start, end in real), is_common
    )
