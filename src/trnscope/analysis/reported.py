"""Figures that a profiler worked out itself and wrote into its file (MFU, bytes, engine times)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_METADATA_KEY = "neuronFigures"


@dataclass(frozen=True)
class ReportedFigures:
    """One block of figures, by the profiler's names in trnscope's units."""

    source: int
    """Index of the trace in the profile."""
    rank: int | None
    of: str
    """What they are of: a device, or the profiler's name of a program; may be empty."""
    figures: tuple[tuple[str, int | float], ...]
    """Ratios 0-1 (``_ratio``), times in ns (``_ns``), the rest as the profiler counts it."""

    def to_json(self) -> dict[str, object]:
        """Its fields."""
        return {
            "source": self.source,
            "rank": self.rank,
            "of": self.of,
            "figures": dict(self.figures),
        }


def reported_figures(profile: Profile) -> tuple[ReportedFigures, ...]:
    """What the files of a profile say of themselves; mostly nothing."""
    return tuple(
        block for source, trace in enumerate(profile.traces) for block in _blocks(trace, source)
    )


def _blocks(trace: Trace, source: int) -> list[ReportedFigures]:
    text = trace.source.metadata.get(_METADATA_KEY)
    if text is None:
        return []
    return [
        ReportedFigures(
            source, trace.source.rank, block["of"], tuple(sorted(block["figures"].items()))
        )
        for block in json.loads(text)
    ]
