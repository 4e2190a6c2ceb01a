"""Workload files: which rows of a table of measurements are what work, in which mode."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.accuracy import op_lists, tile_programs
from benchmarks.accuracy.expressions import Sizes, evaluate, whole
from benchmarks.accuracy.problems import InputProblem, in_file
from trnscope.sim.cost.program import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Workload:
    """One entry of a file."""

    name: str
    block: str
    mode: str
    """What is predicted: see ``predict.MODES``."""
    instance: str
    lnc: int | None
    ids: tuple[int, ...]
    match: Mapping[str, str]
    """Columns of a measured row and what they must equal, where no ids are given."""
    fitted: bool
    """A constant was fitted on these rows."""
    follows_counters: bool
    """It is described after the engine times and byte counts of the rows' own source."""
    sizes: Sizes
    raw: Mapping[str, Any]
    lists: Mapping[str, str] = field(default_factory=dict)

    def program(self) -> Program:
        """The tile program."""
        steps, tiles = self.raw["steps"], self.raw.get("tiles", [])
        return tile_programs.program(self.name, tiles, steps, self.sizes)

    def sections(self, key: str = "sections") -> tuple[op_lists.Section, ...]:
        """The ops, in sections that are repeated; ``after``: eager ones that follow a graph."""
        dtype = str(self.raw.get("dtype", "bfloat16"))
        return tuple(
            op_lists.Section(
                op_lists.parse(self.lists.get(part["ops"], part["ops"]), self.sizes, dtype),
                whole(part.get("repeat", 1), self.sizes),
                str(part.get("carry", "")),
            )
            for part in self.raw.get(key, ())
        )

    def number(self, key: str, default: float = 0.0) -> float:
        """A number or expression of the entry."""
        return evaluate(self.raw.get(key, default), self.sizes)


def load(path: Path) -> list[Workload]:
    """Every workload of a file, one for each case; raises :class:`InputProblem` for a bad file."""
    tables = _tables(path)
    lists = tables.get("ops", {})
    programs = tables.get("program", {})
    entries = enumerate(tables.get("workload", []), start=1)
    return [
        one for number, entry in entries for one in _entry(path, number, entry, lists, programs)
    ]


def _entry(
    path: Path,
    number: int,
    entry: Mapping[str, Any],
    lists: Mapping[str, str],
    programs: Mapping[str, Mapping[str, Any]],
) -> list[Workload]:
    """An entry's workloads."""
    try:
        base = {**programs.get(entry.get("program", ""), {}), **entry}
        return [_workload({**base, **case}, lists) for case in entry.get("case", [{}])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        name = entry.get("name", "") if isinstance(entry, dict) else ""
        raise in_file(path, f"workload {number} {name!r}", error) from None


def _tables(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputProblem(f"{path}: is no TOML file ({error})") from None


def left_out_rules(path: Path) -> list[Mapping[str, Any]]:
    """Rows of a table that a file says are not compared, with the reason."""
    rules = list(_tables(path).get("left_out", []))
    for number, rule in enumerate(rules, start=1):
        if "reason" not in rule:
            raise in_file(path, f"left_out {number}", "it gives no reason")
    return rules


def _workload(entry: Mapping[str, Any], lists: Mapping[str, str]) -> Workload:
    sizes: dict[str, float] = {}
    for key, text in {**entry.get("sizes", {}), **entry.get("vary", {})}.items():
        sizes[key] = evaluate(text, sizes)
    return Workload(
        entry["name"],
        entry["block"],
        entry["mode"],
        entry["instance"],
        entry.get("lnc"),
        tuple(entry.get("ids", ())),
        entry.get("match", {}),
        bool(entry.get("fitted", False)),
        bool(entry.get("follows_counters", False)),
        sizes,
        entry,
        lists,
    )
