"""The steps of a profile as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.analysis.step_finder import StepEvidence
from trnscope.analysis.steps import Steps, StepSummary
from trnscope.model.units import format_ns
from trnscope.report.owners import Owners
from trnscope.report.table import Column, Table
from trnscope.report.view import View, cut_note, note, title

NO_STEPS = (
    "No steps found: the trace has no ProfilerStep ranges, no repeated range named step, "
    "iteration or batch, and no Optimizer.step."
)

_EVIDENCE = {
    StepEvidence.PROFILER_STEP: "Steps are the profiler's own ProfilerStep ranges.",
    StepEvidence.ANNOTATION: "Steps are the repeated ranges that carry a step's name.",
    StepEvidence.OPTIMIZER: "Steps run from one end of Optimizer.step to the next.",
    StepEvidence.DEVICE_ANNOTATION: "Steps are the step ranges on a device: the host has none.",
}


def steps_lines(result: Steps, view: View) -> Iterator[Text]:
    """Each step's duration and device time, and how both were found."""
    yield from title(view, "Steps")
    if not result.rows:
        yield note(NO_STEPS)
        return
    yield from steps_table(result.rows, view).lines(view.width)
    yield from cut_note(view, len(result.rows), "step")
    yield from Owners.of(result.rows).notes()
    for evidence in dict.fromkeys(step.evidence for step in result.rows):
        yield note(_EVIDENCE[evidence])
    if has_device_time(result.rows):
        yield note(
            "Device time is the union of device work, added over devices: by launch, what the "
            "step launched; by clock, what ran during it."
        )


def steps_table(steps: tuple[StepSummary, ...], view: View) -> Table:
    """One row a step; columns of devices and ranks only where there are any."""
    with_device, owners = has_device_time(steps), Owners.of(steps)
    columns = [Column(owners.head)] if owners.are_several else []
    columns.append(Column("duration"))
    if with_device:
        columns += [Column("device, by launch"), Column("device, by clock")]
    return Table(
        "step",
        columns,
        [_row(step, owners, with_device) for step in steps[: view.shown(len(steps))]],
    )


def has_device_time(steps: tuple[StepSummary, ...]) -> bool:
    """Whether any step has device time."""
    return any(step.device_ns is not None for step in steps)


def _row(step: StepSummary, owners: Owners, with_device: bool) -> list[str]:
    cells = [step.name]
    if owners.are_several:
        cells.append(owners.cell(step))
    cells.append(format_ns(step.duration_ns))
    if with_device:
        cells += [format_ns(step.device_ns_by_launch), format_ns(step.device_ns_by_clock)]
    return cells
