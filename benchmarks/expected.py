"""The exact answers for a generated trace: written beside it, compared with what readers say."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

GENERATOR_VERSION = 2
"""Raised whenever the generator's traces or answers change."""

Sums = dict[str, tuple[int, int]]
"""Count and total ns by name."""


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
    """All slices."""
    calls: tuple[Group, ...]
    """Host slices as torch's table counts them: the only child of a slice of its name is one
    call with it."""

    def save(self, trace: Path) -> None:
        """Write the answers beside their trace."""
        answers_path(trace).write_text(json.dumps(asdict(self)))


def answers_path(trace: Path) -> Path:
    """Where the answers of a trace lie."""
    return trace.with_suffix(".expected.json")


def load_expected(trace: Path) -> Expected | None:
    """The answers stored beside a trace; None where there are none of this version."""
    path = answers_path(trace)
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    if stored["generator"] != GENERATOR_VERSION:
        return None
    groups, calls = (
        tuple(Group(**group) for group in stored.pop(key)) for key in ("groups", "calls")
    )
    return Expected(**stored, groups=groups, calls=calls)


def sums(groups: Iterable[Group], categories: Collection[str] | None = None) -> Sums:
    """Count and total ns by name, over groups of some or all categories.

    All steps are one name, ``ProfilerStep*``, as in torch's table.
    """
    found: Sums = {}
    for group in groups:
        if categories is None or group.category in categories:
            name = "ProfilerStep*" if group.name.startswith("ProfilerStep#") else group.name
            count, total = found.get(name, (0, 0))
            found[name] = (count + group.count, total + group.total_ns)
    return found
