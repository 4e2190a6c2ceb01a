"""One call of an op as the profiler recorded it: shapes, types, strides and other arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from trnscope.analysis.flops.work import CannotCount

_TYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
}
"""C++ names of element types, as torch's profiler writes them."""

_SIZES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
"""Bytes an element, from the least to the most general type."""

_RANK = {dtype: rank for rank, dtype in enumerate(_SIZES)}
_SCALAR_TYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    9: "complex64",
    10: "complex128",
    11: "bool",
    15: "bfloat16",
}
"""torch's ``ScalarType`` numbers, as they appear among the arguments of casts."""


def size_of(dtype: str) -> int | None:
    """Bytes of one element; absent for a type that is not known."""
    return _SIZES.get(dtype)


def is_floating(dtype: str | None) -> bool:
    """Whether arithmetic in this type counts as floating-point."""
    return dtype is not None and dtype.startswith(("float", "bfloat", "complex", "tfloat"))


@dataclass(frozen=True)
class Tensor:
    """A tensor argument."""

    shape: tuple[int, ...]
    dtype: str | None = None
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int | None:
        """Bytes that reading it once takes: an expanded dimension (stride 0) is there once."""
        if self.dtype is None or (size := size_of(self.dtype)) is None:
            return None
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.numel * size
        if self.numel == 0:
            return 0
        lengths = zip(self.shape, self.strides, strict=True)
        return size * math.prod(length for length, stride in lengths if stride != 0)


@dataclass(frozen=True)
class OpCall:
    """An op and its arguments, by position in its schema."""

    name: str
    arguments: tuple[Tensor | tuple[Tensor, ...] | None, ...]
    """Tensors and lists of them; None for anything else."""
    values: tuple[str, ...] | None = None
    """The arguments that are no tensors, as text; absent where not recorded."""

    def tensor(self, position: int) -> Tensor:
        """The tensor at a position of the schema."""
        found = self.optional(position)
        if found is None:
            raise CannotCount(f"the shape of its argument {position + 1} was not recorded")
        return found

    def optional(self, position: int) -> Tensor | None:
        """The tensor at a position, or None where the argument was left out."""
        found = self.arguments[position] if position < len(self.arguments) else None
        return found if isinstance(found, Tensor) else None

    def tensor_list(self, position: int) -> tuple[Tensor, ...]:
        """The list of tensors at a position; old profilers left its members out."""
        found = self.arguments[position] if position < len(self.arguments) else None
        if not isinstance(found, tuple) or not found:
            raise CannotCount("the shapes of the tensors in its list were not recorded")
        return found

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, lists flattened."""
        return tuple(_flat(self.arguments))

    def value(self, position: int) -> str:
        """An argument that is no tensor, as text."""
        if self.values is None:
            raise CannotCount("its arguments beside tensors were not recorded")
        if position >= len(self.values) or not self.values[position]:
            raise CannotCount(f"its argument {position + 1} was not recorded")
        return self.values[position]

    def flag(self, position: int) -> bool:
        """A truth value."""
        text = self.value(position)
        if text not in ("True", "False"):
            raise CannotCount(f"its argument {position + 1} is no truth value")
        return text == "True"

    def int_value(self, position: int) -> int:
        """A whole number."""
        return self.ints(position)[0]

    def ints(self, position: int) -> tuple[int, ...]:
        """Whole numbers, from a list or one alone."""
        found = _json(self.value(position))
        numbers = found if isinstance(found, list) else [found]
        if not numbers or not all(type(number) is int for number in numbers):
            raise CannotCount(f"its argument {position + 1} is no list of whole numbers")
        return tuple(numbers)

    def flags(self, position: int) -> tuple[bool, ...]:
        """Truth values of a list."""
        found = _json(self.value(position).lower())
        if not isinstance(found, list) or not all(isinstance(each, bool) for each in found):
            raise CannotCount(f"its argument {position + 1} is no list of truth values")
        return tuple(found)

    def scalar_type(self, position: int) -> str | None:
        """An element type among the arguments; None where it is left to torch."""
        if self.values is None or position >= len(self.values) or not self.values[position]:
            return None
        return _SCALAR_TYPES.get(self.ints(position)[0])

    @property
    def dtype(self) -> str | None:
        """The type that torch computes in: the most general one of the tensors.

        A tensor without dimensions counts only where all are so.
        """
        return promoted(self.tensors)


def promoted(tensors: Iterable[Tensor]) -> str | None:
    """The most general type of some tensors; absent where one has no known type."""
    every = list(tensors)
    chosen = [tensor for tensor in every if tensor.shape] or every
    types = {tensor.dtype for tensor in chosen}
    if not types or not all(dtype in _RANK for dtype in types):
        return None
    known = sorted((dtype for dtype in types if dtype is not None), key=_RANK.__getitem__)
    return "float32" if {"float16", "bfloat16"} <= set(known[-2:]) else known[-1]


@lru_cache(maxsize=1 << 14)
def parse_call(
    name: str, dims: str, types: str | None, strides: str | None, values: str | None
) -> OpCall | None:
    """A call from the texts of its arguments; None where they make no sense."""
    shapes = _json(dims)
    if not isinstance(shapes, list):
        return None
    parts = [_list_or_empty(text, len(shapes)) for text in (types, strides)]
    arguments = tuple(map(_argument, shapes, *parts))
    found = _json(values) if values is not None else None
    texts = tuple(map(str, found)) if isinstance(found, list) else None
    return OpCall(name, arguments, texts)


def _argument(shape: Any, dtype: Any, strides: Any) -> Tensor | tuple[Tensor, ...] | None:
    if not isinstance(shape, list):
        return None
    if any(isinstance(member, list) for member in shape) or dtype == "TensorList":
        lengths = strides if isinstance(strides, list) and len(strides) == len(shape) else None
        return tuple(
            Tensor(tuple(member), None, _ints(lengths[at] if lengths else None))
            for at, member in enumerate(shape)
            if _is_shape(member)
        )
    if dtype in ("Scalar", "ScalarList") or not _is_shape(shape):
        return None
    if not shape and dtype in (None, ""):
        return None
    known = _TYPES.get(dtype, dtype) if isinstance(dtype, str) else None
    return Tensor(tuple(shape), known, _ints(strides))


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def _ints(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        return None
    return tuple(value)


def _list_or_empty(text: str | None, length: int) -> list[Any]:
    found = _json(text) if text is not None else None
    if not isinstance(found, list) or len(found) != length:
        return [None] * length
    return found


def _flat(arguments: Iterable[Tensor | tuple[Tensor, ...] | None]) -> Iterable[Tensor]:
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, tuple):
            yield from argument


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
