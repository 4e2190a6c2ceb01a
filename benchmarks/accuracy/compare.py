"""Errors of the model by block: every measured row is compared or left out with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.accuracy.measured import Row
from benchmarks.accuracy.metrics import NoMetricError, is_timing, value
from benchmarks.accuracy.predict import Prediction, predict
from benchmarks.accuracy.workloads import Workload

NO_WORKLOAD = "no workload describes it"


@dataclass(frozen=True)
class Compared:
    """A measured figure and the model's."""

    name: str
    block: str
    measured: float
    predicted: float
    unit: str
    metric: str
    tier: str
    fitted: bool
    row_id: int | None = None
    follows_counters: bool = False

    @property
    def error(self) -> float:
        """Relative to the measured value, signed."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


@dataclass(frozen=True)
class LeftOut:
    """A row that is not compared."""

    row: Row
    reason: str


@dataclass(frozen=True)
class Comparison:
    """All rows of a table."""

    compared: tuple[Compared, ...]
    left_out: tuple[LeftOut, ...]

    def block(self, name: str) -> list[Compared]:
        """The compared rows of one block."""
        return [row for row in self.compared if row.block == name]

    def blocks(self) -> list[str]:
        """Names of the blocks, in order of appearance."""
        return list(dict.fromkeys(row.block for row in self.compared))


def compare(
    rows: Sequence[Row], workloads: Sequence[Workload], rules: Sequence[Mapping[str, object]]
) -> Comparison:
    """Every row by the first workload that names it."""
    found: list[Compared] = []
    left: list[LeftOut] = []
    predictions: dict[int, Prediction] = {}
    for row in rows:
        index = _workload(row, workloads)
        if index is None:
            left.append(LeftOut(row, _reason(row, rules)))
            continue
        workload = workloads[index]
        if index not in predictions:
            predictions[index] = predict(workload)
        one = _compared(row, workload, predictions[index])
        if isinstance(one, LeftOut):
            left.append(one)
        else:
            found.append(one)
    return Comparison((*found, *_ratios(workloads, found)), tuple(left))


def _compared(row: Row, workload: Workload, prediction: Prediction) -> Compared | LeftOut:
    try:
        predicted = value(row.metric, row.unit, workload, prediction)
    except NoMetricError as error:
        return LeftOut(row, str(error))
    block = workload.block if is_timing(row.metric, row.unit) else f"{workload.block}: counters"
    if not row.value:
        return LeftOut(row, "measured as zero: no relative error")
    return Compared(
        f"{row.workload} {row.shape}",
        block,
        row.value,
        predicted,
        row.unit,
        row.metric.split(" ")[0],
        row.tier,
        workload.fitted,
        row.id,
        workload.follows_counters,
    )


def _workload(row: Row, workloads: Sequence[Workload]) -> int | None:
    for index, workload in enumerate(workloads):
        if row.id in workload.ids or (workload.match and row.matches(workload.match)):
            return index
    return None


def _reason(row: Row, rules: Sequence[Mapping[str, object]]) -> str:
    for rule in rules:
        ids, match = rule.get("ids", ()), rule.get("match")
        named = isinstance(ids, list) and row.id in ids
        if named or (isinstance(match, dict) and row.matches(match)):
            return str(rule["reason"])
    return NO_WORKLOAD


def _ratios(workloads: Sequence[Workload], rows: Sequence[Compared]) -> list[Compared]:
    """Eager over compiled, for workloads that name the same pair."""
    pairs: dict[str, dict[str, Compared]] = {}
    for workload in workloads:
        pair = workload.raw.get("pair")
        if not pair:
            continue
        for row in rows:
            if row.row_id in workload.ids:
                pairs.setdefault(str(pair), {})[workload.mode] = row
    found = []
    for name, modes in pairs.items():
        eager, compiled = modes.get("eager"), modes.get("compiled")
        if eager is None or compiled is None:
            continue
        found.append(
            Compared(
                f"{name}: eager / compiled",
                "eager/compiled ratios",
                eager.measured / compiled.measured,
                eager.predicted / compiled.predicted,
                "ratio",
                "ratio",
                eager.tier,
                eager.fitted or compiled.fitted,
            )
        )
    return found
