"""One honest sentence on where the time goes: what was measured, of what, and nothing more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from trnscope.analysis.breakdown import (
    WHOLE_SPAN,
    Breakdown,
    BreakdownBasis,
    BreakdownPart,
    BreakdownRow,
)
from trnscope.analysis.ops import OpsTable
from trnscope.model.units import format_ns, format_ratio, ratio
from trnscope.report.owners import Owners
from trnscope.report.text import plural, printable, shorten
from trnscope.report.view import View

_DEVICE_PHRASES = {
    "compute": "kernels computing",
    "exposed_communication": "communication with no compute beside it",
    "exposed_memcpy": "copies with no compute beside them",
    "host_wait": "waiting for the host to launch work",
    "launch_wait": "waiting for work that was already launched to start",
    "other": "idle time whose cause the trace does not show",
}
_HOST_PHRASES = {
    "data_loading": "waiting for the data loader",
    "communication": "communication",
    "optimizer": "the optimizer",
    "backward": "the backward pass",
    "operators": "operators on the main thread (forward pass, loss and the like)",
    "runtime": "calls into a device runtime",
    "other_threads": "operators on other threads, the main one waiting (in training: backward)",
    "other": "Python code or waiting, outside of any recorded operator",
}
_OWNER = {True: ("device", "devices"), False: ("process", "processes")}
_SECOND_WORTH_NAMING = 0.15


def sentence_line(split: Breakdown, view: View) -> Text:
    """The sentence, as a line to end a report with."""
    text = where_time_goes(
        split,
        incomplete=view.incomplete is not None,
        simulated=view.simulated is not None,
        virtual=view.is_virtual,
    )
    return Text(text, style="bold")


def where_time_goes(
    split: Breakdown, *, incomplete: bool, simulated: bool = False, virtual: bool = False
) -> str:
    """The largest part of the steps' time, and the second when it is worth naming.

    Says what the shares are of, and marks what was simulated (with ``virtual``, the host's times
    too) or read from a damaged file.
    """
    whole = sum(row.duration_ns for row in split.rows)
    if split.basis is None or whole == 0:
        return "There is no time to account for: no slices with a duration were read."
    parts = sorted(split.totals(), key=lambda part: -part.duration_ns)
    if split.basis is BreakdownBasis.HOST and parts[0].key == "other" == _only_key(parts):
        return (
            f"No operators were recorded to split {_denominator(split.rows)} by; "
            "trnscope ops lists what was recorded."
        )
    phrases = _DEVICE_PHRASES if split.basis is BreakdownBasis.DEVICE else _HOST_PHRASES
    named = [parts[0]] + [
        part for part in parts[1:2] if (ratio(part.duration_ns, whole) or 0) > _SECOND_WORTH_NAMING
    ]
    shares = " and ".join(
        f"{format_ratio(ratio(part.duration_ns, whole))} {'' if at else 'went '}to "
        f"{phrases.get(part.key, part.key.replace('_', ' '))}"
        for at, part in enumerate(named)
    )
    prefix = "In the part of the trace that could be read: of" if incomplete else "Of"
    suffix = f" {'All' if virtual else 'Device'} times are simulated." if simulated else ""
    return f"{prefix} {_denominator(split.rows)}, {shares}.{suffix}"


def _only_key(parts: Sequence[BreakdownPart]) -> str | None:
    """The part that all time went to; null where several have a share."""
    keys = [part.key for part in parts if part.duration_ns]
    return keys[0] if len(keys) == 1 else None


def busiest_op_line(table: OpsTable) -> Iterator[Text]:
    """Which op took most own time, and of what; nothing where no op was recorded."""
    rows = [row for row in table.rows if not row.key.is_annotation]
    if not rows:
        return
    if table.has_device:
        top = max(rows, key=lambda row: row.self_device_ns or 0)
        part, whole, kind = top.self_device_ns or 0, table.device_sum_ns or 0, "device"
    else:
        top = max(rows, key=lambda row: row.self_cpu_ns)
        part, whole, kind = top.self_cpu_ns, table.self_cpu_ns, "CPU"
    share = format_ratio(ratio(part, whole))
    of = "all device work" if table.has_device else "what all rows took themselves"
    yield Text(
        f"The op with the most own {kind} time is {shorten(printable(top.name), 60)}: "
        f"{format_ns(part)}, {share} of {of}."
    )


def _denominator(rows: tuple[BreakdownRow, ...]) -> str:
    """What the shares are of: the mean step, or the whole trace."""
    mean = format_ns(sum(row.duration_ns for row in rows) // len(rows))
    over = _over(rows)
    if all(row.name == WHOLE_SPAN for row in rows):
        return f"the {mean} of the whole trace{over} (no steps were found)"
    return f"a step of {mean} (mean of {plural(_num_steps(rows), 'step')}{over})"


def _over(rows: tuple[BreakdownRow, ...]) -> str:
    """What the mean is over, besides steps: files that state no rank of their own are no ranks."""
    owners = Owners.of(rows)
    if owners.are_several and not owners.by_rank:
        return f" in {plural(len(owners.ranks), 'file')}"
    devices = {(row.source, row.device) for row in rows}
    if len(devices) > 1:
        return f" over {plural(len(devices), *_OWNER[rows[0].device is not None])}"
    return "" if rows[0].device is None else f" on {rows[0].device.label}"


def _num_steps(rows: tuple[BreakdownRow, ...]) -> int:
    """Steps that the rows are of: ranks take the same ones, as do the devices of a file."""
    devices = {(row.source, row.device) for row in rows}
    owners = Owners.of(rows)
    if owners.are_several and not owners.by_rank:
        per_file = Counter(source for source, _ in devices)
        return sum(
            count // per_file[source]
            for source, count in Counter(row.source for row in rows).items()
        )
    return len(rows) // len(devices)
