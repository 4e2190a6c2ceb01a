"""Writes the tables of one logical core: instructions, transfers, usage, collectives, figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from trnscope.sim.explorer_tables.course_columns import CourseColumns
from trnscope.sim.explorer_tables.framework_nodes import FrameworkNodes
from trnscope.sim.explorer_tables.metadata import metadata_row
from trnscope.sim.explorer_tables.parquet import TableSet
from trnscope.sim.explorer_tables.rows import (
    CollectiveRow,
    Course,
    DeviceExecution,
    Machine,
    TensorRow,
    WarningRow,
)
from trnscope.sim.explorer_tables.summary import SummaryFigures

MAX_ROWS = 1_000_000
"""Instructions and transfers of one core that are listed."""
EVENT_TABLE = "SystemProfileEvents"


class DeviceProfileWriter:
    """Takes executions in the order of their starts; :meth:`close` writes what sums them up."""

    def __init__(
        self, folder: Path, machine: Machine, core: int, name: str, *, max_rows: int = MAX_ROWS
    ) -> None:
        self.folder = folder
        self._machine = machine
        self._core = core
        self._name = name
        self._max_rows = max_rows
        self._tables = TableSet(folder)
        self._columns: dict[int, CourseColumns] = {}
        self._figures = SummaryFigures(machine)
        self._nodes = FrameworkNodes(machine)
        self._opcodes: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        self._next_id = 1
        self._num_executions = 0
        self._num_listed = 0
        self._num_left_out = 0
        self._hbm_moved = [0] * machine.physical_cores
        self._dma_moved = [0] * machine.physical_cores
        self._span: tuple[int, int] | None = None

    # Executions ---------------------------------------------------------------------------

    def add_execution(self, execution: DeviceExecution) -> None:
        """One execution, with its instructions where there is room for them."""
        number, self._num_executions = self._num_executions, self._num_executions + 1
        self._extend(execution.start_ns, execution.end_ns)
        course = execution.course
        columns = None if course is None else self._columns_of(course)
        self._figures.add_execution(execution, columns)
        self._nodes.add(number, execution)
        num_rows = 0
        if columns is not None:
            num_rows = self._add_course(number, execution, columns)
        self._tables["ExecutionInfo"].add(
            [
                {
                    "execution_index": number,
                    "neff_name": execution.program,
                    "execution_start_ts": execution.start_ns,
                    "execution_end_ts": execution.end_ns,
                    "num_subgraphs": self._machine.physical_cores,
                    "row_count": num_rows,
                }
            ]
        )

    def _columns_of(self, course: Course) -> CourseColumns:
        found = self._columns.get(id(course))
        if found is None:
            found = self._columns[id(course)] = CourseColumns(course)
        return found

    def _add_course(self, number: int, execution: DeviceExecution, columns: CourseColumns) -> int:
        """Its rows on every physical core; how many."""
        course, cores = columns.course, self._machine.physical_cores
        wanted = cores * (len(course.instructions) + len(course.transfers))
        self._num_left_out += cores * course.num_left_out
        for engine, (count, time, active) in columns.opcodes.items():
            sums = self._opcodes[engine]
            sums[0] += count * cores
            sums[1] += time * cores
            sums[2] += active * cores
        if self._num_listed + wanted > self._max_rows:
            self._num_left_out += wanted
            return 0
        self._num_listed += wanted
        # A program ends with its last instruction; what comes before its first is fixed cost.
        offset = execution.end_ns - course.duration_ns
        for core in range(cores):
            self._add_rows(number, execution, columns, offset, core)
        return wanted

    def _add_rows(
        self,
        number: int,
        execution: DeviceExecution,
        columns: CourseColumns,
        offset: int,
        core: int,
    ) -> None:
        instructions, transfers = columns.instructions, columns.transfers
        first = self._next_id
        first_transfer = first + instructions.num_rows
        self._next_id = first_transfer + transfers.num_rows
        if instructions.num_rows:
            self._tables["Instruction"].add_batch(
                instructions.at(offset, first, core, layer=execution.op, raw_framework_id=number)
            )
        if transfers.num_rows:
            self._tables["DmaPacketAggregated"].add_batch(
                transfers.at(offset, first_transfer, core)
            )
        self._add_active(columns, offset, core)
        self._add_usage(columns, offset, core)
        self._add_flows(execution, columns, first, first_transfer, offset)

    def _add_active(self, columns: CourseColumns, offset: int, core: int) -> None:
        self._tables["ActiveTime"].add(
            {
                "start_ts": start + offset,
                "end_ts": end + offset,
                "duration_ns": end - start,
                "engine": engine,
                "pcore_idx": core,
            }
            for engine, spans in columns.active.items()
            for start, end in spans
        )

    def _add_usage(self, columns: CourseColumns, offset: int, core: int) -> None:
        for table, samples, moved in (
            ("HbmUsage", columns.hbm_rates, self._hbm_moved),
            ("DmaUsage", columns.dma_rates, self._dma_moved),
        ):
            self._tables[table].add(
                {
                    "timestamp": time + offset,
                    "current_throughput": rate,
                    "total_transfer_bytes": moved[core] + done,
                    "pcore_idx": core,
                }
                for time, rate, done in samples
            )
            moved[core] += samples[-1][2] if samples else 0
        self._add_memory(columns, offset, core)

    def _add_memory(self, columns: CourseColumns, offset: int, core: int) -> None:
        """SBUF and PSUM. A value lies in the same bytes of every partition."""
        machine, levels = self._machine, columns.course.memory
        partitions = [f"partition_{at}_util_percent" for at in (0, 32, 64, 96)]
        for table, names, size, used in (
            ("SbufUsage", partitions, machine.sbuf_bytes, [one.sbuf_bytes for one in levels]),
            ("PsumUsage", [], machine.psum_bytes, [one.psum_bytes for one in levels]),
        ):
            self._tables[table].add(
                {
                    "timestamp": level.time_ns + offset,
                    "pcore_idx": core,
                    **dict.fromkeys(["avg_util_percent", *names], 100 * num_bytes / size),
                }
                for level, num_bytes in zip(levels, used, strict=True)
            )

    def _add_flows(
        self,
        execution: DeviceExecution,
        columns: CourseColumns,
        first: int,
        first_transfer: int,
        offset: int,
    ) -> None:
        """Dependencies inside the program, and from the system profile to its first row."""
        rows = [
            {
                "in_id": one.before + (first_transfer if one.before_is_transfer else first),
                "out_id": one.after + (first_transfer if one.after_is_transfer else first),
                "in_table": "dma_block" if one.before_is_transfer else "instruction",
                "out_table": "dma_block" if one.after_is_transfer else "instruction",
                "dependency_type": "FLOW_DEPENDENCE",
                "gap_time": one.gap_ns,
            }
            for one in columns.course.dependencies
        ]
        entry = _first_row(columns.course)
        if execution.event_id is not None and entry is not None:
            start, at, is_transfer = entry
            rows.append(
                {
                    "in_id": execution.event_id,
                    "out_id": at + (first_transfer if is_transfer else first),
                    "in_table": EVENT_TABLE,
                    "out_table": "dma_block" if is_transfer else "instruction",
                    "dependency_type": "EXECUTION",
                    "gap_time": max(0, start + offset - execution.start_ns),
                }
            )
        self._tables["Flow"].add(rows)

    # The rest -----------------------------------------------------------------------------

    def add_collective(self, row: CollectiveRow) -> None:
        """One collective."""
        self._extend(row.start_ns, row.end_ns)
        self._figures.add_collective(row)
        duration = row.end_ns - row.start_ns
        bandwidth = 1e9 * row.num_bytes / duration if duration else None
        self._tables["CcOp"].add(
            [
                {
                    "start_ts": row.start_ns,
                    "end_ts": row.end_ns,
                    "duration_ns": duration,
                    "operation": row.operation,
                    "algorithm": "modelled",
                    "num_elements": row.num_elements,
                    "dtype": row.dtype,
                    "op_id": self._figures.num_collectives,
                    "stream_id": row.stream,
                    "stream_index": row.stream,
                    "trigger_engine": "",
                    "input_size": row.num_bytes,
                    "output_size": row.num_bytes,
                    "algorithm_bandwidth": bandwidth,
                    "bus_bandwidth": _bus_bandwidth(bandwidth, row),
                    "trigger_start_ts": row.trigger_ns,
                    "cc_trigger_start_delay": None
                    if row.trigger_ns is None
                    else row.start_ns - row.trigger_ns,
                    "replica_group_id": 0,
                    "replica_group": str([list(row.group)]),
                }
            ]
        )

    def add_tensors(self, rows: Iterable[TensorRow]) -> None:
        """Values that programs read and write."""
        self._tables["TensorInfo"].add(
            {
                "variable_name": row.name,
                "type": row.role,
                "shape": None if row.shape is None else " ".join(map(str, row.shape)),
                "size": row.num_bytes,
            }
            for row in rows
        )

    def add_warning(self, row: WarningRow) -> None:
        """What a reader should know."""
        self._tables["Warning"].add([{"message": row.message, "category": row.category}])

    def close(self) -> None:
        """Write the figures over the whole profile and finish every file."""
        start, end = self._span or (0, 0)
        self._tables["Metadata"].add(
            [metadata_row(self._machine, self._name, start, end, self._core)]
        )
        total_ns = self._figures.exec_ns
        self._tables["OpcodeSummary"].add(
            {
                "engine": engine,
                "opcode": opcode,
                "instruction_count": count,
                "instruction_time_ns": time,
                "active_time_ns": active,
                "active_time_percent": active / (self._machine.physical_cores * total_ns)
                if total_ns
                else 0.0,
            }
            for (engine, opcode), (count, time, active) in sorted(self._opcodes.items())
        )
        self._tables["FrameworkNode"].add(self._nodes.rows())
        self._warn_of_gaps()
        self._tables["Summary"].add([self._figures.row(end - start, self._num_listed)])
        self._tables.close()

    def _warn_of_gaps(self) -> None:
        if self._num_left_out:
            message = (
                f"{self._num_left_out} instructions and transfers were left out of the tables; "
                "the figures in Summary count them"
            )
            self.add_warning(WarningRow(message, "Missing Data"))
        if self._nodes.num_cut:
            message = f"{self._nodes.num_cut} stretches of FrameworkNode were left out"
            self.add_warning(WarningRow(message, "Missing Data"))

    def _extend(self, start: int, end: int) -> None:
        first, last = self._span or (start, end)
        self._span = (min(first, start), max(last, end))


def _first_row(course: Course) -> tuple[int, int, bool] | None:
    """Start and place of the row that begins first, and whether it is a transfer."""
    rows = [(row.start_ns, at, False) for at, row in enumerate(course.instructions)]
    rows += [(row.start_ns, at, True) for at, row in enumerate(course.transfers)]
    return min(rows, default=None)


_BUS_FACTORS = {"AllReduce": 2, "AllGather": 1, "ReduceScatter": 1, "AllToAll": 1}


def _bus_bandwidth(bandwidth: float | None, row: CollectiveRow) -> float | None:
    """As nccl-tests counts it: twice the share (n - 1) / n for AllReduce, and so on."""
    if bandwidth is None or not row.group:
        return None
    factor = _BUS_FACTORS.get(row.operation)
    return bandwidth if factor is None else bandwidth * factor * (1 - 1 / len(row.group))
