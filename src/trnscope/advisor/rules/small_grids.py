"""DE01: kernels use a part of the GPU only."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.analysis.device_properties import smallest
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import F64, U32

LEAST_NS = 10_000
"""A shorter kernel is mostly start and end; see OP01."""
MOST_FILLED = 0.5
"""Of the multiprocessors, that blocks may fill: with nearly as many blocks there is nothing to
gain. Ours."""
LEAST_SHARE = 0.1
"""Of the step, that kernels with small grids take. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.2, 0.5
"""Of the multiprocessors' idle time in these kernels: memory, or a long chain in one block, may be
the limit all the same. Assumptions of ours; high is all of it."""


class SmallGridsRule(Rule):
    """Kernels have too few blocks to use the whole GPU.

    What it finds
    -------------
    Kernels of 10 µs and more with blocks for half of the GPU's multiprocessors at the most, in a
    tenth of the step or more.

    Why it costs time
    -----------------
    A block runs on one multiprocessor. With 24 blocks on 132 of them, 82 % of the GPU does nothing
    until the kernel ends, unless another stream fills it.

    How it is computed
    ------------------
    Blocks are the product of the recorded grid, multiprocessors those of the trace's device. With
    all of them busy such a kernel takes blocks / multiprocessors of its time. The replay runs the
    steps with half of the rest gone (low 20 %, high all).

    When it is wrong
    ----------------
    A kernel that divides its work finely already (split-k) gains little. Small inputs cannot fill a
    large GPU: then a larger batch is what helps.

    Example
    -------
    Products of 64 rows on an H100: `..._tilesize128x128x64` in 24 blocks.

    What to try
    -----------
    A larger batch; layers of one kind computed together (one wider product); independent parts on
    several streams; a smaller GPU.

    References
    ----------
    Nsight Compute's launch statistics (waves below one); msprof-analyze on block counts.
    """

    code = "DE01"
    name = "small-grids"
    subject = "kernels with few blocks"
    needs = (Need.DEVICE_WORK, Need.GRIDS)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such kernels."""
        units = smallest(context.trace, "numSms")
        if units is None:
            return
        kernels, blocks = _kernels(context)
        few = (blocks <= MOST_FILLED * units) & (context.trace.slices.dur_ns[kernels] >= LEAST_NS)
        kernels, blocks = kernels[few], blocks[few]
        taken_ns = context.duration_ns(kernels)
        if taken_ns < LEAST_SHARE * context.step_ns:
            return
        dur = context.trace.slices.dur_ns[kernels].astype(np.float64)
        idle = float(np.sum(dur * (1.0 - blocks / units)) / np.sum(dur))
        everything = Removal((), (DeviceCut(np.sort(kernels), idle),))
        number = kernels.size / context.window.num_steps
        yield Claim(
            title=f"{number:,.0f} kernels per step have too few blocks for the GPU's {units} "
            f"multiprocessors: {percent(idle)} of it idles meanwhile",
            evidence=kernels,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "a larger batch, or several small products as one (stacked weights, torch.bmm)",
                "independent parts of the model on streams of their own",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the idle multiprocessors' "
            "share of these kernels gone",
        )


def _kernels(context: StepContext) -> tuple[U32, F64]:
    """Kernels whose grid is known, and the blocks of each."""
    ids = context.device(SliceKind.KERNEL)
    grids = context.trace.attribute("grid")
    if grids is None:
        return ids[:0], np.empty(0, np.float64)
    has, text = grids.of(ids)
    of_text = {one: _blocks(context.trace.strings[one]) for one in np.unique(text[has]).tolist()}
    blocks = np.array(
        [
            of_text[one] if known else np.inf
            for known, one in zip(has.tolist(), text.tolist(), strict=True)
        ],
        np.float64,
    )
    return ids, blocks


def _blocks(grid: str) -> float:
    """The product of a grid's sides; without a limit where it is unreadable."""
    try:
        sides = json.loads(grid)
    except ValueError:
        return np.inf
    if not isinstance(sides, list) or not all(isinstance(side, int) for side in sides):
        return np.inf
    return float(np.prod(sides, dtype=np.float64))
