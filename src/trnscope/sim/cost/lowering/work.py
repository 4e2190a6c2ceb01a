"""What an op asks of the chip, before it is cut into tiles.

An op is a sequence of stages. Compiled graphs join the element-wise stages of neighbouring ops and
keep values on the chip between them, so a stage names what it reads and writes by the number of the
op's input or output rather than by an address.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from trnscope.sim.cost.lowering.opcodes import Opcodes
from trnscope.sim.cost.program import Engine, item_bytes
from trnscope.sim.signature import CollectiveSpec, OpSignature, TensorSpec

INTERNAL = -1
"""The number of a value that an op makes and uses up itself."""


@dataclass(frozen=True)
class Access:
    """A tensor that a stage reads from or writes to HBM."""

    value: int
    """Number of the op's input or output."""
    num_bytes: int
    run_bytes: int
    """Contiguous bytes in HBM."""
    once: bool = False
    """Small and used by every tile: read once (a weight of a norm, a scalar)."""
    indirect: bool = False
    """Addresses come from a tensor: descriptors are made while it runs."""
    laid_out: bool = False
    """It is read after the pass that lays out a graph's inputs."""


@dataclass(frozen=True)
class Pass:
    """One instruction over all elements."""

    opcode: str
    engine: Engine
    elements: int
    dtype: str
    cycles_per_element: float | None = None
    """Where the opcode's formula does not apply."""
    sums: bool = True
    """A reduction that adds, as ACTIVATE can on its way; extrema and products cannot."""


@dataclass(frozen=True)
class RowStage:
    """Element-wise work and reductions: each tile is loaded, passed through engines and stored."""

    elements: int
    dtype: str
    passes: tuple[Pass, ...]
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    partitions: int = 128
    rows: int | None = None
    """Rows that cannot be cut (each is sorted as a whole): no more of them work at a time."""


@dataclass(frozen=True)
class MatmulStage:
    """``batch`` products of (m, k) by (k, n)."""

    batch: int
    m: int
    k: int
    n: int
    dtype: str
    out_dtype: str
    lhs: Access | None
    rhs: Access | None
    out: Access | None
    lhs_transpose: bool = False
    """The left operand must be turned on the chip: it has k along its rows in HBM."""
    rhs_transpose: bool = False
    epilogue: tuple[Pass, ...] = ()
    """Passes over the result on its way out of PSUM."""
    loads: tuple[Access, ...] = ()
    """Further tensors that the epilogue reads."""
    stores: tuple[Access, ...] = ()
    """Further tensors that the epilogue writes."""

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.m * self.k * self.n


@dataclass(frozen=True)
class AttentionStage:
    """Softmax attention in tiles that stay on the chip."""

    batch: int
    """Batch times heads of the query."""
    query: int
    key: int
    head: int
    value_head: int
    dtype: str
    causal: bool
    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    products: int = 2
    """Matrix products a pair of tiles: 2 forward, 5 backward."""

    @property
    def flops(self) -> int:
        """Multiplications and additions; half of them where the mask is causal."""
        pairs = self.batch * self.query * self.key
        dims = {2: self.head + self.value_head, 5: 3 * self.head + 2 * self.value_head}
        full = 2 * pairs * dims.get(self.products, self.products * self.head)
        return full // 2 if self.causal else full


@dataclass(frozen=True)
class MoveStage:
    """Bytes moved by DMA alone: concatenation, gather, scatter, fill."""

    loads: tuple[Access, ...]
    stores: tuple[Access, ...]


Stage = RowStage | MatmulStage | AttentionStage | MoveStage


@dataclass(frozen=True)
class Lowered:
    """An op's stages and what is to be known of them."""

    stages: tuple[Stage, ...]
    on_cpu: bool = False
    collective: CollectiveSpec | None = None
    """The op is a collective; it has no stages."""
    notes: tuple[str, ...] = field(default=())

    @property
    def flops(self) -> int:
        """Of the matrix engine."""
        return sum(s.flops for s in self.stages if isinstance(s, MatmulStage | AttentionStage))


def laid_out(stage: MatmulStage) -> MatmulStage:
    """The product with its right operand turned beforehand."""
    rhs = None if stage.rhs is None else replace(stage.rhs, laid_out=True)
    return replace(stage, rhs=rhs, rhs_transpose=False)


class UnexpectedOperandsError(Exception):
    """The op does not have the operands that its lowering is written for."""


def operand(op: OpSignature, index: int, rank: int = 0) -> TensorSpec:
    """An input that must be there, with at least so many dimensions."""
    spec = op.inputs[index] if index < len(op.inputs) else None
    if spec is None or len(spec.shape) < rank:
        raise UnexpectedOperandsError(f"{op.name}: operand {index} is missing or has too few axes")
    return spec


def result(op: OpSignature, index: int = 0) -> TensorSpec:
    """An output that must be there."""
    if index >= len(op.outputs):
        raise UnexpectedOperandsError(f"{op.name}: result {index} is missing")
    return op.outputs[index]


