"""Tables of measurements: one row a figure, with what was run, where and by whom."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REQUIRED = ("id", "workload", "shape", "metric", "value", "unit")


@dataclass(frozen=True)
class Row:
    """One measured figure."""

    id: int
    workload: str
    shape: str
    metric: str
    value: float
    unit: str
    columns: Mapping[str, str]
    """Every column as text."""

    @property
    def tier(self) -> str:
        """A: acceptance test, B: upper bound, C: calibration; empty where not stated."""
        return self.columns.get("tier", "")

    def matches(self, wanted: Mapping[str, str]) -> bool:
        """Every named column holds the text; a ``*`` at its end stands for any ending."""
        return all(_equal(self.columns.get(key, ""), text) for key, text in wanted.items())


def _equal(value: str, wanted: str) -> bool:
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted


def read(path: Path) -> list[Row]:
    """Every row of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_row(columns) for columns in csv.DictReader(file)]


def _row(columns: dict[str, str]) -> Row:
    return Row(
        int(columns["id"]),
        columns["workload"],
        columns["shape"],
        columns["metric"],
        float(columns["value"]),
        columns["unit"],
        columns,
    )
