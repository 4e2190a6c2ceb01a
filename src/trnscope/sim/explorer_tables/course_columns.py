"""A course as columns of the tables, made once and moved in time for each execution."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trnscope.sim.explorer_tables.columns import Table
from trnscope.sim.explorer_tables.parquet import TABLES, arrow_schema
from trnscope.sim.explorer_tables.rows import Course, InstructionRow, TransferRow
from trnscope.sim.explorer_tables.spans import Span, merged, rates

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
_MOVING = {"start_ts", "end_ts", "id", "pcore_idx", "layer", "raw_framework_id"}
I64 = npt.NDArray[np.int64]


class CourseColumns:
    """Everything about a course that does not depend on when it runs."""

    def __init__(self, course: Course) -> None:
        self.course = course

    @cached_property
    def instructions(self) -> MovableRows:
        """The rows of Instruction."""
        rows = [_instruction(self.course, at, row) for at, row in enumerate(self._numbered())]
        starts = [row.start_ns for row in self.course.instructions]
        return MovableRows(TABLES["Instruction"], rows, starts)

    @cached_property
    def transfers(self) -> MovableRows:
        """The rows of DmaPacketAggregated."""
        queues = {
            name: number
            for number, name in enumerate(sorted({row.queue for row in self.course.transfers}))
        }
        rows = [
            _transfer(at, row, queues[row.queue]) for at, row in enumerate(self.course.transfers)
        ]
        starts = [row.start_ns for row in self.course.transfers]
        return MovableRows(TABLES["DmaPacketAggregated"], rows, starts)

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


class MovableRows:
    """Rows of one table whose times, ids and places are filled in for each execution."""

    def __init__(self, table: Table, rows: list[dict[str, Any]], starts: list[int]) -> None:
        self._schema = arrow_schema(table)
        self._start = np.array(starts, np.int64)
        self._duration = np.array([row["duration_ns"] for row in rows], np.int64)
        self._fixed = {
            field.name: pa.array([row.get(field.name) for row in rows], field.type)
            for field in self._schema
            if field.name not in _MOVING
        }
        self.num_rows = len(rows)

    def at(self, offset_ns: int, first_id: int, physical_core: int, **same: Any) -> Any:
        """The rows as a batch. ``same`` are further columns with one value for all of them."""
        start: I64 = self._start + offset_ns
        moving = {
            "start_ts": pa.array(start),
            "end_ts": pa.array(start + self._duration),
            "id": pa.array(np.arange(first_id, first_id + self.num_rows)),
        }
        constant = {"pcore_idx": physical_core, **same}
        arrays = []
        for field in self._schema:
            array = moving.get(field.name, self._fixed.get(field.name))
            if array is None:
                array = pa.repeat(pa.scalar(constant.get(field.name), field.type), self.num_rows)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _instruction(course: Course, at: int, numbered: tuple[int, InstructionRow]) -> dict[str, Any]:
    place, row = numbered
    is_tensor = row.engine == "tensor"
    turned = row.is_transpose
    return {
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


def _transfer(at: int, row: TransferRow, queue: int) -> dict[str, Any]:
    source, dest, op = _MEMORY.get(row.direction, ("[HBM]", "[HBM]", "move"))
    shape = f"[{row.num_bytes // max(row.descriptor_bytes, 1)}, {row.descriptor_bytes}]"
    return {
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
