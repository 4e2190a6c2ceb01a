"""Block by block: mean absolute error, bias, worst rows; as text and as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accuracy.compare import Compared, Comparison

GOALS = {
    "fully specified kernels": 0.10,
    "forwards, batch 1": 0.10,
    "forwards, batch 8": 0.20,
    "eager/compiled ratios": 0.20,
    "collectives": 0.10,
}
BOUND = "upper bounds"
NUM_WORST = 12


@dataclass(frozen=True)
class BlockError:
    """Errors of one block."""

    name: str
    num_rows: int
    mean_absolute: float
    median_absolute: float
    bias: float
    num_held_out: int
    held_out: float | None
    """Mean absolute error of rows on which no constant was fitted."""
    goal: float | None

    @property
    def is_met(self) -> bool | None:
        """The goal is met on all rows; None: there is no goal."""
        return None if self.goal is None else self.mean_absolute <= self.goal

    @property
    def is_met_held_out(self) -> bool | None:
        """The goal is met on the rows that decided nothing."""
        if self.goal is None or self.held_out is None:
            return None
        return self.held_out <= self.goal


def block_error(name: str, rows: Sequence[Compared]) -> BlockError:
    """Of the rows of a block."""
    errors = [row.error for row in rows]
    absolute = sorted(abs(error) for error in errors)
    held = [abs(row.error) for row in rows if not row.fitted]
    return BlockError(
        name,
        len(rows),
        sum(absolute) / len(absolute),
        absolute[len(absolute) // 2],
        sum(errors) / len(errors),
        len(held),
        sum(held) / len(held) if held else None,
        GOALS.get(name),
    )


def errors(comparison: Comparison) -> list[BlockError]:
    """Of every block, those with a goal first."""
    names = [name for name in comparison.blocks() if not name.startswith(BOUND)]
    order = [*GOALS, *(name for name in names if name not in GOALS)]
    return [
        block_error(name, rows)
        for name in order
        if name in names and (rows := comparison.block(name))
    ]


def bounds(comparison: Comparison) -> tuple[int, int]:
    """Rows that state an upper bound: how many hold (and are not below a quarter of it), of all."""
    rows = comparison.block(BOUND)
    return sum(1 for row in rows if row.measured / 4 < row.predicted <= row.measured), len(rows)


def text(comparison: Comparison) -> str:
    """For the terminal."""
    lines = [
        f"{'block':34} {'rows':>5} {'MAE':>7} {'median':>7} {'bias':>7}"
        f" {'held out':>14} {'goal':>6}"
    ]
    for block in errors(comparison):
        held = "" if block.held_out is None else f"{block.held_out:.1%} ({block.num_held_out})"
        goal = "" if block.goal is None else f"{block.goal:.0%}"
        lines.append(
            f"{block.name:34} {block.num_rows:5} {block.mean_absolute:7.1%}"
            f" {block.median_absolute:7.1%} {block.bias:+7.1%} {held:>14} {goal:>6}"
        )
    good, total = bounds(comparison)
    if total:
        lines.append(f"upper bounds held (and above a quarter of them): {good} of {total}")
    lines += ["", f"worst rows ({NUM_WORST} of those with a goal):"]
    for row in worst(comparison):
        lines.append(
            f"  {row.error:+7.1%}  {row.name} [{row.metric}]: {row.predicted:.4g} for"
            f" {row.measured:.4g} {row.unit}"
        )
    lines += ["", f"{num_rows(comparison)} rows compared, {len(comparison.left_out)} left out:"]
    lines += [f"  {count:4} {reason}" for reason, count in reasons(comparison)]
    return "\n".join(lines)


def num_rows(comparison: Comparison) -> int:
    """Rows of the table that were compared."""
    return len({row.row_id for row in comparison.compared if row.row_id is not None})


def worst(comparison: Comparison, count: int = NUM_WORST) -> list[Compared]:
    """The largest errors in the blocks that have a goal."""
    rows = [row for row in comparison.compared if row.block in GOALS]
    return sorted(rows, key=lambda row: -abs(row.error))[:count]


def reasons(comparison: Comparison) -> list[tuple[str, int]]:
    """Why rows were left out, the most frequent first."""
    return Counter(left.reason for left in comparison.left_out).most_common()
