"""ME03: the memory's bandwidth limits the step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.analysis.ceilings import Request, ceilings_of
from trnscope.analysis.flops import Family, Work
from trnscope.analysis.op_work import OpWork, op_work
from trnscope.analysis.roofline_rows import NEAR_ROOF
from trnscope.errors import TrnscopeError
from trnscope.model.intervals import I64
from trnscope.store.profile import Profile
from trnscope.store.tables import F64, U32, Bool

LEAST_SHARE = 0.15
"""Of the step, that such ops take on the device. Ours: what comes back is less than half."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.2, 0.4, 0.7
"""Of their time: two element-wise ops that become one read and write half as much; longer chains
save more, single ops nothing. Assumptions of ours."""
_FUSED = (Family.ELEMENTWISE, Family.NORMALISATION, Family.SOFTMAX, Family.REDUCTION)
"""What a compiler joins with an element-wise op beside it into one kernel."""
LEAST_OF_NEIGHBOUR = 0.25
"""Of the bytes of one op, that the other must move too: two ops on tensors of other sizes have no
values in common to keep on the chip. Ours."""


class MemoryBoundRule(Rule):
    """Ops that compute little on each value wait for the device's memory.

    What it finds
    -------------
    Element-wise ops, norms, softmaxes and sums that move their bytes at 60 % or more of the
    memory's bandwidth, and take 15 % of the step or more. Only such count that follow on one
    another: of two in a row at least one is element-wise, and the smaller moves a quarter of the
    larger one's bytes or more. A layer norm between two products has nothing to be fused with.

    Why it costs time
    -----------------
    They are as quick as the memory allows, so no better kernel makes them quicker. Only fewer bytes
    do: ops that are fused keep values on the chip, and 16 bits are half of 32.

    How it is computed
    ------------------
    From the roofline: bytes by shapes and types over the device's sourced bandwidth. The replay
    runs the steps with 40 % of these ops' device time gone (low 20 %, high 70 %).

    When it is wrong
    ----------------
    The bytes are the least that an op must move. Ops in a row need not work on the same tensor.

    Example
    -------
    `mul`, `pow`, `add` and `silu` on activations of 300 MB: 17 % of the device's time.

    What to try
    -----------
    `torch.compile`; activations in bfloat16; in-place or fused forms (`addcmul`, `F.silu`).

    References
    ----------
    Williams et al., "Roofline"; TraceLens and xprof on memory-bound ops; trnscope's page on the
    roofline.
    """

    code = "ME03"
    name = "memory-bound"
    subject = "ops limited by memory"
    needs = (Need.DEVICE_WORK, Need.HOST_OPS, Need.SHAPES)
    specificity = 0

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such ops."""
        found = op_work(context.trace)
        rows = _near_the_roof(context, found)
        calls = found.call[rows]
        work = context.launched_in(calls)
        if context.duration_ns(work) < LEAST_SHARE * context.step_ns:
            return
        everything = Removal((), (DeviceCut(work),))
        taken = percent(context.duration_ns(work) / max(context.step_ns, 1))
        yield Claim(
            title=f"{taken} of the step goes to ops that are limited by the memory's bandwidth: "
            f"{_names(context, calls, found.time_ns[rows])}",
            evidence=work,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "fuse them: torch.compile(model)",
                "half the bytes: activations in bfloat16 (torch.autocast)",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops' device time gone",
        )


def _near_the_roof(context: StepContext, found: OpWork) -> I64:
    """Rows of calls in the window that run near the memory's bandwidth and could be fused."""
    try:
        ceilings, _ = ceilings_of(Profile((context.trace,)), Request())
    except TrnscopeError:
        return np.empty(0, np.int64)
    if ceilings is None or ceilings.bandwidth is None or not found.signatures:
        return np.empty(0, np.int64)
    num_bytes = np.array([_bytes_of(one.work) for one in found.signatures], np.float64)
    least_ns = 1e9 * num_bytes[found.signature] / ceilings.bandwidth.value
    near = (least_ns >= NEAR_ROOF * found.time_ns) & (least_ns <= found.time_ns)
    start = context.trace.slices.start_ns[found.call]
    near &= (start >= context.window.start_ns) & (start < context.window.end_ns)
    return np.flatnonzero(near & (found.time_ns > 0) & _has_neighbour(context, found, num_bytes))


def _has_neighbour(context: StepContext, found: OpWork, num_bytes: F64) -> Bool:
    """For each call whether the one before or after it on its thread could be fused with it."""
    slices = context.trace.slices
    order = np.lexsort((slices.start_ns[found.call], slices.track[found.call]))
    track, signature = slices.track[found.call[order]], found.signature[order]
    size = num_bytes[signature]
    by_element = np.array([_is_by_element(one.work) for one in found.signatures], np.bool_)
    one_of_both = by_element[signature[:-1]] | by_element[signature[1:]]
    smaller, larger = np.minimum(size[:-1], size[1:]), np.maximum(size[:-1], size[1:])
    alike = (smaller > 0) & (smaller >= LEAST_OF_NEIGHBOUR * larger)
    joined = (track[:-1] == track[1:]) & one_of_both & alike
    has = np.zeros(order.size, np.bool_)
    has[order[:-1][joined]] = True
    has[order[1:][joined]] = True
    return has


def _is_by_element(work: object) -> bool:
    return isinstance(work, Work) and work.family is Family.ELEMENTWISE


def _bytes_of(work: object) -> float:
    """Compulsory bytes of one call; 0 for what is never fused and where they are not known."""
    if not isinstance(work, Work) or work.family not in _FUSED:
        return 0.0
    return float(work.num_bytes or 0)


def _names(context: StepContext, calls: U32, time_ns: I64) -> str:
    """The three names with most device time."""
    weight: Counter[str] = Counter()
    for name, ns in zip(context.names(calls), time_ns.tolist(), strict=True):
        weight[name] += ns
    return ", ".join(name for name, _ in weight.most_common(3))
