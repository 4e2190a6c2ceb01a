"""A course as rows of the tables, made once and moved in time for each execution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from trnscope.sim.explorer_tables.movable import MovableRows
from trnscope.sim.explorer_tables.rows import (
    Course,
    InstructionRow,
    Machine,
    MemoryLevel,
    TransferRow,
)
from trnscope.sim.explorer_tables.spans import Span, merged, rates

EVENT_TABLE = "SystemProfileEvents"

_TRACKS = {
    "tensor": "TensorMatrix",
    "vector": "Vector",
    "scalar": "Scalar",
    "gpsimd": "GpSimd",
    "sync": "Sync",
}
_MEMORY = {"load": ("[HBM]", "[SB]", "read"), "store": ("[SB]", "[HBM]", "write")}
_NO_SHAPE = {
    "semaphore_id": "",
    "read_sbuf_partitions": "",
    "read_num_sbuf_partitions": 0,
    "read_offset": "",
    "read_steps": "",
    "write_sbuf_partitions": "",
    "write_num_sbuf_partitions": 0,
    "write_offset": "",
    "write_steps": "",
}
_SPAN = {"start_ts": "time", "end_ts": "time"}
_CORE = {"pcore_idx": "core"}
_PARTITIONS = tuple(f"partition_{at}_util_percent" for at in (0, 32, 64, 96))


class CourseColumns:
    """Everything about a course that does not depend on when it runs.

    Ids count from 0: the instructions, then the transfers.
    """

    def __init__(self, course: Course, machine: Machine) -> None:
        self.course = course
        self._machine = machine
        self.num_rows = len(course.instructions) + len(course.transfers)
        """Ids that an execution takes."""

    @cached_property
    def tables(self) -> dict[str, MovableRows]:
        """By name of the table: the rows of one physical core, where there are any.

        They are moved by ``time`` and ``id``, by ``hbm`` and ``dma``, the bytes moved before;
        ``core``, ``op`` and ``number`` are the same in all of them.
        """
        course, machine = self.course, self._machine
        same = {**_CORE, "layer": "op", "raw_framework_id": "number"}
        numbered = {**_SPAN, "id": "id"}
        found = {
            "Instruction": MovableRows("Instruction", self._instructions(), numbered, same),
            "DmaPacketAggregated": MovableRows(
                "DmaPacketAggregated", self._transfers(), numbered, _CORE
            ),
            "ActiveTime": MovableRows("ActiveTime", self._active_rows(), _SPAN, _CORE),
            "HbmUsage": _usage("HbmUsage", self.hbm_rates, "hbm"),
            "DmaUsage": _usage("DmaUsage", self.dma_rates, "dma"),
            "SbufUsage": _levels(
                "SbufUsage",
                course.memory,
                [100 * one.sbuf_bytes / machine.sbuf_bytes for one in course.memory],
                ("avg_util_percent", *_PARTITIONS),
            ),
            "PsumUsage": _levels(
                "PsumUsage",
                course.memory,
                [100 * one.psum_bytes / machine.psum_bytes for one in course.memory],
                ("avg_util_percent",),
            ),
            "Flow": MovableRows("Flow", self._dependencies(), {"in_id": "id", "out_id": "id"}, {}),
        }
        return {name: rows for name, rows in found.items() if rows.num_rows}

    @cached_property
    def entry(self) -> MovableRows | None:
        """The flow from an execution's event (``event``) to its first row, ``delay`` later."""
        course = self.course
        starts = [(row.start_ns, at) for at, row in enumerate(course.instructions)]
        first_transfer = len(course.instructions)
        starts += [(row.start_ns, at + first_transfer) for at, row in enumerate(course.transfers)]
        if not starts:
            return None
        start, at = min(starts)
        row = {
            "in_id": 0,
            "out_id": at,
            "in_table": EVENT_TABLE,
            "out_table": self._table_of(at),
            "dependency_type": "EXECUTION",
            "gap_time": start,
        }
        moved = {"in_id": "event", "out_id": "id", "gap_time": "delay"}
        return MovableRows("Flow", [row], moved, {})

    def _table_of(self, number: int) -> str:
        return "instruction" if number < len(self.course.instructions) else "dma_block"

    def _instructions(self) -> list[dict[str, Any]]:
        return [_instruction(self.course, at, row) for at, row in enumerate(self._numbered())]

    def _transfers(self) -> list[dict[str, Any]]:
        transfers, first = self.course.transfers, len(self.course.instructions)
        names = sorted({row.queue for row in transfers})
        queues = {name: number for number, name in enumerate(names)}
        return [
            _transfer(at, first + at, row, queues[row.queue]) for at, row in enumerate(transfers)
        ]

    def _active_rows(self) -> list[dict[str, Any]]:
        return [
            {"start_ts": start, "end_ts": end, "duration_ns": end - start, "engine": engine}
            for engine, spans in self.active.items()
            for start, end in spans
        ]

    def _dependencies(self) -> list[dict[str, Any]]:
        first = len(self.course.instructions)
        rows = []
        for one in self.course.dependencies:
            before = one.before + (first if one.before_is_transfer else 0)
            after = one.after + (first if one.after_is_transfer else 0)
            rows.append(
                {
                    "in_id": before,
                    "out_id": after,
                    "in_table": self._table_of(before),
                    "out_table": self._table_of(after),
                    "dependency_type": "FLOW_DEPENDENCE",
                    "gap_time": one.gap_ns,
                }
            )
        return rows

    def _numbered(self) -> list[tuple[int, InstructionRow]]:
        """Each instruction with its place in its engine's program."""
        counts: dict[str, int] = defaultdict(int)
        found = []
        for row in self.course.instructions:
            found.append((counts[row.engine], row))
            counts[row.engine] += 1
        return found

    @cached_property
    def active(self) -> dict[str, list[Span]]:
        """When each engine works."""
        return {
            engine: merged(
                (row.start_ns, row.start_ns + row.duration_ns)
                for row in self.course.instructions
                if row.engine == engine
            )
            for engine in sorted({row.engine for row in self.course.instructions})
        }

    @cached_property
    def all_active(self) -> list[Span]:
        """When any engine or transfer works."""
        rows: list[InstructionRow | TransferRow] = [
            *self.course.instructions,
            *self.course.transfers,
        ]
        return merged((row.start_ns, row.start_ns + row.duration_ns) for row in rows)

    @cached_property
    def hbm_rates(self) -> list[tuple[int, float, int]]:
        """Traffic of HBM over time; a move within it reads and writes."""
        doubled = [row for row in self.course.transfers if row.direction == "move"]
        return rates((*self.course.transfers, *doubled))

    @cached_property
    def dma_rates(self) -> list[tuple[int, float, int]]:
        """Traffic of the DMA engines over time."""
        return rates(self.course.transfers)

    @cached_property
    def opcodes(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """By engine and opcode: number, time and active time of the listed instructions."""
        groups: dict[tuple[str, str], list[InstructionRow]] = defaultdict(list)
        for row in self.course.instructions:
            groups[row.engine, row.opcode].append(row)
        return {
            key: (
                len(rows),
                sum(row.duration_ns for row in rows),
                sum(
                    end - start
                    for start, end in merged(
                        (row.start_ns, row.start_ns + row.duration_ns) for row in rows
                    )
                ),
            )
            for key, rows in groups.items()
        }


def _instruction(course: Course, at: int, numbered: tuple[int, InstructionRow]) -> dict[str, Any]:
    place, row = numbered
    is_tensor = row.engine == "tensor"
    turned = row.is_transpose
    return {
        "start_ts": row.start_ns,
        "end_ts": row.start_ns + row.duration_ns,
        "id": at,
        "duration_ns": row.duration_ns,
        "engine": row.engine,
        "timeline_track": _TRACKS.get(row.engine, row.engine),
        "opcode": row.opcode,
        "operands": row.operands,
        "pc": place,
        "bir_id": f"sg0000:{at}",
        "raw_bir_id": at,
        "evt_wait_time_ns": row.wait_ns,
        "hlo_name": course.name,
        "tensor_instruction_type": ("TRANSPOSE" if turned else "REGULAR") if is_tensor else None,
        "tensor_elements": row.elements if is_tensor else None,
        "raw_flops": row.flops,
        "adjusted_flops": row.adjusted_flops,
        "tensor_elements_transpose": row.elements if turned else 0,
        "flops_transpose": row.flops if turned else 0,
        "adjusted_flops_transpose": row.adjusted_flops if turned else 0,
    }


def _transfer(at: int, number: int, row: TransferRow, queue: int) -> dict[str, Any]:
    source, dest, op = _MEMORY.get(row.direction, ("[HBM]", "[HBM]", "move"))
    shape = f"[{row.num_bytes // max(row.descriptor_bytes, 1)}, {row.descriptor_bytes}]"
    return {
        "start_ts": row.start_ns,
        "end_ts": row.start_ns + row.duration_ns,
        "id": number,
        "duration_ns": row.duration_ns,
        "block_id": at,
        "queue_idx": queue,
        "queue_name": row.queue,
        "queue_type": "software_dynamic" if row.is_software else "data",
        "op": op,
        "variable": row.name,
        "read_bytes": row.num_bytes,
        "write_bytes": row.num_bytes,
        "transfer_bytes": row.num_bytes,
        "throughput": 1e9 * row.num_bytes / row.duration_ns if row.duration_ns else 0.0,
        "source": source,
        "dest": dest,
        "read_shape": shape,
        "write_shape": shape,
        "is_transpose_mode": row.is_transpose,
        **_NO_SHAPE,
    }


def _usage(table: str, samples: Sequence[tuple[int, float, int]], moved: str) -> MovableRows:
    rows = [
        {"timestamp": time, "current_throughput": rate, "total_transfer_bytes": done}
        for time, rate, done in samples
    ]
    return MovableRows(table, rows, {"timestamp": "time", "total_transfer_bytes": moved}, _CORE)


def _levels(
    table: str, levels: Sequence[MemoryLevel], shares: Sequence[float], names: Sequence[str]
) -> MovableRows:
    """Memory in use. A value lies in the same bytes of every partition."""
    rows = [
        {"timestamp": level.time_ns, **dict.fromkeys(names, share)}
        for level, share in zip(levels, shares, strict=True)
    ]
    return MovableRows(table, rows, {"timestamp": "time"}, _CORE)
