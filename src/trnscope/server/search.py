"""Slices by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trnscope.analysis.time_axis import TimeAxis
from trnscope.server.slices import SliceFinder, SliceRef
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.tables import I64

MAX_NAMES = 50
MAX_SLICES = 500


@dataclass(frozen=True)
class Found:
    """The answer to a search: how often, under which names, and where first."""

    query: str
    num_slices: int
    num_names: int
    names: tuple[tuple[str, int], ...]
    """The most frequent names, and how many slices have each."""
    slices: tuple[SliceRef, ...]
    """The first in time."""

    def to_json(self) -> dict[str, object]:
        """The document of the search box."""
        return {
            "schema": 1,
            "query": self.query,
            "num_slices": self.num_slices,
            "num_names": self.num_names,
            "names": [{"name": name, "count": count} for name, count in self.names],
            "slices": [found.to_json() for found in self.slices],
        }


class Searcher:
    """Searches the names of a profile's slices; case does not count."""

    def __init__(self, profile: Profile, axis: TimeAxis, finder: SliceFinder) -> None:
        self._traces = profile.traces
        self._zeros_ns = axis.zeros_ns
        self._finder = finder

    @cached_property
    def _names(self) -> tuple[_Names, ...]:
        return tuple(_Names(trace) for trace in self._traces)

    def search(self, query: str) -> Found:
        """Slices whose name contains ``query``."""
        counts: dict[str, int] = {}
        first: list[tuple[int, int, int]] = []
        for source, names in enumerate(self._names):
            matching = names.matching(query.casefold())
            for name, count in names.counted(matching):
                counts[name] = counts.get(name, 0) + count
            first += [
                (start - self._zeros_ns[source], source, slice_id)
                for start, slice_id in names.first_slices(matching)
            ]
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return Found(
            query=query,
            num_slices=sum(counts.values()),
            num_names=len(counts),
            names=tuple(ranked[:MAX_NAMES]),
            slices=tuple(
                self._finder.ref(source, slice_id)
                for _, source, slice_id in sorted(first)[:MAX_SLICES]
            ),
        )


class _Names:
    """The names that the slices of one trace have."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._count: I64 = np.bincount(trace.slices.name, minlength=1).astype(np.int64)
        self._used = np.flatnonzero(self._count)
        self._folded = [text.casefold() for text in trace.strings.take(self._used)]

    def matching(self, folded: str) -> I64:
        """String ids of the names that contain a text."""
        if not folded:
            return np.empty(0, np.int64)
        hits = [at for at, text in enumerate(self._folded) if folded in text]
        return self._used[hits].astype(np.int64)

    def counted(self, names: I64) -> Iterator[tuple[str, int]]:
        """Each name and how many slices have it."""
        return zip(self._trace.strings.take(names), self._count[names].tolist(), strict=True)

    def first_slices(self, names: I64) -> Iterator[tuple[int, int]]:
        """Start and id of the first slices that have one of these names."""
        wanted = np.zeros(self._count.size, np.bool_)
        wanted[names] = True
        ids = np.flatnonzero(wanted[self._trace.slices.name])
        start = self._trace.slices.start_ns[ids]
        first = np.argsort(start, kind="stable")[:MAX_SLICES]
        return zip(start[first].tolist(), ids[first].tolist(), strict=True)
