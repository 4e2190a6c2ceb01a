"""NE09: values that do not fit on the chip go to HBM and come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import engine_time, shorter_programs
from trnscope.advisor.words import percent
from trnscope.analysis.reported import reported_figures
from trnscope.model.units import format_bytes
from trnscope.store.profile import Profile

LEAST_RELOADED = 0.25
"""Spill reloads over all reads from HBM; Neuron Explorer draws the line there."""
LOW_SHARE, LIKELY_SHARE = 0.3, 0.6
"""Of the time that spills take: some stay, whatever the tiles. Assumptions of ours; high is all."""


@dataclass(frozen=True)
class _Spills:
    reloaded: float
    """Of the bytes read from HBM."""
    of_traffic: float
    """Saved and reloaded, of all bytes from and to HBM."""
    num_bytes: int


class SpillTrafficRule(Rule):
    """Values that do not fit into SBUF go to HBM and come back.

    What it finds
    -------------
    Reloads of spilled values that are more than a quarter of what is read from HBM.

    Why it costs time
    -----------------
    SBUF holds 24 to 32 MiB. What is alive at one time beyond that is written to HBM and read again,
    and the engines wait for both.

    How it is computed
    ------------------
    From the profiler's own figures: bytes saved and reloaded over all bytes from and to HBM, as a
    share of the time in which transfers run and no engine works. The replay runs the steps with the
    programs shorter by 60 % of that (low 30 %, high all).

    When it is wrong
    ----------------
    Spills that hide behind the engines' work cost nothing; then little comes back.

    Example
    -------
    Attention written out for 4,096 tokens: the scores of one head alone take 64 MiB.

    What to try
    -----------
    A smaller batch or sequence for each program; fused attention; shorter lives for large values
    (recompute them); smaller tiles in a kernel of your own.

    References
    ----------
    Neuron Explorer: spill reloads above 25 % of HBM reads.
    """

    code = "NE09"
    name = "spill-traffic"
    subject = "values that are spilled to HBM"
    needs = (Need.NEURON, Need.ENGINES)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the transfers, where spills are many."""
        spills, found = _spills(context), engine_time(context)
        if spills is None or found is None or found.whole.total == 0:
            return
        if spills.reloaded <= LEAST_RELOADED:
            return
        spilling_ns = round(spills.of_traffic * found.dma_alone.total)
        shares = (LOW_SHARE, LIKELY_SHARE, 1.0)
        gone = shorter_programs(context, spilling_ns, found.whole.total, shares)
        yield Claim(
            title=f"Values that do not fit on the chip are written to HBM and read again: "
            f"{percent(spills.reloaded)} of all reads, {format_bytes(spills.num_bytes)}",
            evidence=found.transfers,
            likely=gone.likely,
            low=gone.low,
            high=gone.high,
            direct_ns=gone.direct_ns,
            direct_time=found.dma_alone,
            direct_of_judged=True,
            confidence=Confidence.MEDIUM,
            tries=(
                "a smaller batch or sequence for each program; fused attention",
                "shorter lives for large values: recompute them, or smaller tiles in a kernel",
            ),
            how=f"programs shorter by {percent(LIKELY_SHARE)} of the time of transfers that spills "
            "account for",
        )


def _spills(context: StepContext) -> _Spills | None:
    """By the profiler's figures, over all devices; absent where it gives none."""
    saved = reloaded = read = written = 0
    for block in reported_figures(Profile((context.trace,))):
        figures = dict(block.figures)
        saved += round(figures.get("spill_save_bytes", 0))
        reloaded += round(figures.get("spill_reload_bytes", 0))
        read += round(figures.get("hbm_read_bytes", 0))
        written += round(figures.get("hbm_write_bytes", 0))
    if read == 0:
        return None
    both = saved + reloaded
    return _Spills(reloaded / read, min(1.0, both / max(read + written, 1)), both)
