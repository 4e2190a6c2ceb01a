"""Cuts stages into tiles: loops of loads, engine instructions and stores for one physical core.

Where a logical core is several physical ones, each takes its part of the rows (or of the columns,
or of the heads) and executes the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost.lowering.work import (
    Access,
    AttentionStage,
    MatmulStage,
    MoveStage,
    Pass,
    RowStage,
    Stage,
)
from trnscope.sim.cost.program import (
    DmaTransfer,
    Engine,
    Instruction,
    Loop,
    Program,
    Tile,
    item_bytes,
)

Step = Instruction | DmaTransfer | Loop

PARTITIONS = 128
MATMUL_COLUMNS = 512
"""Columns of one matrix instruction: a bank of PSUM in float32."""
ROW_TILE_BYTES = 16384
"""Bytes a partition of one tile of element-wise work."""
MOVE_BYTES = 4 << 20
"""Bytes of one transfer between places in HBM."""
SBUF_SHARE = 0.8
"""Share of SBUF for the operands of a matrix product."""
PSUM_GROUP = 4
"""Banks filled by one group of matrix instructions while the other half is emptied."""


def _parts(total: int, size: int) -> int:
    return max(1, -(-total // size))


@dataclass(frozen=True)
class Resident:
    """A value that stays in SBUF: the tile that holds it and the bytes of it a partition."""

    tile: str
    bytes_per_partition: int


class TileBuilder:
    """Collects the tiles and steps of one program."""

    def __init__(self, core: NeuronCore, shards: int) -> None:
        self.core = core
        self.shards = shards
        self.tiles: list[Tile] = []
        self.steps: list[Step] = []
        self.sbuf = core.sbuf_bytes_per_partition
        self.resident_in: tuple[str, ...] = ()
        """Tiles that the next stage's first instruction reads."""
        self.resident_out: tuple[str, ...] = ()
        """Tiles that the next stage's last instruction writes."""

    def tile(self, name: str, size: int, buffers: int = 2, psum: bool = False) -> str:
        """A new tile; its full name is unique in the program."""
        full = f"{name}.{len(self.tiles)}"
        self.tiles.append(Tile(full, max(1, size), buffers, "psum" if psum else "sbuf"))
        return full

    def program(self, name: str, notes: tuple[str, ...] = ()) -> Program:
        """What was collected."""
        return Program(name, tuple(self.tiles), tuple(self.steps), self.shards, notes)

    def add(self, stage: Stage) -> None:
        """Appends a stage."""
        if isinstance(stage, RowStage):
            self._rows(stage)
        elif isinstance(stage, MatmulStage):
            MatmulTiling(self, stage).emit()
        elif isinstance(stage, AttentionStage):
            self._attention(stage)
        else:
            self._move(stage)

    # Element-wise work and reductions

    def _rows(self, stage: RowStage) -> None:
        elements = _parts(stage.elements, self.shards)
        partitions = min(stage.partitions, elements)
        free = _parts(elements, partitions)
        width = item_bytes(stage.dtype)
        count = _parts(free * width, self._row_tile_bytes(stage))
        small = [a for a in stage.loads if a.once]
        inputs = [self._load_once(access) for access in small]
        body: list[Step] = []
        for access in stage.loads:
            if not access.once:
                step, tile = self._load_part(access, partitions, count)
                body.append(step)
                inputs.append(tile)
        last = self._passes(stage.passes, partitions, count, inputs, body)
        body += [self._store_part(access, partitions, count, last) for access in stage.stores]
        self.steps += body if count == 1 else [Loop(tuple(body), count)]

    def _row_tile_bytes(self, stage: RowStage) -> int:
        streams = 2 * (len(stage.loads) + len(stage.passes) + 1)
        return max(512, min(ROW_TILE_BYTES, self.sbuf // max(1, streams)))

    def _passes(
        self,
        passes: Sequence[Pass],
        partitions: int,
        count: int,
        inputs: Sequence[str],
        body: list[Step],
    ) -> tuple[str, ...]:
        """Each pass reads what the one before it wrote; the first reads every input."""
        current = (*inputs, *self.resident_in)
        for number, work in enumerate(balanced(passes)):
            n = _parts(work.elements, self.shards * partitions * count)
            out = self.tile(work.opcode.lower(), n * item_bytes(work.dtype))
            writes = (out, *self.resident_out) if number == len(passes) - 1 else (out,)
            body.append(instruction(work, n, partitions, current, writes))
            current = (out,)
        return current

    def _load_once(self, access: Access) -> str:
        size = max(1, access.num_bytes)
        tile = self.tile("weight", _parts(size, PARTITIONS), buffers=1)
        self.steps.append(
            DmaTransfer("weight", "load", size, min(access.run_bytes, 4096), writes=(tile,))
        )
        return tile

    def _load_part(self, access: Access, partitions: int, count: int) -> tuple[DmaTransfer, str]:
        size = _parts(access.num_bytes, self.shards * count)
        row = _parts(size, partitions)
        tile = self.tile("in", row)
        run = max(1, min(access.run_bytes, row))
        step = DmaTransfer("input", "load", size, run, writes=(tile,), software=access.indirect)
        return step, tile

    def _store_part(
        self, access: Access, partitions: int, count: int, source: tuple[str, ...]
    ) -> DmaTransfer:
        size = _parts(access.num_bytes, self.shards * count)
        run = max(1, min(access.run_bytes, _parts(size, partitions)))
        return DmaTransfer(
            "output", "store", size, run, "store", reads=source, software=access.indirect
        )

    # Data movement

    def _move(self, stage: MoveStage) -> None:
        loaded = sum(access.num_bytes for access in stage.loads)
        stored = sum(access.num_bytes for access in stage.stores)
        size = _parts(max(loaded, stored, 1), self.shards)
        accesses = [a for a in (*stage.loads, *stage.stores) if a.num_bytes]
        run = min((a.run_bytes for a in accesses if not a.once), default=size)
        indirect = any(access.indirect for access in accesses)
        count = _parts(size, MOVE_BYTES)
        step = DmaTransfer(
            "move",
            "move",
            _parts(size, count),
            max(1, run),
            reads=self.resident_in,
            writes=self.resident_out,
            software=indirect,
        )
        self.steps += [step] if count == 1 else [Loop((step,), count)]

    # Attention

    def _attention(self, stage: AttentionStage) -> None:
        heads = _parts(stage.batch, self.shards)
        per_head = self.shards * heads
        inputs = []
        body: list[Step] = []
        for access in stage.loads:
            size = _parts(access.num_bytes, per_head)
            run = max(1, min(access.run_bytes, stage.head * item_bytes(stage.dtype) * 16))
            inputs.append(self.tile("qkv", _parts(size, PARTITIONS)))
            body.append(DmaTransfer("qkv", "load", size, run, writes=(inputs[-1],)))
        body.append(self._attention_tiles(stage, tuple(inputs)))
        out = self.tiles[-1].name
        for access in stage.stores:
            size = _parts(access.num_bytes, per_head)
            run = max(1, min(access.run_bytes, stage.value_head * item_bytes(stage.dtype)))
            body.append(DmaTransfer("output", "store", size, run, "store", reads=(out,)))
        self.steps.append(Loop(tuple(body), heads))

    def _attention_tiles(self, stage: AttentionStage, inputs: tuple[str, ...]) -> Loop:
        """One tile of 128 queries by up to 512 keys."""
        keys = min(MATMUL_COLUMNS, stage.key)
        blocks = _parts(stage.query, PARTITIONS) * _parts(stage.key, keys)
        if stage.causal and blocks > 1:
            blocks = (blocks + 1) // 2
        queries = min(PARTITIONS, stage.query)
        dtype, parts = stage.dtype, _parts(keys, PARTITIONS)
        scores = self.tile("scores", keys * 4, psum=True)
        peak = self.tile("max", 4)
        weights = self.tile("weights", keys * item_bytes(dtype))
        turned_psum = self.tile("turned", keys * 4, psum=True)
        turned = self.tile("turned", keys * item_bytes(dtype))
        product = self.tile("product", stage.value_head * 4, psum=True)
        result = self.tile("attention", stage.value_head * 4, buffers=2)
        depth = _parts(stage.head, PARTITIONS)
        extra = (stage.products - 2) // 3
        tile_flops = 2 * queries * keys
        body: list[Step] = [
            Instruction(
                "MATMUL",
                "tensor",
                keys,
                dtype,
                queries,
                inputs + self.resident_in,
                (scores,),
                repeat=depth * (1 + extra),
                flops=tile_flops * stage.head * (1 + extra),
            ),
            Instruction(
                "TENSOR_REDUCE",
                "vector",
                keys,
                "float32",
                queries,
                (scores,),
                (peak,),
                from_psum=True,
            ),
            Instruction(
                "ACTIVATE_REDUCE",
                "scalar",
                keys,
                "float32",
                queries,
                (scores, peak),
                (weights,),
                from_psum=True,
            ),
            Instruction(
                "TRANSPOSE",
                "tensor",
                min(PARTITIONS, keys),
                dtype,
                queries,
                (weights,),
                (turned_psum,),
                repeat=parts,
            ),
            Instruction(
                "TENSOR_COPY",
                "vector",
                keys,
                dtype,
                queries,
                (turned_psum,),
                (turned,),
                from_psum=True,
                repeat=1 + extra,
            ),
            Instruction(
                "MATMUL",
                "tensor",
                stage.value_head,
                dtype,
                queries,
                (turned,),
                (product,),
                repeat=parts * (1 + 2 * extra),
                flops=tile_flops * stage.value_head * (1 + 2 * extra),
            ),
            Instruction(
                "SCALAR_TENSOR_TENSOR",
                "vector",
                stage.value_head,
                dtype,
                queries,
                (product,),
                (result, *self.resident_out),
                from_psum=True,
                repeat=1 + 2 * extra,
            ),
        ]
        return Loop(tuple(body), blocks)


MOVABLE = ("TENSOR_SCALAR", "TENSOR_COPY", "CAST", "MEMSET")
"""Passes that the Scalar engine does as well as the Vector engine."""


def balanced(passes: Sequence[Pass]) -> list[Pass]:
    """Movable passes go to the engine of the two that has less to do."""
    load = {"vector": 0, "scalar": 0}
    for work in passes:
        if work.opcode not in MOVABLE and work.engine in load:
            load[work.engine] += work.elements * (2 if work.opcode == "TENSOR_TENSOR" else 1)
    found = []
    for work in passes:
        if work.opcode in MOVABLE and work.engine in load:
            engine: Engine = (
                "scalar" if load["scalar"] + work.elements < load["vector"] else "vector"
            )
            load[engine] += work.elements
            opcode = "ACTIVATE" if engine == "scalar" else work.opcode
            work = replace(work, engine=engine, opcode=opcode)
        found.append(work)
    return found


def instruction(
    work: Pass, elements: int, partitions: int, reads: tuple[str, ...], writes: tuple[str, ...]
) -> Instruction:
    """A pass over one tile."""
    cycles = None if work.cycles_per_element is None else work.cycles_per_element * elements
    return Instruction(
        work.opcode, work.engine, elements, work.dtype, partitions, reads, writes, cycles=cycles
    )


class MatmulTiling:
    """One matrix product: one operand is held in blocks, the other is streamed past it."""

    def __init__(self, builder: TileBuilder, stage: MatmulStage) -> None:
        self.builder = builder
        self.stage = stage
        self.batch, self.m, self.n = self._shard()
        self.swapped = self._cycles(self.n, self.m) < self._cycles(self.m, self.n)
        self.held, self.moved = (self.n, self.m) if self.swapped else (self.m, self.n)
        self.depth = _parts(stage.k, PARTITIONS)
        self.width = item_bytes(stage.dtype)
        self._blocks()

    def _shard(self) -> tuple[int, int, int]:
        stage, shards = self.stage, self.builder.shards
        if stage.batch >= shards:
            return _parts(stage.batch, shards), stage.m, stage.n
        if stage.m >= stage.n:
            return stage.batch, _parts(stage.m, shards), stage.n
        return stage.batch, stage.m, _parts(stage.n, shards)

    @staticmethod
    def _cycles(held: int, moved: int) -> int:
        """Cycles for a depth of 128."""
        full, rest = divmod(moved, MATMUL_COLUMNS)
        columns = full * MATMUL_COLUMNS + (max(64, rest) if rest else 0)
        return _parts(held, PARTITIONS) * columns

    def _blocks(self) -> None:
        """Sizes in SBUF: a block of the held operand, a strip of the moving one."""
        room = int(self.builder.sbuf * SBUF_SHARE)
        column = self.depth * self.width
        strip = min(4 * MATMUL_COLUMNS, self.moved)
        while strip > MATMUL_COLUMNS and 2 * strip * column > room // 2:
            strip = max(MATMUL_COLUMNS, strip // 2)
        self.chunks = _parts(2 * strip * column, room // 2)
        self.strip = strip
        whole = self.held * column // self.chunks
        limit = room // 2 if whole <= room // 2 else room // 4
        block = max(PARTITIONS, limit * self.chunks // column // PARTITIONS * PARTITIONS)
        if self.chunks > 1:
            block = min(block, PSUM_GROUP * PARTITIONS)
        self.block = min(self.held, block)
        self.num_blocks = _parts(self.held, self.block)
        self.num_strips = _parts(self.moved, self.strip)

    def emit(self) -> None:
        """Appends the loops."""
        stage = self.stage
        held_access, moved_access = (
            (stage.rhs, stage.lhs) if self.swapped else (stage.lhs, stage.rhs)
        )
        turns = (stage.rhs_transpose, stage.lhs_transpose)
        held_turn, moved_turn = turns if self.swapped else turns[::-1]
        extra = [self.builder._load_once(access) for access in stage.loads if access.once]
        held_steps, held_tile = self._operand(held_access, self.block, held_turn, "held")
        inner = self._strip_steps(moved_access, moved_turn, held_tile, tuple(extra))
        block: list[Step] = [*held_steps, *_loop(inner, self.num_strips)]
        self.builder.steps += _loop(_loop(block, self.num_blocks), self.batch)

    def _operand(
        self, access: Access | None, columns: int, turn: bool, name: str
    ) -> tuple[list[Step], tuple[str, ...]]:
        """Loads one part of an operand and turns it where it lies the other way round."""
        if access is None:
            return self._resident(columns, turn)
        elements = self.depth * PARTITIONS if self.chunks == 1 else self.stage.k
        rows = min(self.stage.k, elements)
        size = max(1, rows * columns * self.width)
        run = self.stage.k * self.width if turn else columns * self.width
        buffers = 1 if self.num_blocks * self.batch == 1 and name == "held" else 2
        tile = self.builder.tile(name, _parts(size, PARTITIONS * self.chunks), buffers)
        load = DmaTransfer(
            name, "load", size, max(1, min(access.run_bytes, run, 65536)), writes=(tile,)
        )
        if not turn:
            return [load], (tile,)
        return [load, *self._turn(tile, size)], (self.builder.tiles[-1].name,)

    def _resident(self, columns: int, turn: bool) -> tuple[list[Step], tuple[str, ...]]:
        """An operand that is on the chip already."""
        tiles = self.builder.resident_in
        if not turn or not tiles:
            return [], tiles
        size = max(1, self.stage.k * columns * self.width)
        return self._turn(tiles[0], size), (self.builder.tiles[-1].name, *tiles)

    def _turn(self, tile: str, size: int) -> list[Step]:
        """Transposes on the matrix engine, emptied from PSUM by the Scalar or Vector engine."""
        free = _parts(size // self.width, PARTITIONS)
        psum = self.builder.tile("turned", MATMUL_COLUMNS * 4, buffers=4, psum=True)
        out = self.builder.tile("turned", free * self.width)
        n = min(MATMUL_COLUMNS, free)
        repeat = _parts(free, n)
        dtype = self.stage.dtype
        return [
            Instruction("TRANSPOSE", "tensor", n, dtype, 128, (tile,), (psum,), repeat=repeat),
            Instruction(
                "TENSOR_COPY",
                "vector",
                n,
                dtype,
                128,
                (psum,),
                (out,),
                repeat=repeat,
                from_psum=True,
            ),
        ]

    def _strip_steps(
        self,
        access: Access | None,
        turn: bool,
        held: tuple[str, ...],
        extra: tuple[str, ...],
    ) -> list[Step]:
        steps, moved = self._operand(access, self.strip, turn, "moving")
        stage = self.stage
        for part in stage.loads:
            if not part.once:
                load, tile = self.builder._load_part(part, PARTITIONS, self._num_tiles())
                steps.append(load)
                extra = (*extra, tile)
        groups, inner = self._products(held + moved, extra)
        steps += _loop(inner, groups)
        for out in (stage.out, *stage.stores):
            if out is not None:
                steps.append(self._store(out))
        return steps

    def _num_tiles(self) -> int:
        return self.batch * self.num_blocks * self.num_strips

    def _products(
        self, operands: tuple[str, ...], extra: tuple[str, ...]
    ) -> tuple[int, list[Step]]:
        """Groups of up to four banks: matrix instructions, then the way out of PSUM."""
        columns = min(MATMUL_COLUMNS, self.strip)
        tiles = _parts(self.block, PARTITIONS) * _parts(self.strip, columns)
        group = min(PSUM_GROUP, tiles)
        groups = _parts(tiles, group)
        psum = self.builder.tile("psum", group * columns * 4, psum=True)
        stage = self.stage
        flops = stage.flops // max(1, self.builder.shards * self._num_tiles() * groups)
        steps: list[Step] = [
            Instruction(
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
        ]
        out_bytes = group * groups * columns * item_bytes(stage.out_dtype)
        self.out = self.builder.tile("result", out_bytes)
        passes = stage.epilogue or (Pass("TENSOR_COPY", "vector", 0, stage.out_dtype),)
        current: tuple[str, ...] = (psum, *extra)
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
        return groups, steps

    def _store(self, access: Access) -> DmaTransfer:
        size = _parts(access.num_bytes, self.builder.shards * self._num_tiles())
        row = min(self.strip, self.moved) * item_bytes(self.stage.out_dtype)
        return DmaTransfer(
            "output", "store", size, max(1, min(access.run_bytes, row)), "store", reads=(self.out,)
        )


def _loop(steps: list[Step], count: int) -> list[Step]:
    return steps if count == 1 or not steps else [Loop(tuple(steps), count)]
