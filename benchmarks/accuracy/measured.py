"""Tables of measurements: one row a figure, with what was run, where and by whom."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.problems import InputProblem, in_file

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
    wanted = str(wanted)
    return value.startswith(wanted[:-1]) if wanted.endswith("*") else value == wanted


def read(path: Path) -> list[Row]:
    """Every row of a CSV file; raises :class:`InputProblem` where one cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
            if missing:
                raise InputProblem(f"{path}: has no column {missing[0]!r}")
            return [_row_at(path, reader.line_num, columns) for columns in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputProblem(f"{path}: is no CSV file in UTF-8 ({error})") from None


def _row_at(path: Path, line: int, columns: dict[str, str]) -> Row:
    try:
        return _row(columns)
    except (TypeError, ValueError) as error:
        raise in_file(path, f"line {line}", error) from None


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
