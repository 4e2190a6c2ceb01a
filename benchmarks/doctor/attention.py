"""Attention from its parts, as a fault, and as what a compiler fuses."""

from __future__ import annotations

import math

from torch import Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Two products with a softmax between them."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    return scores.softmax(-1) @ v
