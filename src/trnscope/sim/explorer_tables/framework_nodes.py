"""Sums executions up by the framework's op or graph that they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trnscope.sim.explorer_tables.rows import DeviceExecution, Machine
from trnscope.sim.explorer_tables.spans import Span, merged, total

MAX_SPANS = 10_000
"""Stretches that one node lists."""


@dataclass
class _Node:
    executions: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    read_bytes: int = 0
    write_bytes: int = 0
    adjusted_flops: int = 0
    hardware_flops: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    engine_spans: dict[str, Span] = field(default_factory=dict)


class FrameworkNodes:
    """The nodes of one core's profile, and how they sum up."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._nodes: dict[str, _Node] = {}
        self.num_cut = 0
        """Stretches that were left out."""

    def add(self, number: int, execution: DeviceExecution) -> None:
        """Count an execution for its op."""
        node = self._nodes.setdefault(execution.op, _Node())
        if len(node.spans) < MAX_SPANS:
            node.executions.append(number)
            node.spans.append((execution.start_ns, execution.end_ns))
        else:
            self.num_cut += 1
        course = execution.course
        if course is None:
            return
        cores, totals = self._machine.physical_cores, course.totals
        node.read_bytes += cores * totals.hbm_read_bytes
        node.write_bytes += cores * totals.hbm_write_bytes
        node.adjusted_flops += cores * (totals.adjusted_flops - totals.adjusted_transpose_flops)
        node.hardware_flops += cores * totals.adjusted_flops
        for engine, count in totals.instructions.items():
            node.instructions[engine] = node.instructions.get(engine, 0) + cores * count
            first, last = node.engine_spans.get(engine, (execution.start_ns, execution.end_ns))
            span = (min(first, execution.start_ns), max(last, execution.end_ns))
            node.engine_spans[engine] = span

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of FrameworkNode, by first start."""
        for name, node in sorted(self._nodes.items(), key=lambda item: item[1].spans[0]):
            yield self._row(name, node)

    def _row(self, name: str, node: _Node) -> dict[str, Any]:
        spans = merged(node.spans)
        peak = self._machine.peak_bf16_flops * self._machine.physical_cores
        possible = peak * total(spans) / 1e9
        engines = ("tensor", "scalar", "sync", "gpsimd", "vector")
        return {
            "node_name": name,
            "children_names": "[]",
            "parent_name": "",
            "children_ids": _listed(node.executions),
            "start_ts": min(start for start, _ in node.spans),
            "end_ts": max(end for _, end in node.spans),
            "time_intervals": str([list(span) for span in spans]),
            "hfu": 100 * node.hardware_flops / possible if possible else None,
            "mfu": 100 * node.adjusted_flops / possible if possible else None,
            "hbm_read_bytes": node.read_bytes,
            "hbm_write_bytes": node.write_bytes,
            **{f"{one}_engine_instruction_count": node.instructions.get(one, 0) for one in engines},
            **{f"total_time_{one}": _listed(node.engine_spans.get(one, ())) for one in engines},
        }


def _listed(values: Any) -> str:
    return str(list(values))
