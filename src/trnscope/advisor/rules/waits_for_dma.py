"""NE08: the engines wait for data from HBM."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import engine_time, shorter_programs, small_transfers
from trnscope.advisor.rules.small_time import time_of_small
from trnscope.advisor.words import percent

LEAST_ALONE = 0.25
"""Share of the programs' time in which only transfers run. Ours: some are always at the begin and
the end of a program."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.2, 0.4, 0.7
"""Of that time: half of the bytes go with bfloat16, more where ops are fused; begin and end stay.
Assumptions of ours."""


class WaitsForDmaRule(Rule):
    """The engines of the NeuronCore wait for data from HBM.

    What it finds
    -------------
    A quarter of the programs' time or more in which transfers run and no engine works. The time of
    small transfers does not count: it is NE06's.

    Why it costs time
    -----------------
    Each program reads its inputs from HBM and writes its outputs back, at 368 GB/s a core. With
    little arithmetic on each value, that takes longer than computing.

    How it is computed
    ------------------
    From a device profile: the time of transfers without the time of any engine. The replay runs the
    steps with the programs shorter by 40 % of that share (low 20 %, high 70 %). A device profile
    alone has no steps: the same share of its time.

    When it is wrong
    ----------------
    Weights that are used once per program (batch 1) have to be read once; only smaller formats
    help.

    Example
    -------
    Additions and norms, each a program: 1 MB in, 1 MB out, and 40 µs of arithmetic.

    What to try
    -----------
    `torch.compile`, so that values stay on the chip between ops; bfloat16; larger batches for the
    same weights.

    References
    ----------
    Neuron SDK: "NKI performance guide" (keep the engines fed); roofline of a NeuronCore: trnscope's
    hardware data.
    """

    code = "NE08"
    name = "waits-for-dma"
    subject = "transfers between HBM and the chip"
    needs = (Need.NEURON, Need.ENGINES)
    specificity = 0

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all transfers."""
        found = engine_time(context)
        if found is None or found.whole.total == 0:
            return
        small = small_transfers(context, found)
        time = found.dma_alone.subtract(time_of_small(context, found, small))
        alone = time.total / found.whole.total
        if alone < LEAST_ALONE:
            return
        shares = (LOW_SHARE, LIKELY_SHARE, HIGH_SHARE)
        gone = shorter_programs(context, time.total, found.whole.total, shares)
        yield Claim(
            title="The engines wait for data from HBM: in "
            f"{percent(alone)} of the programs' time only transfers run",
            evidence=found.transfers,
            likely=gone.likely,
            low=gone.low,
            high=gone.high,
            direct_ns=gone.direct_ns,
            direct_time=time,
            direct_of_judged=True,
            confidence=Confidence.MEDIUM,
            tries=(
                'compile, so that values stay on the chip: torch.compile(model, backend="neuron")',
                "bfloat16 in place of float32; a larger batch for the same weights",
            ),
            how=f"programs shorter by {percent(LIKELY_SHARE)} of the time in which only transfers "
            "run",
        )
