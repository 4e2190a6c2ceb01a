"""A profile: the traces of one job, one a file."""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.store.reader import Trace


@dataclass(frozen=True)
class Profile:
    """One or several opened traces; several are ranks when each says so."""

    traces: tuple[Trace, ...]

    @property
    def is_multi_rank(self) -> bool:
        """Whether the files are distinct ranks of one job, by their own word."""
        ranks = [trace.source.rank for trace in self.traces]
        return len(ranks) > 1 and None not in ranks and len(set(ranks)) == len(ranks)

    @property
    def num_events(self) -> int:
        """Events read, over all files."""
        return sum(trace.source.num_events for trace in self.traces)
