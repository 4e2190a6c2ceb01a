"""The page of docs that shows how far the model is from published measurements."""

from __future__ import annotations

from benchmarks.accuracy.compare import Compared, Comparison
from benchmarks.accuracy.summary import GOALS, bounds, errors, num_rows, reasons, worst

INTRO = """# How accurate the simulated times are

Every simulated time comes from the open model of the NeuronCore in `trnscope.sim.cost`: nothing
here was measured by us. This page compares the model with measurements that others published, row
by row. It is written by `python -m benchmarks.sim_accuracy --page docs/sim-accuracy.md`, from a
table of measurements (`neuroncore_measured.csv`, not part of this repository) and from
`benchmarks/sim_workloads.toml`, which says what each row ran. How to add rows:
[add measured rows](howto/add-measured-rows.md); what the times include:
[read simulated times](howto/read-simulated-times.md).

A row counts as *held out* when no constant of the model was fitted on it. The fitted constants
stand in the data files under `src/trnscope/hardware/data`, each with the rows that decided it. Most
come from several rows, but some from one: `issue_ns` from row 74, `hardware_descriptor_ns` from
row 24, `readback_launch_ns` from row 455, trn1's `sustained_rate`
from row 288, `table_load_ns` from row 27 and the copy rates from rows 791 and 792. The model agrees
with such a row by construction; all of them are marked *fitted*. One constant, trn1's
`ring_descriptor_ns`, comes from a published figure that is not in the table.

Collectives within a graph were measured on trn1 alone: predictions for trn2 borrow its law, and so
does every other output of the model, which says so.

Kernels are described as their published source reads. Where the compiler chose engines or moved
loads, the description follows the engine times and byte counts that the same source reports: such
rows are marked *own counters*. They decided no constant, but they are not blind predictions.

A goal is judged twice: on all rows, and on the held-out rows alone. The second is the one that says
how far to trust the model on work that it has not seen. The error of a row is predicted / measured
- 1; MAE is the mean of its absolute values, bias the mean with its sign.
"""


BEHIND = {
    (454,): "One more all-reduce in a graph took 26 us; nccom-test has 2 us for the same size, back"
    " to back. The model adds the operands' way through HBM, 4 us. No public source says what the"
    " rest is.",
    (451,): "32 processes that wait for each launch: 1.8 ms more than launches in a chain, on trn2"
    " 0.3 ms. The model has one wait for both.",
    (56, 215): "The compiler spilled (rows 218 and 219: 55 MB out and back), which the source does"
    " not show.",
    (199,): "The Vector engine was busy for less than the source's instructions on it would take:"
    " the compiler merged or moved some of them.",
    (152,): "All engines and the DMA idle for a quarter of the time, in a loop that could overlap.",
    (304,): "Which of its loads the compiler left out is not counted, only their bytes together.",
    (189,): "Described from its source alone; the compiler spilled most of what the source keeps"
    " in SBUF.",
}
"""What is known of the largest errors, by the rows of the project's own table."""


def page(comparison: Comparison, version: str) -> str:
    """The whole page."""
    parts = [INTRO, f"Model version {version}.\n", _blocks(comparison), _worst(comparison)]
    parts += [_behind(comparison), _left_out(comparison)]
    parts += [_table(comparison, name) for name in comparison.blocks()]
    return "\n".join(parts)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _blocks(comparison: Comparison) -> str:
    lines = [
        "| Block | Rows | MAE | Median | Bias | MAE of held-out rows | Goal | Met on all rows |"
        " Met on held-out rows |",
        "|---|---:|---:|---:|---:|---:|---:|---|---|",
    ]
    for block in errors(comparison):
        held = "" if block.held_out is None else f"{block.held_out:.1%} of {block.num_held_out}"
        lines.append(
            f"| {block.name} | {block.num_rows} | {block.mean_absolute:.1%} |"
            f" {block.median_absolute:.1%} | {block.bias:+.1%} | {held} | {_percent(block.goal)} |"
            f" {_verdict(block.is_met)} | {_verdict(block.is_met_held_out)} |"
        )
    good, total = bounds(comparison)
    bound = f"\nOf {total} published upper bounds, {good} hold and are not below a quarter.\n"
    return "\n".join(lines) + "\n" + _not_met(comparison) + (bound if total else "")


def _verdict(is_met: bool | None) -> str:
    return "" if is_met is None else ("yes" if is_met else "**no**")


def _not_met(comparison: Comparison) -> str:
    """The goals that held-out rows miss, in a sentence each."""
    missed = [block for block in errors(comparison) if block.is_met_held_out is False]
    lines = [
        f"- {block.name}: {_percent(block.held_out)} on {block.num_held_out} held-out rows, the"
        f" goal is {_percent(block.goal)}."
        for block in missed
    ]
    if not lines:
        return ""
    return "\nNot met on held-out rows:\n\n" + "\n".join(lines) + "\n"


def _row(row: Compared) -> str:
    number = "" if row.row_id is None else str(row.row_id)
    marks = [("fitted", row.fitted), ("own counters", row.follows_counters)]
    basis = ", ".join(text for text, holds in marks if holds)
    return (
        f"| {number} | {row.name} | {row.metric} | {row.measured:.4g} | {row.predicted:.4g} |"
        f" {row.unit} | {row.error:+.1%} | {basis} |"
    )


HEAD = (
    "| Row | Workload | Metric | Measured | Simulated | Unit | Error | |\n"
    "|---:|---|---|---:|---:|---|---:|---|"
)


def _worst(comparison: Comparison) -> str:
    rows = "\n".join(_row(row) for row in worst(comparison))
    return f"## The worst rows\n\nOf the blocks with a goal.\n\n{HEAD}\n{rows}\n"


def _behind(comparison: Comparison) -> str:
    """Notes on rows that are compared."""
    compared = {row.row_id for row in comparison.compared}
    rows = [
        f"| {', '.join(map(str, ids))} | {known} |"
        for ids, known in BEHIND.items()
        if compared.issuperset(ids)
    ]
    head = "## What is behind the largest errors\n\n| Rows | What is known |\n|---|---|\n"
    return head + "\n".join(rows) + "\n" if rows else ""


def _left_out(comparison: Comparison) -> str:
    lines = [
        "## What is not compared",
        "",
        f"{num_rows(comparison)} rows are compared and {len(comparison.left_out)} left out:",
        "",
        "| Rows | Why |",
        "|---:|---|",
    ]
    lines += [f"| {count} | {reason} |" for reason, count in reasons(comparison)]
    return "\n".join(lines) + "\n"


def _table(comparison: Comparison, name: str) -> str:
    rows = "\n".join(_row(row) for row in comparison.block(name))
    title = name[0].upper() + name[1:]
    goal = f" Goal: {GOALS[name]:.0%}." if name in GOALS else ""
    return f"## {title}\n\nEvery row of this block.{goal}\n\n{HEAD}\n{rows}\n"
