"""Ops over lists of tensors, as optimizers use them: the op of that name on each tensor.

The profiler records the shapes of tensors in a list but not their types, so that FLOPs are
known (as for floating-point tensors, which these lists hold) and bytes are not.
"""

from __future__ import annotations

from collections.abc import Callable

from trnscope.analysis.flops.call import OpCall
from trnscope.analysis.flops.elementwise import PER_ELEMENT
from trnscope.analysis.flops.work import Family, Work

_OTHERS = {"norm": 2, "copy": 0, "zero": 0}
_ADAM = 14
"""Decay 2, first moment 3, second moment 4, root, epsilon, corrections 2, quotient, step."""
_SGD = 4
"""Weight decay 2, step 2; momentum 2 more."""


def _over_list(per_element: int) -> Callable[[OpCall], Work]:
    def count(call: OpCall) -> Work:
        size = sum(tensor.numel for tensor in call.tensor_list(0))
        return Work(Family.OPTIMIZER, per_element * size, None, None, None)

    return count


def _sgd(call: OpCall) -> Work:
    """``_fused_sgd_(params, grads, momentum_buffers, ...)``"""
    has_momentum = len(call.arguments) > 2 and bool(call.arguments[2])
    return _over_list(_SGD + 2 * has_momentum)(call)


FORMULAS: dict[str, Callable[[OpCall], Work]] = {
    **{f"_foreach_{name}": _over_list(flops) for name, (_, flops) in PER_ELEMENT.items()},
    **{f"_foreach_{name}": _over_list(flops) for name, flops in _OTHERS.items()},
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), _over_list(_ADAM)),
    "_fused_sgd_": _sgd,
    "_amp_foreach_non_finite_check_and_unscale_": _over_list(2),
}
