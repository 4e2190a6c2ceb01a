"""Whether the inputs of an op come from the ops before it that made tensors out of nothing."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

import numpy as np

from trnscope.advisor.rules.shapes import Dims, num_elements

POSITIONS = frozenset(("aten::arange", "aten::linspace"))
_OF_POSITIONS = frozenset(("aten::sin", "aten::cos"))
_TRIANGLES = frozenset(("aten::triu", "aten::tril"))
_GROWS, _CUTS = frozenset(("aten::expand",)), frozenset(("aten::slice", "aten::select"))
_JOINS = frozenset(("aten::cat", "aten::stack"))
COMPARISONS = frozenset(("aten::ge", "aten::gt", "aten::le", "aten::lt"))
_CROSSES = COMPARISONS | {"aten::eq", "aten::ne", "aten::sub"}
"""What is done with one row of positions and the same as a column."""
_DATA = frozenset(("float", "c10::Half", "c10::BFloat16", "int", "bool"))
"""Formats that torch gives to no number of Python: without dimensions these are tensors."""
_NUMBERS = frozenset(("double", "long int"))
"""Formats of a number of Python, and of tensors without dimensions too."""


@dataclass(frozen=True)
class OpInputs:
    """What was recorded of an op's inputs."""

    name: str
    shapes: tuple[Dims | None, ...]
    types: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def tensors(self) -> list[Dims]:
        """The dimensions of those that have any."""
        return [shape for shape in self.shapes if shape is not None]

    @property
    def made(self) -> Dims | None:
        """The dimensions asked for: the first input of ``zeros``; absent where they are unknown."""
        try:
            dims = json.loads(self.values[0])
        except (IndexError, ValueError):
            return None
        is_list = isinstance(dims, list) and all(isinstance(one, int) for one in dims)
        return tuple(dims) if is_list else None

    @property
    def has_data(self) -> bool:
        """Whether an input is, or may be, a tensor without dimensions, of which shapes tell
        nothing."""
        data = _DATA | _NUMBERS if self.name in COMPARISONS else _DATA
        if len(self.types) != len(self.shapes):
            return False
        pairs = zip(self.types, self.shapes, strict=True)
        return any(of_it in data and shape is None for of_it, shape in pairs)


@dataclass
class MadeValues:
    """The sizes of what a row of ops made so far. Sizes are all that a trace tells of which value
    an op takes: where two values may be meant, the answer is no."""

    makers: int = 0
    _is_position: dict[int, bool] = field(default_factory=dict)
    """By number of elements."""
    _blank: set[int] = field(default_factory=set)
    """Sizes of nothing but zeros, which have no use for a triangle: one of this size is of data."""
    _unseen: int = 0
    """Rows of positions whose length no op showed yet."""
    _grown: list[tuple[int, bool]] = field(default_factory=list)
    _cut: list[tuple[int, bool]] = field(default_factory=list)
    """Views of another size than what they show, until an op takes them."""

    def make(self, op: OpInputs) -> None:
        """A tensor out of nothing."""
        self.makers += 1
        if op.name in POSITIONS:
            self._unseen += 1
        elif op.made is not None:
            self._add(num_elements(op.made), False)
            if op.name == "aten::zeros":
                self._blank.add(num_elements(op.made))

    def take(self, op: OpInputs) -> bool:
        """Whether all that the op takes was made here; then its result is too."""
        tensors = op.tensors
        if op.has_data or not tensors or not self._are_enough(op.name, tensors):
            return False
        if op.name in _TRIANGLES and num_elements(tensors[0]) in self._blank:
            return False
        origins = [self._origin(shape) for shape in tensors]
        is_position = True in origins
        if None in origins or (op.name in _OF_POSITIONS and not is_position):
            return False
        self._result(op.name, tensors, is_position)
        return True

    def _are_enough(self, name: str, tensors: list[Dims]) -> bool:
        """Two inputs are two values, or one as a row and as a column."""
        if len(tensors) < 2 or name in _JOINS or self.makers > 1:
            return True
        one, other = tensors[:2]
        return name in _CROSSES and one != other and num_elements(one) == num_elements(other)

    def _origin(self, shape: Dims) -> bool | None:
        """Whether a tensor is of positions; absent where it was not made here."""
        size = num_elements(shape)
        if size in self._is_position:
            return self._is_position[size]
        if self._unseen and size == max(shape):
            self._unseen -= 1
            return self._add(size, True)
        for views in (self._grown, self._cut):
            for seen, is_position in views:
                if size % seen == 0 if views is self._grown else size < seen:
                    views.remove((seen, is_position))
                    return self._add(size, is_position)
        return None

    def _add(self, size: int, is_position: bool) -> bool:
        self._blank.discard(size)
        self._is_position[size] = is_position and self._is_position.get(size, True)
        return self._is_position[size]

    def _result(self, name: str, tensors: list[Dims], is_position: bool) -> None:
        sizes = [num_elements(shape) for shape in tensors]
        if name in _GROWS:
            self._grown.append((max(sizes[0], 1), is_position))
        elif name in _CUTS:
            self._cut.append((sizes[0], is_position))
        elif name in _JOINS:
            self._add(sum(sizes), is_position)
        elif name == "aten::outer":
            self._add(math.prod(sizes), is_position)
        else:
            self._add(_together(tensors), is_position)


def _together(tensors: list[Dims]) -> int:
    """The size of an element-wise result; of the first where they do not fit."""
    try:
        return math.prod(np.broadcast_shapes(*tensors))
    except ValueError:
        return num_elements(tensors[0])
