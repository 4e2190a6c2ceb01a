"""What was recorded of the inputs of ops: their dimensions and number formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.store.tables import U32

Dims = tuple[int, ...]
_Value = TypeVar("_Value")


def input_shapes(context: StepContext, ids: U32) -> list[tuple[Dims | None, ...] | None]:
    """For each op the dimensions of its inputs: absent for an input that is no tensor, and for an
    op without any record. Tensors of a list stand one after another."""
    return _read(context, ids, "input_dims", _shapes)


def input_types(context: StepContext, ids: U32) -> list[tuple[str, ...] | None]:
    """For each op the number formats of its inputs, in torch's words; empty for none."""
    return _read(context, ids, "input_types", _types)


def input_values(context: StepContext, ids: U32) -> list[tuple[str, ...] | None]:
    """For each op the values of its inputs that are numbers or lists of numbers, as text."""
    return _read(context, ids, "concrete_inputs", _types)


def num_elements(shape: Dims) -> int:
    """The product of the dimensions."""
    return int(np.prod(shape, dtype=object)) if shape else 1


def _read(
    context: StepContext, ids: U32, key: str, read: Callable[[object], _Value]
) -> list[_Value | None]:
    column = context.trace.attribute(key)
    if column is None:
        return [None] * ids.size
    has, text = column.of(ids)
    strings = context.trace.strings
    known = {one: _parsed(strings[one], read) for one in np.unique(text[has]).tolist()}
    return [
        known[at] if is_there else None
        for is_there, at in zip(has.tolist(), text.tolist(), strict=True)
    ]


def _parsed(text: str, read: Callable[[object], _Value]) -> _Value | None:
    try:
        return read(json.loads(text))
    except (TypeError, ValueError):
        return None


def _shapes(document: object) -> tuple[Dims | None, ...]:
    found: list[Dims | None] = []
    for one in document if isinstance(document, list) else []:
        nested = isinstance(one, list) and one and isinstance(one[0], list)
        found += [tuple(map(int, shape)) or None for shape in (one if nested else [one])]
    return tuple(found)


def _types(document: object) -> tuple[str, ...]:
    return tuple(map(str, document)) if isinstance(document, list) else ()
