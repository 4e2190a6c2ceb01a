"""Where a trace came from and what its header says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from trnscope.model.health import HealthWarning


@dataclass(frozen=True)
class TraceSource:
    """The file behind one trace.

    ``base_time_ns`` was already added to every time. ``epoch`` says whether times count
    from the Unix epoch (they can then be compared with another file of the same clock) or
    from an arbitrary zero. ``metadata`` holds the header's other keys as JSON text.
    """

    path: str
    format: str
    """``kineto``, ``chrome``, ``nsys`` ...; ``.gz`` is no format of its own."""
    num_events: int
    rank: int | None = None
    """As the header gives it, else as the file's present name does."""
    world_size: int | None = None
    base_time_ns: int = 0
    epoch: bool = False
    simulated: bool = False
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def simulated_by(self) -> str | None:
        """The hardware model behind the times, where the header names it: ``trn2 model v1``."""
        model = self._simulation().get("model")
        return model if isinstance(model, str) else None

    @property
    def is_virtual(self) -> bool:
        """Whether the host's times are simulated too, on one clock with the device's."""
        return self._simulation().get("clock") == "virtual"

    def _simulation(self) -> Mapping[str, object]:
        try:
            found = json.loads(self.metadata.get("trnscopeSimulation", "null"))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class SourcePlace:
    """What the place of a source tells beside its content; never kept with its index."""

    members: tuple[Path, ...] = ()
    """The files of a source that is a folder."""
    rank: int | None = None
    """Counts where the source itself names none."""
    warnings: tuple[HealthWarning, ...] = ()


_RANK_IN_NAME = re.compile(r"(?:^|[^a-z0-9])rank[-_=.]?(\d{1,6})(?=[^a-z0-9]|$)", re.IGNORECASE)


def rank_in_file_name(path: Path) -> int | None:
    """The rank that the file's name gives, where it gives exactly one (``rank-34.``)."""
    ranks = {int(digits) for digits in _RANK_IN_NAME.findall(path.name)}
    return ranks.pop() if len(ranks) == 1 else None
