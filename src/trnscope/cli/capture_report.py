"""What a recording holds, what it cost and where its steps went: the report after a run."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.text import Text

from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.ops import ops
from trnscope.analysis.summary import summarize
from trnscope.capture.folders import traces_in
from trnscope.capture.record import CaptureRecord, Overhead
from trnscope.capture.run import RunResult
from trnscope.cli.inputs import open_profile
from trnscope.cli.output import print_compact_json, print_lines, print_warning, text_width
from trnscope.model.units import format_ns, format_ratio
from trnscope.opened import explain_profile
from trnscope.report.breakdown import breakdown_lines
from trnscope.report.explain import cause_lines
from trnscope.report.marks import view_of
from trnscope.report.ops import ops_lines
from trnscope.report.sentence import busiest_op_line, sentence_line
from trnscope.report.view import View, note, title, warning
from trnscope.store.profile import Profile

OPS_SHOWN = 10
_STEP_KINDS = {
    "optimizer": "each ended by the optimizer's step",
    "forward": "each a forward call",
    "time": "a window of time, no steps",
}


_LEFT_IDLE = (
    "the script ran nothing on the simulated device, so there are no times to report; move the "
    'model and its data there: .to("neuron"), or .to(torch.accelerator.current_accelerator())'
)
_VIRTUAL = (
    "All times are virtual: what recording costs this machine is not in them, and Python, data "
    "loading and work on CPU tensors take none."
)


def report(result: RunResult, *, as_json: bool) -> int:
    """Print what was recorded and where its steps went; returns the script's exit code."""
    profile = open_profile(result.traces) if result.traces else None
    if result.reason is not None:
        print_warning(f"nothing was recorded: {result.reason}")
    if result.left_device_idle and (result.traces or result.ending is None):
        print_warning(_LEFT_IDLE)
    if as_json:
        print_compact_json(run_document(result, profile))
    elif profile is not None and not result.left_device_idle:
        print_lines(failure_lines(result))
        print_lines(report_lines(profile, result.records, view_of(profile, width=text_width())))
        print_lines(next_lines(result.traces, with_stack=_with_stack(result.records)))
    return result.exit_code


def report_lines(
    profile: Profile, records: tuple[CaptureRecord, ...], view: View
) -> Iterator[Text]:
    """What was recorded, the split of its steps, the ops, the sentence and the cost."""
    yield Text()
    yield from title(view, "Recorded")
    records = _worth_telling(records)
    for record in records:
        yield from _recorded(record)
    yield Text()
    split = breakdown(profile)
    yield from breakdown_lines(split, replace(view, limit=OPS_SHOWN))
    yield Text()
    table = ops(profile, python=False)
    yield from ops_lines(table, replace(view, limit=OPS_SHOWN))
    yield Text()
    yield sentence_line(split, view)
    yield from busiest_op_line(table)
    yield from cause_lines(explain_profile(profile))
    for record in records:
        if record.device is None:
            yield from _cost(record.overhead, _who(record) if len(records) > 1 else None)
    if any(record.device is not None for record in records):
        yield note(_VIRTUAL)


def failure_lines(result: RunResult) -> Iterator[Text]:
    """That the script failed, where it did: a few good steps say nothing about its end."""
    if result.ending is not None:
        yield Text()
        yield warning(
            f"The script ended with {result.ending}. What follows is of the steps before that."
        )


def next_lines(traces: tuple[Path, ...], *, with_stack: bool) -> Iterator[Text]:
    """Where the traces are and what to do with them."""
    traces = tuple(map(_from_here, traces))
    for trace in traces:
        yield Text(f"Trace: {trace}", style="dim", no_wrap=True)
    yield note("Next: what causes this, what each cause costs, and what to change:")
    yield command_line(f"explain {_argument(traces)}")
    if with_stack:
        yield note("Which lines of Python the ops come from:")
        yield command_line(f"ops --by stack {_argument(traces)}")
    else:
        yield note("To see lines of Python as well, run again with --stack.")


