"""IN10: a batch goes to the device in many small copies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import ATEN, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_TO_DEVICE = re.compile(r"HtoD|Host.?To.?Device", re.IGNORECASE)
LEAST_PER_STEP = 32
"""Copies; TraceLens flags more than ten, of which a batch of a few tensors needs some. Ours."""
SMALL_BYTES = 64 * 1024
"""Below, a copy takes as long as its start does: some 5 µs at 12 GB/s or more."""
SMALL_NS = 10_000
"""The same of a copy whose size was not recorded."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.5, 0.9, 0.98
"""What goes when one copy stands for all; putting the samples together on the host stays."""


class SmallHostCopiesRule(Rule):
    """A batch is copied to the device in many small pieces.

    What it finds
    -------------
    At least 32 copies from host to device per step of less than 64 KiB (or 10 µs): sample by
    sample, number by number.

    Why it costs time
    -----------------
    Each copy costs the host an op and a call, and from pageable memory a wait, whatever its size.

    How it is computed
    ------------------
    The replay runs the steps with 90 % of the ops around these copies, of the copies and of their
    waits gone (low 50 %, high 98 %).

    When it is wrong
    ----------------
    Copies of values that Python computes one after another from what the device returned cannot be
    put together.

    Example
    -------
    `torch.stack([sample.to(device) for sample in batch])` with 64 samples; `torch.tensor(x,
    device=device)` for each of many numbers.

    What to try
    -----------
    Put the batch together on the host (`torch.stack(batch).to(device, non_blocking=True)`), and
    make constants once.

    References
    ----------
    TraceLens' copies in one direction; Nsight Systems' expert systems on small copies.
    """

    code = "IN10"
    name = "small-host-copies"
    subject = "small copies to the device"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all small copies."""
        copies = context.device(SliceKind.MEMCPY, pattern=_TO_DEVICE)
        copies = copies[_is_small(context, copies)]
        number = copies.size // context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        calls = context.launches_of(copies)
        ops = context.outermost(context.ops(ATEN))
        ops = ops[context.holds(ops, calls)]
        outer = np.concatenate((ops, calls[~context.lies_in(calls, ops)])).astype(np.uint32)
        everything = replace(context.removal_of(outer), waits=calls)
        yield Claim(
            title=f"{number:,} small copies to the device per step",
            evidence=copies,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "put the batch together on the host and copy it once: "
                "torch.stack(samples).to(device, non_blocking=True)",
                "make constants on the device once, outside of the loop",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these copies gone",
        )


def _is_small(context: StepContext, copies: U32) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """By size, or where it was not recorded by duration."""
    sizes = context.trace.attribute("bytes")
    is_short = np.asarray(context.trace.slices.dur_ns[copies] < SMALL_NS, np.bool_)
    if sizes is None:
        return is_short
    has, size = sizes.of(copies)
    return np.where(has, np.asarray(size) < SMALL_BYTES, is_short)
