"""Turns the cost model's schedule of a program into a course: rows, dependencies, exact totals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from trnscope.sim.cost.model import CostModel
from trnscope.sim.cost.program import DmaTransfer, Instruction, Program, item_bytes, leaves
from trnscope.sim.cost.schedule import Execution, Schedule
from trnscope.sim.explorer_tables.rows import (
    Course,
    Dependency,
    InstructionRow,
    Machine,
    MemoryLevel,
    Totals,
    TransferRow,
)
from trnscope.sim.explorer_tables.spans import merged, total
from trnscope.sim.signature import GraphSpec, OpSignature

MAX_ROWS = 4096
"""Instructions and transfers of one course that are listed."""

_EIGHT_BIT = {"NCv2": 1.0}
_TRANSPOSE = "TRANSPOSE"
_MATMUL = "MATMUL"


def machine_of(model: CostModel) -> Machine:
    """The machine that a cost model stands for."""
    core, instance = model.core, model.instance
    peaks = dict(core.peak_flops)
    hbm = core.hbm_bytes_per_ns * 1e9
    return Machine(
        instance_type=instance.name,
        model=f"{core.name} model v{model.version}",
        physical_cores=instance.lnc,
        clock_ghz={engine.name: engine.clock_hz / 1e9 for engine in core.engines},
        tensor_rows=core.tensor.rows,
        tensor_columns=core.tensor.columns,
        num_lanes=core.tensor.rows,
        dma_engines=core.dma.engines,
        dma_bytes_per_s=core.dma.engines * core.dma.engine_bytes_per_ns * 1e9,
        hbm_bytes_per_s=hbm,
        hbm_share_bytes_per_s=hbm * instance.lnc / core.cores_per_chip,
        hbm_bytes=model.hbm_bytes_per_core,
        sbuf_bytes=core.sbuf_bytes_per_partition * core.tensor.rows,
        psum_bytes=core.psum_banks * core.psum_bank_bytes * core.tensor.rows,
        peak_bf16_flops=peaks["bfloat16"],
    )


def course_of(model: CostModel, what: OpSignature | GraphSpec, max_rows: int = MAX_ROWS) -> Course:
    """How an op or a graph runs on one physical core."""
    program = model.lower(what)
    schedule = model.schedule(program, max_rows)
    return to_course(program, schedule, model.core.generation, max_rows)


def to_course(
    program: Program, schedule: Schedule, generation: str, max_rows: int = MAX_ROWS
) -> Course:
    """The course of a scheduled program. Equal instructions in a row are listed one by one."""
    rows = _Rows(generation, max_rows)
    for execution in schedule.executions:
        rows.add(execution)
    totals = _totals(program, schedule, generation)
    count = sum(totals.instructions.values()) + totals.transfers
    left_out = max(0, count - len(rows.instructions) - len(rows.transfers))
    if left_out == 0:
        totals = replace(totals, engine_ns=totals.engine_ns | _transfer_ns(rows.transfers))
    return Course(
        name=program.name,
        duration_ns=schedule.total_ns,
        instructions=tuple(rows.instructions),
        transfers=tuple(rows.transfers),
        totals=totals,
        memory=tuple(MemoryLevel(m.time_ns, m.sbuf_bytes, m.psum_bytes) for m in schedule.memory),
        dependencies=tuple(rows.dependencies),
        num_left_out=left_out,
    )


def _transfer_ns(transfers: list[TransferRow]) -> dict[str, int]:
    """Time in which bytes move; the schedule's counts the issue of transfers too."""
    spans = merged((row.start_ns, row.start_ns + row.duration_ns) for row in transfers)
    return {"dma": total(spans)} if transfers else {}


@dataclass(frozen=True)
class _Written:
    """Who wrote a tile last."""

    row: int
    is_transfer: bool
    end_ns: int


