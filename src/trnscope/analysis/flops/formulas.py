"""Which formula counts which op."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from trnscope.analysis.flops import (
    attention,
    convolution,
    copies,
    elementwise,
    indexing,
    lists,
    matmul,
    normalisation,
    pooling,
    random,
    reduction,
    softmax,
)
from trnscope.analysis.flops.call import OpCall
from trnscope.analysis.flops.work import CannotCount, Uncounted, Work

_NAMESPACE = "aten::"
_FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **elementwise.FORMULAS,
    **reduction.FORMULAS,
    **matmul.FORMULAS,
    **convolution.FORMULAS,
    **attention.FORMULAS,
    **normalisation.FORMULAS,
    **softmax.FORMULAS,
    **pooling.FORMULAS,
    **indexing.FORMULAS,
    **copies.FORMULAS,
    **lists.FORMULAS,
    **random.FORMULAS,
}
_NO_FORMULA = Uncounted("no formula for this op")
_MALFORMED = Uncounted("its recorded arguments are not those of this op")
_COMPLEX = Uncounted("complex numbers: no formula")


def has_formula(name: str) -> bool:
    """Whether an op's work can be counted at all, given its arguments."""
    return _formula_of(name) is not None


def is_wrapper(name: str) -> bool:
    """Whether the op usually only calls others that have formulas of their own."""
    return name.removeprefix(_NAMESPACE) in matmul.WRAPPERS


@lru_cache(maxsize=1 << 14)
def count(call: OpCall) -> Work | Uncounted:
    """The work of one call, or why it is not known."""
    formula = _formula_of(call.name)
    if formula is None:
        return _NO_FORMULA
    try:
        work = formula(call)
    except CannotCount as problem:
        return Uncounted(str(problem))
    except (ArithmeticError, LookupError, ValueError):
        # A trace may hold anything: too few dimensions, a stride of 0, lists of unlike lengths.
        return _MALFORMED
    if (work.flops or 0) < 0 or (work.num_bytes or 0) < 0:
        return _MALFORMED
    return _COMPLEX if (work.dtype or "").startswith("complex") and work.flops else work


def _formula_of(name: str) -> Callable[[OpCall], Work] | None:
    """The formula of an op by its name, without namespace and the mark of an op in place."""
    if not name.startswith(_NAMESPACE):
        return attention.LIBRARY_FORMULAS.get(name)
    bare = name.removeprefix(_NAMESPACE)
    return _FORMULAS.get(bare) or _FORMULAS.get(bare.removesuffix("_"))
