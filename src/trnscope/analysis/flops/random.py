"""Random numbers: the generator's arithmetic has no formula here; what it writes has."""

from __future__ import annotations

from collections.abc import Callable

from trnscope.analysis.flops.bytes_moved import elements
from trnscope.analysis.flops.call import OpCall
from trnscope.analysis.flops.work import Family, Work


def _fill(call: OpCall) -> Work:
    target = call.tensor(0)
    return Work(Family.RANDOM, None, 0, elements(target.numel, target.dtype), target.dtype)


FORMULAS: dict[str, Callable[[OpCall], Work]] = dict.fromkeys(
    ("normal_", "uniform_", "random_", "bernoulli_", "exponential_"), _fill
)
