"""What a NeuronCore executes: engine instructions and DMA transfers over tiles, with loops.

A program names tiles of SBUF and PSUM. An instruction waits for the tiles that it reads to be
written, and for the buffer that it writes to be free of earlier readers; engines and queues work
in program order, each by itself. Loops carry a count, so that a program of a million instructions
stays small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Engine = Literal["tensor", "vector", "scalar", "gpsimd", "sync"]
Direction = Literal["load", "store", "move"]

ITEM_BYTES = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "complex64": 8,
    "float32": 4,
    "tfloat32": 4,
    "int32": 4,
    "uint32": 4,
    "bfloat16": 2,
    "float16": 2,
    "int16": 2,
    "uint16": 2,
    "complex128": 16,
    "complex32": 4,
}
"""Bytes of an element; types that are not listed have one."""


def item_bytes(dtype: str) -> int:
    """Bytes of an element of the type."""
    return ITEM_BYTES.get(dtype, 1)


@dataclass(frozen=True)
class Tile:
    """A rotating set of buffers on the chip."""

    name: str
    bytes_per_partition: int
    buffers: int = 2
    memory: Literal["sbuf", "psum"] = "sbuf"


@dataclass(frozen=True)
class Instruction:
    """One instruction of an engine, or ``repeat`` equal ones back to back."""

    opcode: str
    """As Neuron Explorer shows it: ``TENSOR_TENSOR``."""
    engine: Engine
    elements: int
    """Elements along the free axis, a partition."""
    dtype: str = "float32"
    partitions: int = 128
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    repeat: int = 1
    flops: int = 0
    """Of all repeats together."""
    cycles: float | None = None
    """Cycles of one, where the opcode's formula does not apply."""
    from_psum: bool = False
    """An operand is in PSUM."""
    accumulate: bool = False
    """What is written is added to its content, until somebody reads that."""


@dataclass(frozen=True)
class DmaTransfer:
    """Bytes moved by the DMA engines of the core, or ``repeat`` equal transfers in a row."""

    name: str
    """The value that is moved."""
    direction: Direction
    num_bytes: int
    descriptor_bytes: int
    """Contiguous bytes that one descriptor moves."""
    queue: str = "load"
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    repeat: int = 1
    software: bool = False
    """Descriptors are made by software while it runs (indirect addresses)."""
    ring: bool = False
    """Descriptors were prepared in a ring although the chip could make them itself."""
    transpose: bool = False
    hbm: bool = True
    """One side is HBM."""
    engines: int = 16
    """DMA engines that share it."""


@dataclass(frozen=True)
class Loop:
    """Steps executed ``count`` times."""

    body: tuple[Instruction | DmaTransfer | Loop, ...]
    count: int


@dataclass(frozen=True)
class Program:
    """Work of one physical core."""

    name: str
    tiles: tuple[Tile, ...]
    steps: tuple[Instruction | DmaTransfer | Loop, ...]
    num_cores: int = 1
    """Physical cores that execute it side by side, each on its part."""
    notes: tuple[str, ...] = field(default=())
    """What a reader of its cost should know: a generic lowering, a fallback."""


Steps = tuple["Instruction | DmaTransfer | Loop", ...]


def leaves(steps: Steps, times: int = 1) -> Iterator[tuple[Instruction | DmaTransfer, int]]:
    """Every instruction and transfer with the number of times that it is issued."""
    for step in steps:
        if isinstance(step, Loop):
            yield from leaves(step.body, times * step.count)
        else:
            yield step, times * step.repeat
