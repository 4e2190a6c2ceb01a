"""An estimate for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from trnscope.estimate.estimate import MEMORY_CAPACITY, Estimate, Placed, assumptions
from trnscope.estimate.memory import Use
from trnscope.model.units import format_bytes, format_ns, format_rate, format_ratio, ratio
from trnscope.report.table import NOT_RECORDED, Column, Table
from trnscope.report.text import plural
from trnscope.report.view import View, note, title, warning

_PARTS = {
    "host": "host dispatch (the core waits)",
    "tensor": "tensor engine",
    "vector": "vector engine",
    "scalar": "scalar engine",
    "gpsimd": "GpSimd engine",
    "memory": "HBM and DMA",
    "latency": "latencies (nothing is busy half the time)",
    "program": "starting and loading programs",
    "copy": "copies between host and device",
    "collective": "collectives that nothing hides",
    "sync": "sync engine",
}
_USES = {
    Use.PARAMETERS: "parameters",
    Use.GRADIENTS: "gradients",
    Use.OPTIMIZER_STATE: "optimizer state",
    Use.OPTIMIZER_TEMPORARIES: "temporaries of the optimizer",
    Use.ACTIVATIONS: "activations and temporaries",
    Use.BEFORE: "inputs, buffers and others",
}


def estimate_lines(estimate: Estimate, view: View) -> Iterator[Text]:
    """What was run, the step, its parts, the memory, the answer, what it rests on."""
    yield from title(view, f"Estimate: {estimate.script}")
    yield note(_what_ran(estimate))
    yield Text()
    yield from _step_table(estimate).lines(view.width)
    yield Text()
    yield from _parts_table(estimate).lines(view.width)
    yield Text()
    yield from _memory_table(estimate.placed).lines(view.width)
    yield Text()
    yield from _answer(estimate)
    yield Text()
    yield note("Assumptions:")
    yield from (note(f"- {text}") for text in assumptions(estimate))
    yield note(f"Timeline of the recorded steps: {estimate.recorded.trace}")


def _what_ran(estimate: Estimate) -> str:
    recorded = estimate.recorded
    kind = "ended by the optimizer" if recorded.steps_by == "optimizer" else "each a forward call"
    last = recorded.first_step + recorded.num_steps - 1
    which = f"step {last}" if recorded.num_steps == 1 else f"steps {recorded.first_step} to {last}"
    cores = plural(recorded.lnc, "physical core")
    return (
        f"{recorded.instance}, LNC={recorded.lnc}: a core is {cores} with "
        f"{format_bytes(recorded.capacity_bytes)} of HBM. Recorded: {which} (from 0, {kind}), "
        "without computing values."
    )


def _columns(estimate: Estimate) -> list[Placed]:
    both = [estimate.one_core, estimate.placed]
    return both if estimate.placed.layout != estimate.one_core.layout else both[:1]


def _head(placed: Placed) -> str:
    layout = placed.layout
    if layout.num_cores == 1:
        return "one core"
    sizes = (("dp", layout.dp), ("fsdp", layout.fsdp), ("tp", layout.tp))
    named = [f"{name} {size}" for name, size in sizes]
    return " x ".join(text for text in named if not text.endswith(" 1"))


def _step_table(estimate: Estimate) -> Table:
    places = _columns(estimate)
    recorded = estimate.recorded

    def row(name: str, cells: list[str]) -> list[str]:
        return [name, *cells]

    rows = [row("step", [format_ns(one.time.step_ns) for one in places])]
    if places[-1].layout.num_batches > 1:
        rows.append(row("step, no overlap", [format_ns(one.time.serial_ns) for one in places]))
    if estimate.tokens is not None:
        rows.append(row("tokens/s, all cores", [_rate(one.tokens_per_s) for one in places]))
    elif estimate.samples is not None:
        rows.append(row("samples/s, all cores", [_rate(one.samples_per_s) for one in places]))
    least = "at least " if estimate.used.is_least else ""
    rows.append(row("MFU", [_share(one.mfu, least) for one in places]))
    executions = f"{recorded.num_executions / recorded.num_steps:,.0f}"
    rows.append(row("executions a step and core", [executions] * len(places)))
    rows.append(row("collectives a step", [f"{len(one.sent.all):,}" for one in places]))
    programs = f"{recorded.num_programs:,} in {format_ns(recorded.compile_ns)}"
    rows.append(row("programs to compile, once", [programs] * len(places)))
    return Table("simulated", [Column(_head(one)) for one in places], rows)


def _rate(value: float | None) -> str:
    return NOT_RECORDED if value is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _share(value: float | None, least: str) -> str:
    return NOT_RECORDED if value is None else f"{least}{format_ratio(value)}"


def _parts_table(estimate: Estimate) -> Table:
    places = _columns(estimate)
    main = places[-1].parts_ns
    names = sorted({*main, *places[0].parts_ns}, key=lambda part: main.get(part, 0), reverse=True)
    rows = [
        [_PARTS.get(part, part), *(cell for one in places for cell in _part_cells(one, part))]
        for part in names
    ]
    columns = [column for one in places for column in (Column(_head(one)), Column("% of step"))]
    return Table("what binds the step", columns, rows)


def _part_cells(placed: Placed, part: str) -> list[str]:
    time_ns = placed.parts_ns.get(part, 0)
    return [format_ns(time_ns), format_ratio(ratio(time_ns, placed.time.step_ns))]


def _memory_table(placed: Placed) -> Table:
    rows = [
        _memory_row(name, placed.memory.point.bytes_for(use), placed)
        for use, name in _USES.items()
        if placed.memory.point.bytes_for(use)
    ]
    if placed.memory.gathered_bytes:
        rows.append(_memory_row("layers gathered whole", placed.memory.gathered_bytes, placed))
    rows.append(_memory_row("peak", placed.peak_bytes, placed))
    columns = [Column(_head(placed)), Column("of capacity")]
    return Table("HBM of a core at the peak", columns, rows)


def _memory_row(name: str, num_bytes: int, placed: Placed) -> list[str]:
    share = format_ratio(ratio(num_bytes, placed.capacity_bytes))
    return [name, format_bytes(num_bytes), share]


def _answer(estimate: Estimate) -> Iterator[Text]:
    placed = estimate.placed
    if placed.binding == MEMORY_CAPACITY:
        yield Text(
            f"It does not fit: a core needs {format_bytes(placed.missing_bytes)} more HBM than its "
            f"{format_bytes(placed.capacity_bytes)} (simulated).",
            style="bold red",
        )
        for remedy in estimate.remedies:
            leads = (
                "" if remedy.peak_bytes is None else f" (peak {format_bytes(remedy.peak_bytes)})"
            )
            yield warning(f"To make it fit: {remedy.change}{leads}")
        if not estimate.remedies:
            yield warning("No number of cores of this instance that share the model is enough.")
        yield note("The times above are those that it would have with enough memory.")
    else:
        part_ns = placed.parts_ns[placed.binding]
        yield Text(
            f"The step is bound by {_PARTS.get(placed.binding, placed.binding)}: "
            f"{format_ratio(ratio(part_ns, placed.time.step_ns))} of it (simulated).",
            style="bold",
        )
    yield from _peaks(estimate)


def _peaks(estimate: Estimate) -> Iterator[Text]:
    peaks = ", ".join(
        f"{format_rate(value, 'FLOP/s')} in {dtype}" for dtype, value in estimate.used.peaks
    )
    if peaks:
        flops = estimate.used.matrix_flops / estimate.recorded.num_steps
        yield note(
            f"MFU: {format_rate(flops, 'FLOP')} of matrix products and attention that a step runs "
            f"on a core (what is recomputed counts), over the core's peak ({peaks}) x the step"
        )
