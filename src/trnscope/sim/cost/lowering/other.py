"""Optimizer steps, random numbers, sorting, and the generic lowering of ops without an own one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trnscope.sim.cost.lowering.opcodes import ACT, RANDOM, REC, STT, TS, TT, Opcodes
from trnscope.sim.cost.lowering.work import (
    INTERNAL,
    Access,
    Lowered,
    Pass,
    RowStage,
    attribute,
    numel,
    operand,
    passes_of,
    reads,
    result,
    widest,
    writes,
)
from trnscope.sim.cost.program import Engine, item_bytes
from trnscope.sim.signature import OpSignature, TensorSpec

OPTIMIZERS: dict[str, Opcodes] = {
    "_fused_adam": (ACT, STT, STT, ACT, ACT, REC, TT, STT),
    "_fused_adamw": (TS, ACT, STT, STT, ACT, ACT, REC, TT, STT),
    "_fused_sgd": (STT, STT),
    "_fused_adagrad": (STT, ACT, REC, STT),
}
RANDOMS: dict[str, Opcodes] = {
    "rand": (RANDOM,),
    "randn": (RANDOM, ACT, ACT),
    "randint": (RANDOM, TS),
    "uniform": (RANDOM, TS),
    "normal": (RANDOM, ACT, ACT),
    "rand_like": (RANDOM,),
    "randn_like": (RANDOM, ACT, ACT),
    "randint_like": (RANDOM, TS),
    "bernoulli": (RANDOM, TS),
    "exponential": (RANDOM, ACT),
    "random": (RANDOM, TS),
    "native_dropout": (RANDOM, TS, TT),
    "dropout": (RANDOM, TS, TT),
    "_fused_dropout": (RANDOM, TS, TT),
    "multinomial": (RANDOM, ACT, TT, ("MAX8", "vector")),
    "randperm": (RANDOM, ("MAX8", "vector")),
    "trunc_normal": (RANDOM, ACT, ACT, TS),
}
SORTS = ("sort", "argsort", "topk", "kthvalue", "msort")
FOREACH = "_foreach_"
NAMES = frozenset([*OPTIMIZERS, *RANDOMS, *SORTS])


def rows(op: OpSignature, passes: tuple[tuple[str, Engine, float | None], ...]) -> Lowered:
    """Passes over the largest tensor, everything read and written."""
    specs = [spec for spec in (*op.inputs, *op.outputs) if spec is not None]
    elements = max((numel(spec) for spec in specs), default=1)
    dtype = widest(op)
    stage = RowStage(
        elements,
        dtype,
        tuple(Pass(o, e, elements, dtype, cycles) for o, e, cycles in passes),
        reads(op, elements),
        writes(op),
    )
    return Lowered((stage,))


def lower(op: OpSignature, name: str) -> Lowered:
    """Random numbers, sorting and fused optimizers."""
    if name in SORTS:
        return _sort(op, name)
    if name in OPTIMIZERS:
        return _lists(op, OPTIMIZERS[name])
    passes = tuple((o, e, None) for o, e in RANDOMS[name])
    return rows(op, passes)


def _sort(op: OpSignature, name: str) -> Lowered:
    """Each row on a partition of its own, so few rows leave most of the engine idle.

    ``topk`` is the documented instruction of GpSimd: 4 n + K cycles for the K largest of n. No
    instruction sorts a whole row. Assumed is the cheaper of two ways: eight maxima a pass of the
    Vector engine and a pass that finds them (n / 8 times, for short rows), or a merge sort on
    GpSimd, four cycles an element and level.
    """
    source = operand(op, 0)
    length = max(1, _length(op, source))
    if name == "topk":
        kept = attribute(op, "k")
        cycles = 4 + (kept if isinstance(kept, int) else _length(op, result(op))) / length
        passes: tuple[tuple[str, Engine, float | None], ...] = (("TOPK", "gpsimd", cycles),)
    else:
        passes = _whole_rows(length)
    lowered = rows(op, passes)
    count = max(1, numel(source) // length)
    stages = (replace(s, rows=count) for s in lowered.stages if isinstance(s, RowStage))
    return replace(lowered, stages=tuple(stages))


def _whole_rows(length: int) -> tuple[tuple[str, Engine, float | None], ...]:
    rounds, levels = -(-length // 8), max(1, (length - 1).bit_length())
    if rounds <= 2 * levels:
        return (("MAX8", "vector", float(rounds)), ("FIND_INDEX8", "vector", float(rounds)))
    return (("SORT", "gpsimd", 4.0 * levels),)


def _length(op: OpSignature, spec: TensorSpec) -> int:
    """Elements along the axis that is sorted, the last one by default."""
    axis = attribute(op, "dim", -1)
    if not spec.shape:
        return 1
    return spec.shape[
        axis if isinstance(axis, int) and -len(spec.shape) <= axis < len(spec.shape) else -1
    ]


def _lists(op: OpSignature, passes: Opcodes) -> Lowered:
    """A fused optimizer over lists: parameters, gradients and one list for each state."""
    lists = 4 if "adam" in op.name else 3
    return _over_lists(op, passes, lists, written=lists - 1)


THREE_LISTS = ("addcmul", "addcdiv", "lerp")
ONE_LIST = ("zero", "norm", "neg", "abs", "clamp_min", "clamp_max", "round", "sign", "max")
SCALARS = ("scalar", "scalars", "exponent", "weight")
"""Arguments that stand in for a further list."""


def foreach(op: OpSignature, passes: Opcodes) -> Lowered:
    """An op over lists of tensors, one execution for all of them."""
    lists = _num_lists(op, op.name.split(FOREACH)[-1].split(".")[0].rstrip("_"), passes)
    return _over_lists(op, passes, lists, written=1)


def _num_lists(op: OpSignature, name: str, passes: Opcodes) -> int:
    """Lists of tensors that the op reads, by its name and its scalar arguments."""
    scalar = any(key in SCALARS for key, _ in op.attributes)
    if name in THREE_LISTS:
        return 2 if name == "lerp" and scalar else 3
    if name in ONE_LIST or passes == (ACT,) or scalar or len(op.inputs) % 2 == 1:
        return 1
    return 2


def _over_lists(op: OpSignature, passes: Opcodes, lists: int, written: int) -> Lowered:
    total = sum(numel(spec) for spec in op.inputs if spec is not None)
    elements = max(1, total // max(1, lists))
    dtype = widest(op)
    work = passes_of(passes, elements, dtype)
    stores = _joined(writes(op), 1)
    if not stores:
        size = elements * item_bytes(dtype)
        stores = tuple(Access(INTERNAL, size, size) for _ in range(written))
    return Lowered((RowStage(elements, dtype, work, _joined(reads(op), lists), stores),))


def _joined(accesses: Sequence[Access], lists: int) -> tuple[Access, ...]:
    """Each list of tensors as one: they are walked one after the other, not side by side."""
    length = -(-len(accesses) // max(1, lists))
    return tuple(
        _one(accesses[start : start + length]) for start in range(0, len(accesses), length or 1)
    )


def _one(accesses: Sequence[Access]) -> Access:
    size = sum(access.num_bytes for access in accesses)
    runs = sum(-(-access.num_bytes // max(1, access.run_bytes)) for access in accesses)
    return Access(accesses[0].value, size, max(1, size // max(1, runs)))


def generic(op: OpSignature) -> Lowered:
    """No own lowering: every input is read, every output written, one pass of the Vector engine."""
    lowered = rows(op, (("TENSOR_TENSOR", "vector", None),))
    return Lowered(
        lowered.stages, notes=(f"{op.name}: costed by its bytes, no lowering of its own",)
    )