@dataclass
class _Rows:
    """Collects rows in the order of issue."""

    generation: str
    room: int
    instructions: list[InstructionRow] = field(default_factory=list)
    transfers: list[TransferRow] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    _free_at: dict[str, int] = field(default_factory=dict)
    _written: dict[str, _Written] = field(default_factory=dict)

    def add(self, execution: Execution) -> None:
        """The rows of one entry of the schedule, as far as there is room."""
        step = execution.step
        if self.room < step.repeat:
            return
        self.room -= step.repeat
        is_transfer = isinstance(step, DmaTransfer)
        first = len(self.transfers) if is_transfer else len(self.instructions)
        for start, end in _split(execution.start_ns, execution.duration_ns, step.repeat):
            if isinstance(step, DmaTransfer):
                self.transfers.append(_transfer(step, execution, start, end))
            else:
                self.instructions.append(self._instruction(step, start, end))
        last = first + step.repeat - 1
        for name in step.reads:
            self._depend(name, first, is_transfer, execution.start_ns)
        end_ns = execution.start_ns + execution.duration_ns
        for name in step.writes:
            self._written[name] = _Written(last, is_transfer, end_ns)

    def _depend(self, name: str, row: int, is_transfer: bool, start_ns: int) -> None:
        by = self._written.get(name)
        if by is not None:
            gap = start_ns - by.end_ns
            self.dependencies.append(Dependency(by.row, by.is_transfer, row, is_transfer, gap))

    def _instruction(self, step: Instruction, start: int, end: int) -> InstructionRow:
        wait = max(0, start - self._free_at.get(step.engine, 0))
        self._free_at[step.engine] = end
        flops = step.flops // step.repeat
        return InstructionRow(
            engine=step.engine,
            opcode=step.opcode,
            start_ns=start,
            duration_ns=end - start,
            operands=f"{step.dtype}[{step.partitions}, {step.elements}]",
            flops=flops,
            adjusted_flops=round(flops * _weight(step.dtype, self.generation)),
            elements=step.partitions * step.elements,
            wait_ns=wait,
            is_transpose=step.opcode == _TRANSPOSE,
        )


def _transfer(step: DmaTransfer, execution: Execution, start: int, end: int) -> TransferRow:
    queue = execution.queue or step.queue
    return TransferRow(
        name=step.name,
        direction=step.direction,
        queue=f"q{queue[:1].upper()}{queue[1:]}",
        start_ns=start,
        duration_ns=end - start,
        num_bytes=step.num_bytes,
        descriptor_bytes=step.descriptor_bytes,
        is_software=step.software,
        is_transpose=step.transpose,
    )


def _split(start_ns: int, duration_ns: int, parts: int) -> Iterator[tuple[int, int]]:
    """A stretch in equal parts, which add up to it exactly."""
    for part in range(parts):
        yield (
            start_ns + duration_ns * part // parts,
            start_ns + duration_ns * (part + 1) // parts,
        )


def _totals(program: Program, schedule: Schedule, generation: str) -> Totals:
    instructions: dict[str, int] = defaultdict(int)
    transfers = read_bytes = write_bytes = matmuls = 0
    flops = {True: 0, False: 0}
    adjusted = {True: 0.0, False: 0.0}
    for step, times in leaves(program.steps):
        if isinstance(step, DmaTransfer):
            transfers += times
            moved = step.num_bytes * times if step.hbm else 0
            read_bytes += moved if step.direction != "store" else 0
            write_bytes += moved if step.direction != "load" else 0
            continue
        instructions[step.engine] += times
        turned = step.opcode == _TRANSPOSE
        issued = step.flops * (times // step.repeat)
        flops[turned] += issued
        adjusted[turned] += issued * _weight(step.dtype, generation)
        matmuls += times if step.opcode == _MATMUL else 0
    return Totals(
        engine_ns=dict(schedule.engine_ns),
        instructions=dict(instructions),
        transfers=transfers,
        flops=flops[True] + flops[False],
        adjusted_flops=round(adjusted[True] + adjusted[False]),
        transpose_flops=flops[True],
        adjusted_transpose_flops=round(adjusted[True]),
        hbm_read_bytes=read_bytes,
        hbm_write_bytes=write_bytes,
        matmuls=matmuls,
    )


def _weight(dtype: str, generation: str) -> float:
    """How much more of the matrix engine's time a FLOP takes than one of BF16.

    As the schema defines adjusted FLOPs: 4 for FP32, 1 for 16 bits and TF32, and for 8 bits 1 on
    the second generation of NeuronCores, 1/2 on later ones.
    """
    if dtype == "tfloat32":
        return 1.0
    size = item_bytes(dtype)
    if size == 1:
        return _EIGHT_BIT.get(generation, 0.5)
    return 4.0 if size >= 4 else 1.0
