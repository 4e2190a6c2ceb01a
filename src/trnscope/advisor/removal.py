"""What a rule supposes gone: host time, device work, waits. The replay runs without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32


def _no_ids() -> U32:
    return np.empty(0, np.uint32)


@dataclass(frozen=True, eq=False, repr=False)
class HostCut:
    """Time of one host thread, and the share of it that goes."""

    track: int
    time: Intervals
    share: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class DeviceCut:
    """Device work, and the share of its duration that goes."""

    slices: U32
    """Slice ids, rising."""
    share: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Removal:
    """A cause, as the time that it takes. Time in two cuts goes once, by the larger share."""

    host: tuple[HostCut, ...] = ()
    device: tuple[DeviceCut, ...] = ()
    waits: U32 = field(default_factory=_no_ids)
    """Slice ids, rising, of host calls that need not wait any more."""

    def scaled(self, share: float) -> Removal:
        """The same, with only this share of each cut; waits go all the same."""
        return replace(
            self,
            host=tuple(replace(cut, share=cut.share * share) for cut in self.host),
            device=tuple(replace(cut, share=cut.share * share) for cut in self.device),
        )

    def plus(self, other: Removal) -> Removal:
        """Both."""
        return Removal(
            self.host + other.host,
            self.device + other.device,
            np.union1d(self.waits, other.waits).astype(np.uint32),
        )

    def without(self, other: Removal) -> Removal:
        """What is not in ``other``, whatever share of it that removes."""
        host = tuple(
            replace(
                cut, time=_minus(cut.time, [o.time for o in other.host if o.track == cut.track])
            )
            for cut in self.host
        )
        taken = [cut.slices for cut in other.device]
        device = tuple(replace(cut, slices=_without_ids(cut.slices, taken)) for cut in self.device)
        return Removal(host, device, _without_ids(self.waits, [other.waits]))

    @property
    def host_ns(self) -> int:
        """Host time in it, whole."""
        return sum(cut.time.total for cut in self.host)


def _minus(time: Intervals, others: Sequence[Intervals]) -> Intervals:
    for other in others:
        time = time.subtract(other)
    return time


def _without_ids(ids: U32, others: Sequence[U32]) -> U32:
    for other in others:
        ids = np.setdiff1d(ids, other, assume_unique=True).astype(np.uint32)
    return ids
