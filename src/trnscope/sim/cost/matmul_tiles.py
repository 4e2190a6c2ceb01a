"""A matrix product in tiles: one operand is held in blocks, the other streamed past it in strips.

Each group of matrix instructions fills up to four banks of PSUM while the other four are emptied.
Operands that lie the wrong way round are turned by the matrix engine, the next strip while this one
is multiplied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trnscope.sim.cost.balance import balanced
from trnscope.sim.cost.lowering.work import Access, MatmulStage, Pass
from trnscope.sim.cost.program import DmaTransfer, Instruction, Loop, item_bytes

if TYPE_CHECKING:
    from trnscope.sim.cost.tiling import Step, TileBuilder

PARTITIONS = 128
COLUMNS = 512
"""Columns of one matrix instruction: a bank of PSUM in float32."""
SBUF_SHARE = 0.8
"""Share of SBUF for the operands."""
PSUM_GROUP = 4
"""Banks of one group."""
MAX_RUN = 65536


def _parts(total: int, size: int) -> int:
    return max(1, -(-total // size))


def emit(builder: TileBuilder, stage: MatmulStage) -> None:
    """Appends the product's loops for one physical core; an empty one costs a tile."""
    batch, m, k, n = (max(1, size) for size in (stage.batch, stage.m, stage.k, stage.n))
    _Product(builder, replace(stage, batch=batch, m=m, k=k, n=n)).emit()


@dataclass(frozen=True)
class _Operand:
    """Steps that bring a part of an operand, and where it then is."""

    loads: tuple[Step, ...]
    turns: tuple[Step, ...]
    tiles: tuple[str, ...]


@dataclass(frozen=True)
class _Plan:
    """Sizes of the blocks and strips, for one choice of the operand that is held."""

    swapped: bool
    """The right operand is held."""
    held: int
    moved: int
    block: int
    strip: int
    chunks: int
    """Parts into which the contracted dimension is cut."""

    @property
    def num_blocks(self) -> int:
        return _parts(self.held, self.block)

    @property
    def num_strips(self) -> int:
        return _parts(self.moved, self.strip)


