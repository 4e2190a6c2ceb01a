"""What an op does, in FLOPs and bytes, or why that is not known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Family(str, Enum):
    """Kinds of ops whose work is counted alike."""

    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    ATTENTION = "attention"
    NORMALISATION = "normalisation"
    SOFTMAX = "softmax"
    ELEMENTWISE = "elementwise"
    REDUCTION = "reduction"
    POOLING = "pooling"
    INDEXING = "indexing"
    COPY = "copy"
    OPTIMIZER = "optimizer"
    RANDOM = "random"


MATRIX_FAMILIES = frozenset({Family.MATMUL, Family.CONVOLUTION, Family.ATTENTION})
"""What model FLOPs are made of: MFU counts these alone."""


@dataclass(frozen=True)
class Work:
    """The work of one call."""

    family: Family
    flops: int | None
    """Absent where the bytes have a formula and the FLOPs have none."""
    read_bytes: int | None
    """Compulsory: a lower bound of what is read. Absent where no types were recorded."""
    write_bytes: int | None
    dtype: str | None
    """The type that is computed in, as torch names it."""

    @property
    def num_bytes(self) -> int | None:
        """Read and written."""
        if self.read_bytes is None or self.write_bytes is None:
            return None
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True)
class Uncounted:
    """No formula gives the work of a call."""

    reason: str


class CannotCount(Exception):
    """Raised inside formulas: the recorded arguments do not tell the work."""
