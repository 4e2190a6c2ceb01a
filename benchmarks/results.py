"""What one run of the benchmark measured, as the page that ``docs/benchmarks.md`` holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One reader on one file; the figures are medians over the rounds."""

    reader: str
    file: str
    json_bytes: int
    seconds: Sequence[float]
    cpu_seconds: Sequence[float]
    peak_bytes: int

    @property
    def median_seconds(self) -> float:
        """Median wall time of the whole process."""
        return median(self.seconds)

    @property
    def bytes_per_second(self) -> float:
        """JSON bytes over median wall time."""
        return self.json_bytes / self.median_seconds


@dataclass(frozen=True)
class Goal:
    """A figure that is needed, and what this run measured."""

    what: str
    measured: float
    needed: float
    aim: float | None
    unit: str
    at_least: bool

    @property
    def state(self) -> str:
        """``missed``, ``needed met`` or ``aim met``."""
        if not self._reached(self.needed):
            return "missed"
        return "met" if self.aim is None or not self._reached(self.aim) else "aim met"

    def _reached(self, limit: float) -> bool:
        return self.measured >= limit if self.at_least else self.measured <= limit

    def cells(self) -> list[str]:
        """The goal as a row of a table."""
        sign = "≥" if self.at_least else "≤"
        aim = "" if self.aim is None else f"{sign} {self._text(self.aim)}"
        needed = f"{sign} {self._text(self.needed)}"
        return [self.what, f"**{self._text(self.measured)}**", needed, aim, self.state]

    def _text(self, value: float) -> str:
        digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
        return f"{value:.{digits}f}{self.unit}"


@dataclass
class Results:
    """Everything that one run measured."""

    machine: list[tuple[str, str]]
    rounds: int
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def markdown(self) -> str:
        """The tables of the page."""
        parts = [
            _table(["machine", ""], [list(fact) for fact in self.machine]),
            _table(
                ["reader", "file", "wall s", "rounds", "CPU s", "MB/s of JSON", "peak MB"],
                [
                    [
                        row.reader,
                        f"{row.file} ({row.json_bytes / 1e6:.0f} MB)",
                        f"{row.median_seconds:.2f}",
                        " ".join(f"{seconds:.2f}" for seconds in row.seconds),
                        f"{median(row.cpu_seconds):.2f}",
                        f"{row.bytes_per_second / 1e6:.0f}",
                        f"{row.peak_bytes / 1e6:.0f}",
                    ]
                    for row in self.rows
                ],
            ),
            "\n".join(f"- {note}" for note in self.notes),
        ]
        if self.goals:
            goals = [goal.cells() for goal in self.goals]
            parts.append(_table(["goal", "measured", "needed", "aim", ""], goals))
        return "\n\n".join(part for part in parts if part)


def median(values: Sequence[float]) -> float:
    """The middle value; the mean of the middle two."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
