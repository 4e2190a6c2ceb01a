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
from trnscope.advisor.rules.small_time import time_of_small
from trnscope.advisor.words import percent

LEAST_SHARE = 0.1
"""Of the programs' time, in which only small transfers run. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""Of what transfers of an efficient size would not take: assumptions of ours; high is all of it."""


class SmallDmaRule(Rule):
    """Data moves between HBM and the chip in pieces too small to be quick.

    What it finds
    -------------
    DMA transfers that take at least twice as long as their bytes need, because they are small (in
    each of 128 partitions less than 1.2 KB on Trainium2, 0.7 on Trainium1 and Inferentia2, 1.4 on
    Trainium3; where the profile names no chip, 0.7) or made of small pieces (less than a tenth of
    the DMA engines' rate), with no engine working beside them, in a tenth of the programs' time or
    more.

    Why it costs time
    -----------------
    A transfer costs 1 to 2 µs, whatever its size. At 1 KB a partition it reaches 42 % of the DMA
    engines' rate on Trainium2 (76 % on Trainium1), at 128 bytes 5 % (10 %); a gather of short rows
    hardly more.

    How it is computed
    ------------------
    From the transfers of a device profile: the time in which such ones run, and neither an engine
    nor a quicker transfer, less what the same bytes take at the full rate. The replay runs the
    steps with the programs shorter by 80 % of that (low half, high all). A device profile alone has
    no steps: the same share of its time.

    When it is wrong
    ----------------
    A table of short rows has short rows. A profile that lists packets in place of transfers shows
    smaller ones.

    Example
    -------
    `nn.Embedding` with 32 numbers a row: 4 MB take 0.58 ms, 2 % of the rate.

    What to try
    -----------
    Longer rows (one table of 4 x 32 numbers in place of four); rows sorted, so that neighbours are
    read together; a product with one-hot vectors for small tables; in a kernel of your own, tiles
    of 4 KB a partition and more.

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
            title=f"{number:,.0f} small or scattered DMA transfers per step: the engines wait for "
            f"them {percent(share)} of the programs' time",
            evidence=small.slices,
            likely=gone.likely,
            low=gone.low,
            high=gone.high,
            direct_ns=gone.direct_ns,
            direct_time=time_of_small(context, found, small),
            direct_of_judged=True,
            confidence=Confidence.MEDIUM,
            tries=(
                "read longer rows: a longer last dimension, one table in place of several",
                "in a kernel of your own: tiles of 4 KB in each partition and more",
            ),
            how=f"programs shorter by {percent(LIKELY_SHARE)} of what transfers of an efficient "
            "size would not take",
        )
