"""NE06: transfers between HBM and the chip are too small to be quick."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import (
    engine_time,
    shorter_programs,
    small_transfers,
)
from trnscope.advisor.words import percent
from trnscope.model.units import format_bytes

LEAST_SHARE = 0.1
"""Of the programs' time, in which only small transfers run. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""Of what transfers of an efficient size would not take: assumptions of ours; high is all of it."""


class SmallDmaRule(Rule):
    """Data moves between HBM and the chip in transfers too small to be quick.

    What it finds
    -------------
    DMA transfers of less than 153 KB (1.2 KB in each of 128 partitions), with no engine working
    beside them, in a tenth of the programs' time or more.

    Why it costs time
    -----------------
    A transfer costs 1 to 2 µs, whatever its size. At 1 KB a partition it reaches 43 % of the DMA
    engines' rate, at 128 bytes 5 %.

    How it is computed
    ------------------
    From the transfers of a device profile: the time in which small ones run and no engine works,
    less what the same bytes take at the full rate (bytes / max(bytes, 2440) of it, by size in each
    partition). The replay runs the steps with the programs shorter by 80 % of that (low half, high
    all).

    When it is wrong
    ----------------
    Gathers of single rows (an embedding) have small transfers by nature. A profile that lists
    packets in place of transfers shows smaller ones.

    Example
    -------
    A norm over rows of 16 numbers: 8 KB a transfer, at 3 % of the rate.

    What to try
    -----------
    A layout whose last dimension is long; larger batches; in a kernel of your own, tiles of 4 KB a
    partition and more; one table in place of many small ones.

    References
    ----------
    Neuron SDK: DMA overview and bandwidth guide; Neuron Explorer's rule for small transfers (aim at
    4 KiB or more).
    """

    code = "NE06"
    name = "small-dma"
    subject = "small DMA transfers"
    needs = (Need.NEURON, Need.ENGINES)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the small transfers."""
        found = engine_time(context)
        if found is None or found.whole.total == 0:
            return
        small = small_transfers(context, found)
        if small is None:
            return
        share = small.exposed_ns / found.whole.total
        if share < LEAST_SHARE:
            return
        lost_ns = round(small.lost * small.exposed_ns)
        shares = (LOW_SHARE, LIKELY_SHARE, 1.0)
        gone = shorter_programs(context, lost_ns, found.whole.total, shares)
        number = small.slices.size / context.window.num_steps
        yield Claim(
            title=f"{number:,.0f} small DMA transfers per step, of "
            f"{format_bytes(int(small.sizes.mean()))} on average: the engines wait for them "
            f"{percent(share)} of the programs' time",
            evidence=small.slices,
            likely=gone.likely,
            low=gone.low,
            high=gone.high,
            direct_ns=gone.direct_ns,
            confidence=Confidence.MEDIUM,
            tries=(
                "make the last dimension of these tensors longer, or the batch larger",
                "in a kernel of your own: tiles of 4 KB in each partition and more",
            ),
            how=f"programs shorter by {percent(LIKELY_SHARE)} of what transfers of an efficient "
            "size would not take",
        )
