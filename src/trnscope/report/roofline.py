"""Ops against the ceilings of their device, as a table that begins with a sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from rich.text import Text

from trnscope.analysis.ceilings import Ceilings
from trnscope.analysis.roofline import Basis, Bound, Roofline, RooflineRow
from trnscope.model.units import format_ns, format_rate, format_ratio, ratio
from trnscope.report.table import Column, Table
from trnscope.report.text import plural, printable
from trnscope.report.view import View, cut_note, note, title, warning

_LIMITS = {
    Bound.COMPUTE: "by arithmetic",
    Bound.MEMORY: "by memory bandwidth",
    Bound.NEITHER: "by neither arithmetic nor memory bandwidth",
}
_NO_LIMIT = {
    Bound.CACHE: "ran from caches, faster than memory",
    Bound.INCONSISTENT: "shows rates that cannot be",
    None: "has no answer",
}
_LEAST_SHARE = 0.0005
"""A smaller share would be shown as 0.0 %."""
_MOSTLY = 0.5
_SHOWN_DTYPES = 3


def roofline_lines(result: Roofline, view: View) -> Iterator[Text]:
    """A sentence, utilisation, and the ops by time."""
    yield from title(view, "Roofline")
    if result.abstained is not None:
        yield warning(f"Nothing can be said: {result.abstained}.")
        return
    yield Text(printable(_sentence(result, simulated=view.simulated is not None)), style="bold")
    yield Text()
    if (result.uncounted_ratio or 0) > _MOSTLY:
        yield warning("Most of that time has no known FLOPs, so the rest says little of the whole.")
    yield from _utilisation(result)
    yield from _table(result, view)
    yield from _notes(result)


def _sentence(result: Roofline, *, simulated: bool) -> str:
    compute_ns = result.counted_ns + result.uncounted_ns
    if result.ceilings is None:
        return (
            f"What the ops reached in {_whole(result, compute_ns)} is below; how far that is "
            f"from what the device can do is not known: {result.no_ceilings}."
        )
    limits = _shares(result, _LIMITS, compute_ns)
    others = _shares(result, _NO_LIMIT, compute_ns)
    parts = [f"{limits[0][0]} was limited {limits[0][1]}"] if limits else []
    parts += [f"{share} {phrase}" for share, phrase in [*limits[1:], *others]]
    suffix = " Device times are simulated." if simulated else ""
    return f"Of {_whole(result, compute_ns)}, {', '.join(parts)}.{suffix}"


def _shares(
    result: Roofline, phrases: Mapping[Bound, str] | Mapping[Bound | None, str], compute_ns: int
) -> list[tuple[str, str]]:
    """(share of the time, phrase) of the bounds that occur, the largest first."""
    found = [(_bound_ns(result, bound), phrase) for bound, phrase in phrases.items()]
    found.sort(key=lambda each: -each[0])
    worth = [each for each in found if each[0] >= _LEAST_SHARE * compute_ns]
    return [(format_ratio(ratio(ns, compute_ns)), phrase) for ns, phrase in worth]


def _bound_ns(result: Roofline, bound: Bound | None) -> int:
    """Time with that bound; work without an op has none."""
    return result.time_bound_by(bound) + (result.unattributed_ns if bound is None else 0)


def _whole(result: Roofline, compute_ns: int) -> str:
    if result.basis is Basis.HOST:
        return f"the {format_ns(compute_ns)} that ops took on the CPU"
    over = "" if result.num_devices == 1 else f" over {plural(result.num_devices, 'device')}"
    return f"the {format_ns(compute_ns)} of compute on the device{over}"


def _utilisation(result: Roofline) -> Iterator[Text]:
    if result.ceilings is not None:
        yield note(_ceilings(result.ceilings, result))
    if result.attainable_of_ns:
        yield Text(
            f"At these ceilings, what took {format_ns(result.attainable_of_ns)} would take "
            f"{format_ns(result.attainable_ns)} or more."
        )
    least = "at least " if result.uncounted_ns else ""
    devices = "" if result.num_devices <= 1 else f" x {plural(result.num_devices, 'device')}"
    if result.mfu_step is not None:
        steps_ns = sum(step.duration_ns for step in result.steps)
        yield Text(
            f"MFU of the steps: {least}{format_ratio(result.mfu_step)}   (matrix FLOPs over peak "
            f"x {format_ns(steps_ns)} of {plural(len(result.steps), 'step')}{_per_rank(result)})"
        )
    if result.mfu_device is not None:
        busy = "busy time" if result.basis is Basis.DEVICE else "time in ops"
        yield Text(
            f"MFU of the {busy}: {least}{format_ratio(result.mfu_device)}   (over peak x "
            f"{format_ns(result.busy_ns)}{devices and ', all devices added'})"
        )
    yield Text()


def _per_rank(result: Roofline) -> str:
    return "" if result.num_devices <= 1 else ", times the devices of each rank"


def _ceilings(ceilings: Ceilings, result: Roofline) -> str:
    """The peaks that were used, where they come from, and where they meet."""
    used = dict.fromkeys(row.dtype for row in result.rows if row.flops and row.dtype)
    peaks = [
        f"{format_rate(peak.value, 'FLOP/s')} in {dtype}"
        for dtype in used
        if (peak := ceilings.flops(dtype)) is not None
    ]
    if ceilings.flops_of_any is not None:
        peaks = [f"{format_rate(ceilings.flops_of_any.value, 'FLOP/s')} in any type"]
    if ceilings.bandwidth is not None:
        peaks.insert(_SHOWN_DTYPES, f"memory {format_rate(ceilings.bandwidth.value, 'B/s')}")
    name = ceilings.title or "peaks given by the user"
    part = f", {ceilings.device_is}" if ceilings.device_is else ""
    return f"Ceilings of one device ({name}{part}): {', '.join(peaks[: _SHOWN_DTYPES + 1])}"


def _table(result: Roofline, view: View) -> Iterator[Text]:
    shown = result.rows[: view.shown(len(result.rows))]
    heads = ["time", "%", "calls", "FLOP/s"]
    has_ceilings = result.ceilings is not None
    heads += ["of peak"] if has_ceilings else []
    heads += ["bytes/s"]
    heads += ["of peak"] if has_ceilings else ["FLOP/byte"]
    columns = [Column(head) for head in heads]
    columns += [Column("bound by", is_text=True)] if has_ceilings else []
    rows = [_cells(row, result) for row in shown]
    yield from Table("op", columns, rows, [_details(row) for row in shown]).lines(view.width)
    yield from cut_note(view, len(result.rows), "row")


def _cells(row: RooflineRow, result: Roofline) -> list[str]:
    whole = result.counted_ns + result.uncounted_ns
    cells = [
        row.name,
        format_ns(row.time_ns),
        format_ratio(ratio(row.time_ns, whole)),
        f"{row.calls:,}",
        "?" if row.flops is None else _rate(row.flops_per_s),
    ]
    if result.ceilings is None:
        intensity = row.arithmetic_intensity
        return [
            *cells,
            "?" if row.num_bytes is None else _rate(row.bytes_per_s),
            "-" if intensity is None else f"{intensity:.3g}",
        ]
    return [
        *cells,
        format_ratio(row.compute_ratio),
        "?" if row.num_bytes is None else _rate(row.bytes_per_s),
        format_ratio(row.memory_ratio),
        _bound(row),
    ]


def _rate(value: float | None) -> str:
    return "-" if value == 0 else format_rate(value, "")


def _bound(row: RooflineRow) -> str:
    return "?" if row.bound is None else row.bound.value


def _details(row: RooflineRow) -> list[str]:
    shapes = [] if row.input_shapes is None else json.loads(row.input_shapes)
    # An argument that is no tensor stands as an empty shape.
    tensors = [shape for shape in shapes if shape]
    line = " ".join([*([row.dtype] if row.dtype else []), *map(str, tensors)])
    return [part for part in (line, row.reason) if part]


def _notes(result: Roofline) -> Iterator[Text]:
    yield note("bytes: each input read once, each output written once; the op may move more")
    if result.ceilings is not None:
        yield note("bound by: the ceiling that the op reaches 60 % of; neither: far from both")
    yield note("?: no formula, or not recorded; never counted as zero")
    others = [
        (result.communication_ns, "communication"),
        (result.transfer_ns, "copies to or from the host or another device"),
        (result.unattributed_ns, "device work whose op is not in the trace"),
        (result.overhead_ns, "ops that only call others, make views or allocate"),
    ]
    listed = ", ".join(f"{format_ns(ns)} of {what}" for ns, what in others if ns)
    if listed:
        yield note(f"in no row: {listed}")


__all__ = ["roofline_lines"]
