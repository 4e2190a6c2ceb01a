"""Works out the figures of the table Summary, for one logical core.

Times of engines are means over its physical cores; bytes, operations and numbers of instructions
are sums. Shares refer to the time of all executions, and are fractions from 0 to 1.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from trnscope.sim.explorer_tables.course_columns import CourseColumns
from trnscope.sim.explorer_tables.rows import CollectiveRow, DeviceExecution, Machine
from trnscope.sim.explorer_tables.spans import Span, merged, total

_ENGINES = ("tensor", "vector", "scalar", "sync", "gpsimd")
_S = 1e-9


class SummaryFigures:
    """Adds executions up."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._engine_ns: dict[str, int] = defaultdict(int)
        self._instructions: dict[str, int] = defaultdict(int)
        self._sums: dict[str, int] = defaultdict(int)
        self._collectives: list[Span] = []
        self._active: list[Span] = []
        self._is_active_known = True
        self._activate = [0, 0]
        self._queues: set[str] = set()
        self.exec_ns = 0
        """Durations of all executions, added."""

    @property
    def num_collectives(self) -> int:
        """Collectives so far."""
        return len(self._collectives)

    def add_execution(self, execution: DeviceExecution, columns: CourseColumns | None) -> None:
        """Count one execution."""
        self.exec_ns += execution.end_ns - execution.start_ns
        if columns is None:
            self._is_active_known = False
            return
        course, cores = columns.course, self._machine.physical_cores
        totals = course.totals
        for engine, busy_ns in totals.engine_ns.items():
            self._engine_ns[engine] += busy_ns
        for engine, count in totals.instructions.items():
            self._instructions[engine] += cores * count
        for name in (
            "transfers",
            "flops",
            "adjusted_flops",
            "transpose_flops",
            "adjusted_transpose_flops",
            "hbm_read_bytes",
            "hbm_write_bytes",
            "matmuls",
        ):
            self._sums[name] += cores * getattr(totals, name)
        self._queues |= {row.queue for row in course.transfers}
        self._is_active_known &= course.num_left_out == 0
        offset = execution.end_ns - course.duration_ns
        self._active += [(start + offset, end + offset) for start, end in columns.all_active]
        if len(self._active) > 1 << 16:
            self._active = merged(self._active)
        for (engine, opcode), (count, time, _) in columns.opcodes.items():
            if engine == "scalar" and opcode.startswith("ACTIVATE"):
                self._activate[0] += cores * count
                self._activate[1] += time

    def add_collective(self, row: CollectiveRow) -> None:
        """Count one collective."""
        self._collectives.append((row.start_ns, row.end_ns))

    def row(self, total_ns: int, num_rows: int) -> dict[str, Any]:
        """The row of Summary. What is not worked out is absent."""
        found: dict[str, Any] = {
            "total_time": total_ns * _S,
            "total_exec_time": self.exec_ns * _S,
            "trace_count": 1,
            "event_count": num_rows,
            "total_row_count": num_rows,
            "neuroncore_cycle_count": round(total_ns * self._machine.clock_ghz["scalar"]),
            **self._engines(),
            **self._work(),
            **self._dma(),
            **self._communication(),
        }
        if self._is_active_known:
            active = total(merged((*self._active, *self._collectives)))
            found["total_active_time"] = active * _S
            found["total_active_time_percent"] = self._share(active)
        return found

    def _share(self, time_ns: float) -> float | None:
        return time_ns / self.exec_ns if self.exec_ns else None

    def _engines(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for engine in _ENGINES:
            busy_ns = self._engine_ns.get(engine, 0)
            prefix = f"{engine}_engine"
            found[f"{prefix}_instruction_time"] = busy_ns * _S
            found[f"{prefix}_active_time"] = busy_ns * _S
            found[f"{prefix}_active_time_percent"] = self._share(busy_ns)
            found[f"{prefix}_instruction_count"] = self._instructions.get(engine, 0)
        found["activate_instruction_count"] = self._activate[0]
        found["activate_instruction_time"] = self._activate[1] * _S
        return found

    def _work(self) -> dict[str, Any]:
        sums, machine = self._sums, self._machine
        moved = sums["hbm_read_bytes"] + sums["hbm_write_bytes"]
        model = sums["flops"] - sums["transpose_flops"]
        adjusted = sums["adjusted_flops"] - sums["adjusted_transpose_flops"]
        peak = machine.peak_bf16_flops * machine.physical_cores
        seconds = self.exec_ns * _S
        return {
            "model_flops": model,
            "hardware_flops": sums["flops"],
            "transpose_flops": sums["transpose_flops"],
            "adjusted_hardware_flops": sums["adjusted_flops"],
            "adjusted_transpose_flops": sums["adjusted_transpose_flops"],
            "mm_arithmetic_intensity": model / moved if moved else None,
            "peak_flops_bandwidth_ratio": peak / machine.hbm_share_bytes_per_s,
            "matmul_instruction_count": sums["matmuls"],
            "hbm_read_bytes": sums["hbm_read_bytes"],
            "hbm_write_bytes": sums["hbm_write_bytes"],
            "mfu_estimated_percent": adjusted / (peak * seconds) if seconds else None,
            "hfu_estimated_percent": sums["adjusted_flops"] / (peak * seconds) if seconds else None,
            "mbu_estimated_percent": moved / (machine.hbm_share_bytes_per_s * seconds)
            if seconds
            else None,
        }

    def _dma(self) -> dict[str, Any]:
        busy_ns, count = self._engine_ns.get("dma", 0), self._sums["transfers"]
        moved = self._sums["hbm_read_bytes"] + self._sums["hbm_write_bytes"]
        return {
            "dma_active_time": busy_ns * _S,
            "dma_active_time_percent": self._share(busy_ns),
            "dma_active_cycles": round(busy_ns * self._machine.clock_ghz["scalar"]),
            "dma_transfer_count": count,
            "dma_transfer_total_bytes": moved,
            "dma_transfer_average_bytes": moved / count if count else None,
            "dma_queue_count": len(self._queues),
        }

    def _communication(self) -> dict[str, Any]:
        active = total(merged(self._collectives))
        return {
            "cc_op_time": total(self._collectives) * _S,
            "cc_op_active_time": active * _S,
            "cc_op_active_time_percent": self._share(active),
            "cc_op_count": len(self._collectives),
        }