def names(text: str) -> tuple[str, ...]:
    """A table of names, separated by blanks."""
    return tuple(text.split())


def numel(spec: TensorSpec) -> int:
    """Elements of a tensor."""
    return prod(spec.shape)


def size_bytes(spec: TensorSpec) -> int:
    """Bytes of a tensor's elements."""
    return numel(spec) * item_bytes(spec.dtype)


def run_bytes(spec: TensorSpec) -> int:
    """Contiguous bytes from any element on: the whole tensor where it is contiguous."""
    if spec.strides is None:
        return size_bytes(spec)
    run = 1
    for length, stride in reversed(list(zip(spec.shape, spec.strides, strict=True))):
        if length == 1:
            continue
        if stride != run:
            break
        run *= length
    return max(1, run) * item_bytes(spec.dtype)


def turned(spec: TensorSpec) -> bool:
    """The innermost dimension is not the contiguous one, but another is."""
    if spec.strides is None or numel(spec) < 2:
        return False
    inner = [
        stride
        for length, stride in zip(spec.shape, spec.strides, strict=True)
        if length > 1 and stride > 0
    ]
    return bool(inner) and inner[-1] != 1 and 1 in inner


def read(op: OpSignature, index: int, of: int | None = None, **options: bool) -> Access | None:
    """Access to an input, None where it is left out or empty; ``of`` elements decide if small."""
    spec = op.inputs[index] if index < len(op.inputs) else None
    if spec is None or not numel(spec):
        return None
    size = size_bytes(spec)
    small = of is not None and numel(spec) * 8 <= of and size <= 4 << 20
    run = max(item_bytes(spec.dtype), run_bytes(spec))
    if turned(spec):
        run = max(run, _turned_run(spec))
    return Access(index, size, min(run, max(1, size)), once=small, **options)


def _turned_run(spec: TensorSpec) -> int:
    """A transposed operand is read along its contiguous dimension and turned on the chip."""
    strides = spec.strides or ()
    lengths = [n for n, s in zip(spec.shape, strides, strict=True) if s == 1]
    return max(lengths, default=1) * item_bytes(spec.dtype)


def reads(op: OpSignature, of: int | None = None) -> tuple[Access, ...]:
    """Access to every input."""
    found = (read(op, index, of) for index in range(len(op.inputs)))
    return tuple(access for access in found if access is not None)


def write(op: OpSignature, index: int = 0) -> Access:
    """Access to an output."""
    size = size_bytes(result(op, index))
    return Access(index, size, max(1, size))


def writes(op: OpSignature) -> tuple[Access, ...]:
    """Access to every output that has elements."""
    return tuple(write(op, index) for index, spec in enumerate(op.outputs) if numel(spec))


def passes_of(
    opcodes: Opcodes, elements: int, dtype: str, *, sums: bool = True
) -> tuple[Pass, ...]:
    """One pass an opcode, all over the same elements."""
    return tuple(Pass(opcode, engine, elements, dtype, sums=sums) for opcode, engine in opcodes)


def over_largest(op: OpSignature, opcodes: Opcodes, *, sums: bool) -> Lowered:
    """Passes over the elements of the op's largest tensor, read or written."""
    specs = [spec for spec in (*op.inputs, *op.outputs) if spec is not None]
    elements = max((numel(spec) for spec in specs), default=1)
    dtype = widest(op)
    passes = passes_of(opcodes, elements, dtype, sums=sums)
    return Lowered((RowStage(elements, dtype, passes, reads(op, elements), writes(op)),))


def is_empty(op: OpSignature) -> bool:
    """Nothing to compute: there is nothing to read, or nothing to make."""
    inputs = [spec for spec in op.inputs if spec is not None]
    return any(
        bool(specs) and not any(numel(spec) for spec in specs) for specs in (inputs, op.outputs)
    )


def filled(op: OpSignature, index: int) -> RowStage:
    """An output of zeros, as a sum over nothing leaves it."""
    spec = op.outputs[index]
    work = Pass("MEMSET", "vector", numel(spec), spec.dtype)
    return RowStage(numel(spec), spec.dtype, (work,), (), (write(op, index),))


def widest(op: OpSignature) -> str:
    """The largest floating-point or complex type among inputs and outputs, or else of all."""
    specs = [spec for spec in (*op.inputs, *op.outputs) if spec is not None]
    floats = [s.dtype for s in specs if "float" in s.dtype or "complex" in s.dtype] or [
        s.dtype for s in specs
    ]
    return max(floats, key=item_bytes, default="float32")


def attribute(op: OpSignature, name: str, default: object = None) -> object:
    """An argument that is no tensor."""
    for key, value in op.attributes:
        if key == name:
            return value
    return default


def renumber(access: Access, value: int) -> Access:
    """The same access to another value."""
    return replace(access, value=value)
