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
from trnscope.analysis.flops import MATRIX_FAMILIES, Work
from trnscope.analysis.op_work import op_work
from trnscope.analysis.roofline_rows import NEAR_ROOF
from trnscope.errors import TrnscopeError
from trnscope.store.profile import Profile
from trnscope.store.tables import U32

LEAST_SHARE = 0.15
"""Of the step, that such ops take on the device. Ours: what comes back is less than half."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.2, 0.4, 0.7
"""Of their time: two element-wise ops that become one read and write half as much; longer chains
save more, single ops nothing. Assumptions of ours."""


class MemoryBoundRule(Rule):
    """Ops that compute little on each value wait for the device's memory.

    What it finds
    -------------
    Ops other than products that move their bytes at 60 % or more of the memory's bandwidth, and
    take 15 % of the step or more.

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
    The bytes are the least that an op must move. Ops with others between them cannot be fused.

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
        calls = _near_the_roof(context)
        work = context.launched_in(calls)
        if context.duration_ns(work) < LEAST_SHARE * context.step_ns:
            return
        everything = Removal((), (DeviceCut(work),))
        taken = percent(context.duration_ns(work) / max(context.step_ns, 1))
        yield Claim(
            title=f"{taken} of the step goes to ops that are limited by the memory's bandwidth: "
            f"{_names(context, calls)}",
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


def _near_the_roof(context: StepContext) -> U32:
    """Calls of the window, no products, that run near the memory's bandwidth."""
    try:
        ceilings, _ = ceilings_of(Profile((context.trace,)), Request())
    except TrnscopeError:
        return np.empty(0, np.uint32)
    if ceilings is None or ceilings.bandwidth is None:
        return np.empty(0, np.uint32)
    found = op_work(context.trace)
    num_bytes = np.array([_bytes_of(one.work) for one in found.signatures], np.float64)
    if num_bytes.size == 0:
        return np.empty(0, np.uint32)
    least_ns = 1e9 * num_bytes[found.signature] / ceilings.bandwidth.value
    near = (least_ns >= NEAR_ROOF * found.time_ns) & (least_ns <= found.time_ns)
    return context.inside(found.call[near & (found.time_ns > 0)])


def _bytes_of(work: object) -> float:
    """Compulsory bytes of one call; 0 for products and where they are not known."""
    if not isinstance(work, Work) or work.family in MATRIX_FAMILIES:
        return 0.0
    return float(work.num_bytes or 0)


def _names(context: StepContext, calls: U32) -> str:
    """The three names with most device time."""
    weight: Counter[str] = Counter()
    dur = context.trace.slices.dur_ns
    names = context.names(calls)
    for name, ns in zip(names, dur[calls].tolist(), strict=True):
        weight[name] += ns
    return ", ".join(name for name, _ in weight.most_common(3))