def _plan(held: int, moved: int, column: int, room: int, swapped: bool) -> _Plan:
    """``column``: bytes a partition of one column of either operand."""
    strip = min(4 * COLUMNS, moved)
    while strip > COLUMNS and 2 * strip * column > room // 2:
        strip = max(COLUMNS, strip // 2)
    chunks = _parts(2 * strip * column, room // 2)
    limit = room // 2 if held * column // chunks <= room // 2 else room // 4
    block = max(PARTITIONS, limit * chunks // column // PARTITIONS * PARTITIONS)
    if chunks > 1:
        block = min(block, PSUM_GROUP * PARTITIONS)
    return _Plan(
        swapped, held, moved, _even(held, block, PARTITIONS), _even(moved, strip, 1), chunks
    )


def _even(total: int, size: int, unit: int) -> int:
    """Parts of whole units and about the asked size, in the number that leaves the least over."""
    units, least = _parts(total, unit), _parts(total, size)
    counts = range(least, least + least // 4 + 2)
    count = min(counts, key=lambda n: (n * _parts(units, n), n))
    return min(total, _parts(units, count) * unit)


class _Product:
    def __init__(self, builder: TileBuilder, stage: MatmulStage) -> None:
        self.builder = builder
        self.stage = stage
        self.batch, m, n = self._shard()
        self.depth = _parts(stage.k, PARTITIONS)
        self.width = item_bytes(stage.dtype)
        room, column = int(builder.sbuf * SBUF_SHARE), self.depth * self.width
        plans = (_plan(m, n, column, room, False), _plan(n, m, column, room, True))
        plan = min(plans, key=self._time)
        self.swapped, self.moved = plan.swapped, plan.moved
        self.block, self.strip, self.chunks = plan.block, plan.strip, plan.chunks
        self.num_blocks, self.num_strips = plan.num_blocks, plan.num_strips
        self.num_tiles = self.batch * self.num_blocks * self.num_strips

    def _shard(self) -> tuple[int, int, int]:
        """This core's part of the batch, or else of the longer side."""
        stage, shards = self.stage, self.builder.shards
        if stage.batch >= shards:
            return _parts(stage.batch, shards), stage.m, stage.n
        if stage.m >= stage.n:
            return stage.batch, _parts(stage.m, shards), stage.n
        return stage.batch, stage.m, _parts(stage.n, shards)

    def _time(self, plan: _Plan) -> float:
        """The longer of the matrix engine's time and the operands' way from HBM, and what nothing
        runs beside: the first block's and strip's way in, and the last tile's way out."""
        stage, core = self.stage, self.builder.core
        turns = (stage.rhs_transpose, stage.lhs_transpose)
        held_turn, moved_turn = turns if plan.swapped else turns[::-1]
        turned = plan.held * held_turn + plan.moved * plan.num_blocks * moved_turn
        passes = self.builder.passes(stage.dtype)
        cycles = self.depth * (_cycles(plan.held, plan.moved) * passes + turned)
        loaded = (plan.held + plan.moved * plan.num_blocks) * stage.k * self.width
        first = (plan.block + plan.strip) * stage.k * self.width
        last = plan.block * plan.strip * item_bytes(stage.out_dtype)
        alone = (first + last) / core.dma_bytes_per_ns
        return max(core.engine("tensor").ns(cycles), loaded / core.dma_bytes_per_ns) + alone

    def emit(self) -> None:
        stage = self.stage
        accesses, turns = (stage.lhs, stage.rhs), (stage.lhs_transpose, stage.rhs_transpose)
        if self.swapped:
            accesses, turns = accesses[::-1], turns[::-1]
        extra = tuple(self.builder.load_once(access) for access in stage.loads if access.once)
        held = self._operand(accesses[0], self.block, turns[0], "held")
        moved = self._operand(accesses[1], self.strip, turns[1], "moving")
        block = [*held.loads, *held.turns, *_loop(self._strip(held, moved, extra), self.num_strips)]
        self.builder.steps += _loop(_loop(block, self.num_blocks), self.batch)

    def _operand(self, access: Access | None, columns: int, turn: bool, name: str) -> _Operand:
        """A part of an operand; without an access it is on the chip already."""
        size = max(1, self.stage.k * columns * self.width)
        if access is None:
            tiles = self.builder.resident_in
            if not turn or not tiles:
                return _Operand((), (), tiles)
            turns, turned = self._turn(tiles[0], size)
            return _Operand((), turns, (turned, *tiles))
        run = self.stage.k * self.width if turn else columns * self.width
        buffers = 1 if self.num_blocks * self.batch == 1 and name == "held" else 2
        tile = self.builder.tile(name, _parts(size, PARTITIONS * self.chunks), buffers)
        if access.laid_out:
            run = _parts(size, PARTITIONS)
        length = max(1, min(access.run_bytes, run, MAX_RUN))
        after = (self.builder.layout,) if access.laid_out else ()
        load = DmaTransfer(name, "load", size, length, reads=after, writes=(tile,))
        if not turn:
            return _Operand((load,), (), (tile,))
        turns, turned = self._turn(tile, size)
        return _Operand((load,), turns, (turned,))

    def _turn(self, tile: str, size: int) -> tuple[tuple[Step, ...], str]:
        """Transposes on the matrix engine, emptied from PSUM by the Vector engine."""
        free = _parts(size // self.width, PARTITIONS)
        psum = self.builder.tile("turned", COLUMNS * 4, buffers=4, psum=True)
        out = self.builder.tile("turned", free * self.width)
        n = min(COLUMNS, free)
        repeat = _parts(free, n)
        dtype = self.stage.dtype
        move = Instruction(
            "TENSOR_COPY", "vector", n, dtype, 128, (psum,), (out,), repeat=repeat, from_psum=True
        )
        turn = Instruction("TRANSPOSE", "tensor", n, dtype, 128, (tile,), (psum,), repeat=repeat)
        return (turn, move), out

    def _strip(self, held: _Operand, moved: _Operand, extra: tuple[str, ...]) -> list[Step]:
        steps = list(moved.loads)
        for part in self.stage.loads:
            if not part.once:
                load, tile = self.builder.load_part(part, PARTITIONS, self.num_tiles)
                steps.append(load)
                extra = (*extra, tile)
        groups, inner = self._products(held.tiles + moved.tiles, extra)
        products = _loop(inner, groups)
        for out in (self.stage.out, *self.stage.stores):
            if out is not None:
                products.append(self._store(out))
        if self.num_tiles > 1:
            return [*steps, *products, *moved.turns]
        return [*steps, *moved.turns, *products]

    def _products(
        self, operands: tuple[str, ...], extra: tuple[str, ...]
    ) -> tuple[int, list[Step]]:
        """A group of matrix instructions and the passes on the way out of PSUM."""
        stage = self.stage
        columns = _parts(self.strip, _parts(self.strip, COLUMNS))
        tiles = _parts(self.block, PARTITIONS) * _parts(self.strip, columns)
        group = max(n for n in range(1, PSUM_GROUP + 1) if tiles % n == 0)
        groups = tiles // group
        banks = self.builder.core.psum_banks // group
        psum = self.builder.tile("psum", group * columns * 4, banks, psum=True)
        flops = stage.flops // max(1, self.builder.shards * self.num_tiles * groups)
        product = Instruction(
            "MATMUL",
            "tensor",
            columns,
            stage.dtype,
            min(PARTITIONS, self.block),
            operands,
            (psum,),
            repeat=group * self.depth,
            flops=flops,
        )
        self.out = self.builder.tile(
            "result", group * groups * columns * item_bytes(stage.out_dtype)
        )
        return groups, [product, *self._way_out(psum, extra, columns, group)]

    def _way_out(self, psum: str, extra: tuple[str, ...], columns: int, group: int) -> list[Step]:
        passes = balanced(self.stage.epilogue) or [
            Pass("ACTIVATE", "scalar", 0, self.stage.out_dtype)
        ]
        steps: list[Step] = []
        current: tuple[str, ...] = (psum, *extra, *self.builder.resident_in)
        for number, work in enumerate(passes):
            last = number == len(passes) - 1
            target = self.out if last else self.builder.tile("epilogue", group * columns * 4)
            writes = (target, *self.builder.resident_out) if last else (target,)
            steps.append(
                Instruction(
                    work.opcode,
                    work.engine,
                    columns,
                    work.dtype,
                    128,
                    current,
                    writes,
                    repeat=group,
                    from_psum=number == 0,
                )
            )
            current = (target,)
        return steps

    def _store(self, access: Access) -> DmaTransfer:
        size = _parts(access.num_bytes, self.builder.shards * self.num_tiles)
        row = min(self.strip, self.moved) * item_bytes(self.stage.out_dtype)
        run = max(1, min(access.run_bytes, row))
        return DmaTransfer("output", "store", size, run, "store", reads=(self.out,))


def _cycles(held: int, moved: int) -> int:
    """Cycles of the matrix engine for a depth of 128."""
    full, rest = divmod(moved, COLUMNS)
    columns = full * COLUMNS + (max(64, rest) if rest else 0)
    return _parts(held, PARTITIONS) * columns


def _loop(steps: list[Step], count: int) -> list[Step]:
    return steps if count == 1 or not steps else [Loop(tuple(steps), count)]
