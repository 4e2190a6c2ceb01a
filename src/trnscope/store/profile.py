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

    @property
    def simulated_by(self) -> str | None:
        """The hardware models behind simulated times; absent when all times are measured."""
        models = {name for trace in self.traces for name in _models(trace)}
        return ", ".join(sorted(models)) or None

    @property
    def is_virtual(self) -> bool:
        """Whether all times are simulated, those of the host too."""
        return all(trace.source.is_virtual for trace in self.traces)


def _models(trace: Trace) -> set[str]:
    if trace.source.simulated_by is not None:
        return {trace.source.simulated_by}
    devices = [track.device for track in trace.tracks if track.device is not None]
    named = {device.name or "model not named" for device in devices if device.simulated}
    return named or ({"model not named"} if trace.source.simulated else set())