def _with_stack(records: tuple[CaptureRecord, ...]) -> bool:
    """Whether Python stacks were recorded."""
    return any(record.with_stack for record in records)


def command_line(arguments: str) -> Text:
    """A command line to copy: never broken."""
    return Text(f"  {program()} {arguments}", no_wrap=True)


def run_document(result: RunResult, profile: Profile | None) -> dict[str, object]:
    """The document of ``run --json``; ``summary`` and ``breakdown`` as their commands print them.

    Both are null when nothing was recorded, and ``reason`` then says why.
    """
    return {
        "schema": 1,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "elapsed_ns": result.elapsed_ns,
        "traces": [str(trace) for trace in result.traces],
        "reason": result.reason,
        "processes": [record.to_json() for record in result.records],
        "summary": None if profile is None else summarize(profile).to_json(),
        "breakdown": None if profile is None else breakdown(profile).to_json(),
    }


def program() -> str:
    """The command as one can type it here: it need not be on the path."""
    if shutil.which("trnscope") is not None:
        return "trnscope"
    called = Path(sys.argv[0])
    return str(_from_here(called.absolute())) if called.name == "trnscope" else "trnscope"


def _from_here(path: Path) -> Path:
    """The path as one would type it here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _argument(traces: tuple[Path, ...]) -> str:
    """The traces for a command line: their folder where it holds just these."""
    folder = traces[0].parent
    if folder != Path() and set(traces_in(folder)) == set(traces):
        return shlex.quote(str(folder))
    return shlex.join(map(str, traces))


def _worth_telling(records: tuple[CaptureRecord, ...]) -> tuple[CaptureRecord, ...]:
    """Without the launchers (torchrun and the like), which only started those that trained."""
    recorded = tuple(record for record in records if record.trace is not None)
    return recorded or records


def _who(record: CaptureRecord) -> str:
    return f"process {record.pid}" if record.rank is None else f"rank {record.rank}"


def _recorded(record: CaptureRecord) -> Iterator[Text]:
    if record.trace is None:
        why = record.reason if record.hint is None else f"{record.reason}; {record.hint}"
        yield note(f"{_who(record)}: nothing recorded ({why})")
        return
    yield Text(f"{_who(record)}: {_steps(record)}")
    if record.last_step_cut:
        yield warning("The recording ends inside a step; that step is not in the figures per step.")
    if record.reason is not None:
        yield warning(record.reason)


def _steps(record: CaptureRecord) -> str:
    kind = _STEP_KINDS.get(record.steps_by or "", "")
    if record.first_step is None or not record.num_steps:
        return kind or "no whole step"
    if record.num_steps == 1:
        return f"step {record.first_step}, {kind}; the ones before it are warm-up"
    last = record.first_step + record.num_steps - 1
    return (
        f"{record.num_steps} steps, {record.first_step} to {last}, {kind}; "
        "the ones before are warm-up"
    )


def _cost(overhead: Overhead, who: str | None = None) -> Iterator[Text]:
    parts = [_step_cost(overhead)]
    if overhead.total_ns is not None:
        parts.append(f"Starting, stopping and writing took {format_ns(overhead.total_ns)} besides.")
    owner = "" if who is None else f" ({who})"
    yield note(f"Cost of recording{owner}: " + " ".join(parts))


def _step_cost(overhead: Overhead) -> str:
    slowdown = overhead.slowdown_ratio
    if slowdown is None:
        return "per step not measured, no step ran without it to compare with."
    change = f"{format_ratio(abs(slowdown))} {'more' if slowdown >= 0 else 'less'}"
    if not overhead.slowdown_is_clear:
        change += ", within what steps vary by themselves"
    return (
        f"a recorded step took {format_ns(overhead.profiled_step_ns)}, one without "
        f"{format_ns(overhead.unprofiled_step_ns)} ({change}; medians of "
        f"{overhead.num_profiled_steps} and {overhead.num_unprofiled_steps} steps)."
    )
