"""The exact answers for a generated trace: written beside it, compared with what readers say."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Group:
    """Slices with the same category and name."""

    category: str
    name: str
    count: int
    total_ns: int


@dataclass(frozen=True)
class Expected:
    """What a reader of the generated file must find."""

    generator: int
    layout: str
    seed: int
    num_bytes: int
    num_events: int
    num_slices: int
    num_steps: int
    groups: tuple[Group, ...]

    def sums(self, *categories: str) -> dict[str, tuple[int, int]]:
        """Count and total ns by name, over the slices of these categories."""
        sums: dict[str, tuple[int, int]] = {}
        for group in self.groups:
            if group.category in categories:
                count, total = sums.get(group.name, (0, 0))
                sums[group.name] = (count + group.count, total + group.total_ns)
        return sums

    def save(self, trace: Path) -> None:
        """Write the answers beside their trace."""
        answers_path(trace).write_text(json.dumps(asdict(self)))


def answers_path(trace: Path) -> Path:
    """Where the answers of a trace lie."""
    return trace.with_suffix(".expected.json")


def load_expected(trace: Path) -> Expected | None:
    """The answers stored beside a trace; None where there are none."""
    path = answers_path(trace)
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    groups = tuple(Group(**group) for group in stored.pop("groups"))
    return Expected(**stored, groups=groups)
