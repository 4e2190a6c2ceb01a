"""Tile programs in workload files: loops of loads, engine instructions and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.accuracy.expressions import Sizes, whole
from trnscope.sim.cost.program import DmaTransfer, Instruction, Loop, Program, Tile

Step = Instruction | DmaTransfer | Loop
Row = Mapping[str, Any]


def program(name: str, tiles: Sequence[Row], steps: Sequence[Row], sizes: Sizes) -> Program:
    """A program of one physical core."""
    return Program(
        name,
        tuple(_tile(row, sizes) for row in tiles),
        tuple(_step(row, sizes) for row in steps),
    )


def _tile(row: Row, sizes: Sizes) -> Tile:
    return Tile(
        row["name"],
        whole(row.get("bytes", 0), sizes),
        int(row.get("buffers", 2)),
        row.get("memory", "sbuf"),
    )


def _step(row: Row, sizes: Sizes) -> Step:
    if "loop" in row:
        return Loop(tuple(_step(part, sizes) for part in row["body"]), whole(row["loop"], sizes))
    if "op" in row:
        return _instruction(row, sizes)
    return _transfer(row, sizes)


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _instruction(row: Row, sizes: Sizes) -> Instruction:
    cycles = row.get("cycles")
    return Instruction(
        row["op"],
        row["engine"],
        whole(row["n"], sizes),
        row.get("dtype", "float32"),
        whole(row.get("partitions", 128), sizes),
        _names(row.get("reads", ())),
        _names(row.get("writes", ())),
        repeat=whole(row.get("repeat", 1), sizes),
        flops=whole(row.get("flops", 0), sizes),
        cycles=None if cycles is None else float(whole(cycles, sizes)),
        from_psum=bool(row.get("psum", False)),
        accumulate=bool(row.get("accumulate", False)),
    )


def _transfer(row: Row, sizes: Sizes) -> DmaTransfer:
    direction = next(key for key in ("load", "store", "move") if key in row)
    tile = row[direction]
    return DmaTransfer(
        tile or direction,
        direction,  # type: ignore[arg-type]
        whole(row["bytes"], sizes),
        whole(row.get("run", row["bytes"]), sizes),
        row.get("queue", direction),
        reads=_names(tile) if direction == "store" and tile else _names(row.get("reads", ())),
        writes=_names(tile) if direction == "load" and tile else (),
        repeat=whole(row.get("repeat", 1), sizes),
        software=bool(row.get("software", False)),
        ring=bool(row.get("ring", False)),
        engines=int(row.get("engines", 16)),
    )
