"""Cuts stages into tiles: loops of loads, engine instructions and stores for one physical core.

Where a logical core is several physical ones, each takes its part of the rows (or of the columns,
or of the heads) and executes the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost import attention_tiles, matmul_tiles
from trnscope.sim.cost.balance import balanced
from trnscope.sim.cost.engines import EngineModel
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
    Instruction,
    Loop,
    Program,
    Tile,
    item_bytes,
)

Step = Instruction | DmaTransfer | Loop

PARTITIONS = 128
ROW_TILE_BYTES = 16384
"""Bytes a partition of one tile of element-wise work."""
ROW_TILES = 4
"""Tiles at least, so that loads, work and stores overlap, unless they would be shorter than"""
ROW_TILE_LEAST = 2048
"""bytes a partition."""
LAYOUT_RUN = 4096
"""Contiguous bytes of that pass: a row of tiles, turned on the way."""
MOVE_BYTES = 4 << 20
"""Bytes of one transfer between places in HBM."""


def parts(total: int, size: int) -> int:
    """Pieces of that size; at least one."""
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
        self.passes = EngineModel(core).passes
        self.tiles: list[Tile] = []
        self.steps: list[Step] = []
        self.sbuf = core.sbuf_bytes_per_partition
        self.layout = self.tile("layout", 1, buffers=1)
        """Stands for operands that were laid out anew in HBM."""
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

    def lay_out(self, num_bytes: int) -> None:
        """Begins the program with the pass that turns operands of so many bytes in HBM."""
        if not num_bytes:
            return
        share = parts(num_bytes, self.shards)
        count = parts(share, MOVE_BYTES)
        move = DmaTransfer(
            "layout", "move", parts(share, count), LAYOUT_RUN, "layout", writes=(self.layout,)
        )
        self.steps.insert(0, Loop((move,), count))

    def add(self, stage: Stage) -> None:
        """Appends a stage."""
        if isinstance(stage, RowStage):
            self._rows(stage)
        elif isinstance(stage, MatmulStage):
            matmul_tiles.emit(self, stage)
        elif isinstance(stage, AttentionStage):
            attention_tiles.emit(self, stage)
        else:
            self._move(stage)

    # Element-wise work and reductions

    def _rows(self, stage: RowStage) -> None:
        shards = self.shards if stage.rows is None else min(self.shards, max(1, stage.rows))
        elements = parts(stage.elements, shards)
        partitions = min(stage.partitions, elements)
        if stage.rows is not None:
            partitions = min(partitions, parts(stage.rows, shards))
        free = parts(elements, partitions)
        width = item_bytes(stage.dtype)
        count = max(
            parts(free * width, self._row_tile_bytes(stage)),
            min(ROW_TILES, free * width // ROW_TILE_LEAST),
            1,
        )
        small = [a for a in stage.loads if a.once]
        inputs = [self.load_once(access) for access in small]
        body: list[Step] = []
        for access in stage.loads:
            if not access.once:
                step, tile = self.load_part(access, partitions, count)
                body.append(step)
                inputs.append(tile)
        last = self._chain(stage.passes, shards * partitions, partitions, count, inputs, body)
        body += [self._store_part(access, partitions, count, last) for access in stage.stores]
        self.steps += body if count == 1 else [Loop(tuple(body), count)]

    def _row_tile_bytes(self, stage: RowStage) -> int:
        streams = 2 * (len(stage.loads) + len(stage.passes) + 1)
        return max(512, min(ROW_TILE_BYTES, self.sbuf // max(1, streams)))

    def _chain(
        self,
        passes: Sequence[Pass],
        all_partitions: int,
        partitions: int,
        count: int,
        inputs: Sequence[str],
        body: list[Step],
    ) -> tuple[str, ...]:
        """Each pass reads what the one before it wrote; the first reads every input."""
        current = (*inputs, *self.resident_in)
        for number, work in enumerate(balanced(passes)):
            n = parts(work.elements, all_partitions * count)
            out = self.tile(work.opcode.lower(), n * item_bytes(work.dtype))
            writes = (out, *self.resident_out) if number == len(passes) - 1 else (out,)
            body.append(instruction(work, n, partitions, current, writes))
            current = (out,)
        return current

    def load_once(self, access: Access) -> str:
        """Loads a small operand ahead of a loop; its tile."""
        size = max(1, access.num_bytes)
        tile = self.tile("weight", parts(size, PARTITIONS), buffers=1)
        self.steps.append(
            DmaTransfer("weight", "load", size, min(access.run_bytes, 4096), writes=(tile,))
        )
        return tile

    def load_part(self, access: Access, partitions: int, count: int) -> tuple[DmaTransfer, str]:
        """One tile of an operand: the transfer and its tile."""
        size = parts(access.num_bytes, self.shards * count)
        row = parts(size, partitions)
        tile = self.tile("in", row)
        run = max(1, min(access.run_bytes, row))
        step = DmaTransfer("input", "load", size, run, writes=(tile,), software=access.indirect)
        return step, tile

    def _store_part(
        self, access: Access, partitions: int, count: int, source: tuple[str, ...]
    ) -> DmaTransfer:
        size = parts(access.num_bytes, self.shards * count)
        run = max(1, min(access.run_bytes, parts(size, partitions)))
        return DmaTransfer(
            "output", "store", size, run, "store", reads=source, software=access.indirect
        )

    # Data movement

    def _move(self, stage: MoveStage) -> None:
        loaded = sum(access.num_bytes for access in stage.loads)
        stored = sum(access.num_bytes for access in stage.stores)
        size = parts(max(loaded, stored, 1), self.shards)
        accesses = [a for a in (*stage.loads, *stage.stores) if a.num_bytes]
        run = min((a.run_bytes for a in accesses if not a.once), default=size)
        indirect = any(access.indirect for access in accesses)
        count = parts(size, MOVE_BYTES)
        step = DmaTransfer(
            "move",
            "move",
            parts(size, count),
            max(1, run),
            reads=self.resident_in,
            writes=self.resident_out,
            software=indirect,
        )
        self.steps += [step] if count == 1 else [Loop((step,), count)]


def instruction(
    work: Pass, elements: int, partitions: int, reads: tuple[str, ...], writes: tuple[str, ...]
) -> Instruction:
    """A pass over one tile."""
    cycles = None if work.cycles_per_element is None else work.cycles_per_element * elements
    return Instruction(
        work.opcode, work.engine, elements, work.dtype, partitions, reads, writes, cycles=cycles
    )
