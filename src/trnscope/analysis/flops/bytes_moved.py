"""Bytes that a formula's tensors take; absent where a type is not known."""

from __future__ import annotations

from collections.abc import Iterable

from trnscope.analysis.flops.call import Tensor, size_of


def read(*tensors: Tensor | None) -> int | None:
    """Bytes of some inputs, each read once; arguments that were left out count nothing."""
    return total(tensor.num_bytes for tensor in tensors if tensor is not None)


def elements(count: int, dtype: str | None) -> int | None:
    """Bytes of ``count`` elements."""
    size = None if dtype is None else size_of(dtype)
    return None if size is None else count * size


def total(parts: Iterable[int | None]) -> int | None:
    """Their sum; absent where one is."""
    known = 0
    for part in parts:
        if part is None:
            return None
        known += part
    return known
