"""Tile programs in workload files: loops of loads, engine instructions and stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from benchmarks.accuracy.expressions import Sizes, whole
from benchmarks.accuracy.problems import InputProblem
from trnscope.sim.cost.program import (
    DmaTransfer,
    Engine,
    Instruction,
    Loop,
    Program,
    Tile,
    leaves,
)

Step = Instruction | DmaTransfer | Loop
Row = Mapping[str, Any]


def program(name: str, tiles: Sequence[Row], steps: Sequence[Row], sizes: Sizes) -> Program:
    """A program of one physical core; raises :class:`InputProblem` where a step cannot be one."""
    made = Program(
        name,
        tuple(_tile(row, sizes) for row in tiles),
        tuple(_step(row, sizes) for row in steps),
    )
    _check(made)
    return made


def _check(made: Program) -> None:
    """Every name is a tile's, every engine exists, and every amount is one."""
    known = {tile.name for tile in made.tiles}
    for tile in made.tiles:
        if tile.buffers < 1 or tile.memory not in ("sbuf", "psum"):
            raise InputProblem(f"tile {tile.name!r}: {tile.buffers} buffers in {tile.memory!r}")
    for step, times in leaves(made.steps):
        what = step.opcode if isinstance(step, Instruction) else f"{step.direction} {step.name!r}"
        unknown = [tile for tile in (*step.reads, *step.writes) if tile not in known]
        if unknown:
            raise InputProblem(f"{what}: no tile is named {unknown[0]!r}")
        if isinstance(step, Instruction) and step.engine not in get_args(Engine):
            raise InputProblem(f"{what}: no engine {step.engine!r}")
        amount = step.elements if isinstance(step, Instruction) else step.num_bytes
        if amount < 0 or times < 0:
            raise InputProblem(f"{what}: a negative amount")


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
    direction = next((key for key in ("load", "store", "move") if key in row), None)
    if direction is None:
        raise InputProblem(f"a step is no loop, op, load, store or move: {dict(row)}")
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
