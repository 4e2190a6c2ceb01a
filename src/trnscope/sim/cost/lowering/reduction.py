"""Reductions: sums, means, extrema, norms and scans along dimensions.

A reduction along the free axis is one ``TENSOR_REDUCE``. Along the partitions it is a product with
a vector of ones on the matrix engine; the tiling places the reduced axis on the free axis, so one
pass over the elements covers both but for a full reduction of few rows.
"""

from __future__ import annotations

from trnscope.sim.cost.lowering.opcodes import ACT, ACTR, RED, SCAN, TS, TT, Opcodes
from trnscope.sim.cost.lowering.work import Lowered, names, over_largest
from trnscope.sim.signature import OpSignature

PASSES: dict[str, Opcodes] = {
    "sum": (RED,),
    "nansum": (TS, RED),
    "mean": (RED,),
    "amax": (RED,),
    "amin": (RED,),
    "max": (RED, ("FIND_INDEX8", "vector")),
    "min": (RED, ("FIND_INDEX8", "vector")),
    "argmax": (("MAX8", "vector"), ("FIND_INDEX8", "vector")),
    "argmin": (("MAX8", "vector"), ("FIND_INDEX8", "vector")),
    "any": (RED,),
    "all": (RED,),
    "prod": (RED,),
    "norm": (ACTR,),
    "linalg_vector_norm": (ACTR,),
    "var": (("BN_STATS", "vector"),),
    "std": (("BN_STATS", "vector"),),
    "var_mean": (("BN_STATS", "vector"),),
    "std_mean": (("BN_STATS", "vector"),),
    "logsumexp": (RED, ACTR),
    "cumsum": (SCAN,),
    "cumprod": (SCAN,),
    "cummax": (SCAN,),
    "cummin": (SCAN,),
    "logcumsumexp": (ACT, SCAN, ACT),
    "count_nonzero": (TS, RED),
    "sum_to_size": (RED,),
    "aminmax": (RED, RED),
    "dist": (TT, ACTR),
    "_amp_foreach_non_finite_check_and_unscale": (TS, RED),
    "_amp_update_scale": (TS,),
    "equal": (TT, RED),
    "trace": (RED,),
    "median": (("MAX8", "vector"), ("FIND_INDEX8", "vector")),
    "avg_pool2d": (RED,),
    "max_pool2d": (RED,),
    "max_pool2d_with_indices": (RED, ("FIND_INDEX8", "vector")),
    "adaptive_avg_pool2d": (RED,),
    "_adaptive_avg_pool2d": (RED,),
    "avg_pool2d_backward": (TS,),
    "_adaptive_avg_pool2d_backward": (TS,),
    "max_pool2d_with_indices_backward": (("IOTA", "gpsimd"), TT),
}
NAMES = frozenset(PASSES)
NO_SUMS = frozenset(
    names(
        "amax amin max min argmax argmin any all prod aminmax equal logsumexp max_pool2d"
        " max_pool2d_with_indices"
    )
)
"""Their ``TENSOR_REDUCE`` does not add."""


def lower(op: OpSignature, name: str) -> Lowered:
    """Passes over the elements that are read (or written, where there are more of them)."""
    return over_largest(op, PASSES[name], sums=name not in NO_SUMS)
