"""Finds the lowering of an op: one file a family, and a documented generic one for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trnscope.sim.cost.lowering import (
    attention,
    collective,
    coverage,
    elementwise,
    matmul,
    movement,
    normalization,
    other,
    reduction,
)
from trnscope.sim.cost.lowering.opcodes import ACT, TT, Opcodes
from trnscope.sim.cost.lowering.work import (
    Lowered,
    UnexpectedOperandsError,
    filled,
    is_empty,
    numel,
)
from trnscope.sim.signature import OpSignature

Family = Callable[[OpSignature, str], Lowered]

FAMILIES: tuple[tuple[frozenset[str], Family], ...] = (
    (matmul.NAMES, matmul.lower),
    (elementwise.NAMES, elementwise.lower),
    (reduction.NAMES, reduction.lower),
    (normalization.NAMES, normalization.lower),
    (attention.NAMES, attention.lower),
    (movement.NAMES, movement.lower),
    (other.NAMES, other.lower),
)
BY_NAME: dict[str, Family] = {name: family for names, family in FAMILIES for name in names}


def is_view(name: str) -> bool:
    """The op changes only shapes, strides or an allocation: nothing is executed."""
    return coverage.base_name(name) in coverage.VIEWS


def has_lowering(name: str) -> bool:
    """The op has a lowering of its own (not the generic one)."""
    short = coverage.base_name(name)
    if collective.is_collective(name) or short in BY_NAME or short in coverage.VIEWS:
        return True
    return _list_element(short) is not None


def lower(op: OpSignature) -> Lowered:
    """An op's stages; none for a view or a collective."""
    if collective.is_collective(op.name):
        return Lowered((), collective=collective.spec_of(op))
    short = coverage.base_name(op.name)
    if short in coverage.VIEWS:
        return Lowered(())
    if is_empty(op):
        made = (index for index, spec in enumerate(op.outputs) if numel(spec))
        return Lowered(tuple(filled(op, index) for index in made))
    if short in coverage.ON_CPU:
        return replace(other.generic(op), on_cpu=True, notes=(f"{op.name}: runs on the CPU",))
    family = BY_NAME.get(short)
    if family is not None:
        return _by_family(op, short, family)
    element = _list_element(short)
    if element is not None:
        return other.foreach(op, element)
    return other.generic(op)


def _by_family(op: OpSignature, short: str, family: Family) -> Lowered:
    try:
        return family(op, short)
    except UnexpectedOperandsError as error:
        return replace(other.generic(op), notes=(f"{error}: costed by its bytes",))


def _list_element(short: str) -> Opcodes | None:
    """The passes of a ``_foreach_`` op: those of the op that it repeats."""
    if not short.startswith(other.FOREACH):
        return None
    name = short[len(other.FOREACH) :]
    if name in elementwise.FUNCTIONS:
        return (ACT,)
    if name in elementwise.COMPOSITE:
        return elementwise.COMPOSITE[name]
    return reduction.PASSES.get(name, (TT,))
