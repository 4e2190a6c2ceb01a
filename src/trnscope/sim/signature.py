"""What is executed on the simulated device, as the cost model sees it: shapes and types, no data.

These types cross between the device (``csrc``, which fills them once for each new signature), the
cost model (``cost``) and the writers of profiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Scalar = bool | int | float | str | None
Attribute = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without its data."""

    shape: tuple[int, ...]
    """Elements along each dimension."""
    dtype: str
    """The type as torch names it, without ``torch.``: ``bfloat16``."""
    strides: tuple[int, ...] | None = None
    """Distance in elements along each dimension; None: contiguous."""


@dataclass(frozen=True)
class OpSignature:
    """One ATen op with everything that decides how long it takes."""

    name: str
    """With its namespace, without the overload: ``aten::addmm``."""
    inputs: tuple[TensorSpec | None, ...]
    """Tensor arguments in the order of the schema, lists flattened; None: an optional left out."""
    outputs: tuple[TensorSpec, ...]
    attributes: tuple[tuple[str, Attribute], ...] = ()
    """The other arguments, by the schema's name: ``(("dim", (1,)), ("keepdim", True))``."""


@dataclass(frozen=True)
class GraphNode:
    """An op of a compiled graph and the values it reads and makes."""

    op: OpSignature
    inputs: tuple[int | None, ...]
    """Value numbers, aligned with ``op.inputs``."""
    outputs: tuple[int, ...]
    """Value numbers, aligned with ``op.outputs``."""


@dataclass(frozen=True)
class GraphSpec:
    """A compiled graph: ops in topological order, joined by value numbers."""

    name: str
    nodes: tuple[GraphNode, ...]
    inputs: tuple[int, ...] = ()
    """Values that come from HBM: parameters and activations. A value that is neither an input nor
    made by a node is a constant of the graph."""
    outputs: tuple[int, ...] = ()
    """Values that must be in HBM when the graph ends."""


CollectiveKind = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send",
    "recv",
]


@dataclass(frozen=True)
class CollectiveSpec:
    """A collective over a group of logical cores."""

    kind: CollectiveKind
    num_bytes: int
    """Size of the whole buffer on one rank (nccom-test's size)."""
    num_ranks: int
    dtype: str = "bfloat16"


@dataclass(frozen=True)
class ExecutionCost:
    """What one execution costs by the model; simulated, never measured."""

    host_ns: int
    """Time of the host to dispatch it, compilation not counted."""
    device_ns: int
    """Time from its start to its end on the device, its fixed cost included."""
    compile_ns: int = 0
    """Time of the compiler, paid once for a new signature."""
    on_cpu: bool = False
    """True where the op, or one of the graph's, falls back to the CPU: the device has none."""
    flops: int = 0
    hbm_read_bytes: int = 0
    hbm_write_bytes: int = 0
    engine_ns: dict[str, int] = field(default_factory=dict)
    """Busy time by engine: ``tensor``, ``vector``, ``scalar``, ``gpsimd``, ``sync``, ``dma``."""
