"""Writes the tables of one logical core: instructions, transfers, usage, collectives, figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trnscope.sim.explorer_tables.course_columns import CourseColumns
from trnscope.sim.explorer_tables.framework_nodes import FrameworkNodes
from trnscope.sim.explorer_tables.metadata import metadata_row
from trnscope.sim.explorer_tables.parquet import ROWS_PER_GROUP, TableSet
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
        self._groups: dict[tuple[int, ...], int] = {}
        self._next_id = 1
        self._num_executions = 0
        self._num_listed = 0
        self._num_left_out = 0
        self._waiting: dict[int, _Waiting] = {}
        self._num_waiting = 0
        self._hbm_moved = 0
        self._dma_moved = 0
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
            found = self._columns[id(course)] = CourseColumns(course, self._machine)
        return found

    def _add_course(self, number: int, execution: DeviceExecution, columns: CourseColumns) -> int:
        """Its rows on every physical core; how many."""
        course, cores = columns.course, self._machine.physical_cores
        wanted = cores * columns.num_rows
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
        waiting = self._waiting.setdefault(id(course), _Waiting(columns))
        for core in range(cores):
            waiting.add(
                # A program ends with its last instruction; before its first is fixed cost.
                time=execution.end_ns - course.duration_ns,
                id=self._next_id,
                core=core,
                op=execution.op,
                number=number,
                event=execution.event_id,
                delay=execution.end_ns - course.duration_ns - execution.start_ns,
                hbm=self._hbm_moved,
                dma=self._dma_moved,
            )
            self._next_id += columns.num_rows
        self._hbm_moved += columns.hbm_rates[-1][2] if columns.hbm_rates else 0
        self._dma_moved += columns.dma_rates[-1][2] if columns.dma_rates else 0
        self._num_waiting += wanted
        if self._num_waiting >= ROWS_PER_GROUP:
            self._write_waiting()
        return wanted

    def _write_waiting(self) -> None:
        """Write what waits, all executions of a program at once."""
        for waiting in self._waiting.values():
            for table, batch in waiting.batches():
                self._tables[table].add_batch(batch)
        self._waiting, self._num_waiting = {}, 0

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
                    "input_size": row.input_bytes,
                    "output_size": row.output_bytes,
                    "algorithm_bandwidth": bandwidth,
                    "bus_bandwidth": _bus_bandwidth(bandwidth, row),
                    "trigger_start_ts": row.trigger_ns,
                    "cc_trigger_start_delay": None
                    if row.trigger_ns is None
                    else row.start_ns - row.trigger_ns,
                    "replica_group_id": self._group_number(row.group),
                    "replica_group": None if row.group is None else str([list(row.group)]),
                }
            ]
        )

    def _group_number(self, group: tuple[int, ...] | None) -> int | None:
        """Groups count from 0, by first appearance."""
        return None if group is None else self._groups.setdefault(group, len(self._groups))

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
        self._write_waiting()
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


class _Waiting:
    """Executions of one program whose rows are not written yet."""

    def __init__(self, columns: CourseColumns) -> None:
        self._columns = columns
        self._moves: dict[str, list[Any]] = defaultdict(list)

    def add(self, **values: Any) -> None:
        """One execution on one physical core: by how much its rows are moved."""
        for name, value in values.items():
            self._moves[name].append(value)

    def batches(self) -> Iterator[tuple[str, Any]]:
        """Table and rows."""
        times = len(self._moves["time"])
        for table, rows in self._columns.tables.items():
            yield table, rows.at(self._moves, times)
        known = [at for at, event in enumerate(self._moves["event"]) if event is not None]
        if known and self._columns.entry is not None:
            moves = {name: [values[at] for at in known] for name, values in self._moves.items()}
            yield "Flow", self._columns.entry.at(moves, len(known))


_BUS_FACTORS = {"AllReduce": 2, "AllGather": 1, "ReduceScatter": 1, "AllToAll": 1}


def _bus_bandwidth(bandwidth: float | None, row: CollectiveRow) -> float | None:
    """As nccl-tests counts it: twice the share (n - 1) / n for AllReduce, and so on."""
    if bandwidth is None or row.num_ranks < 1:
        return None
    factor = _BUS_FACTORS.get(row.operation)
    return bandwidth if factor is None else bandwidth * factor * (1 - 1 / row.num_ranks)
