"""HO06: Python reads a tensor number by number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import OPTIMIZER_STEP, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.sync_in_step import waiting_calls
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32

_READS = re.compile(r"^aten::(item|is_nonzero)$")
LEAST_PER_STEP = 50
"""Fewer are not worth an edit by themselves; a wait for the device is HO01's. Ours."""
NEAR_NS = 300_000
"""Reads closer than this belong to one loop: a turn of it takes some 10 µs, several times that with
stacks recorded. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.5, 0.85, 0.97
"""What goes when one call reads all numbers: assumptions of ours."""


class ElementReadsRule(Rule):
    """Python reads numbers out of tensors one at a time.

    What it finds
    -------------
    At least 50 `aten::item` per step: `.item()`, `float(x)`, `if x > 0` or a `for` loop over the
    elements of a tensor, one after another. What the optimizer reads is not counted.

    Why it costs time
    -----------------
    Each read makes a tensor of one element, dispatches several ops and makes a Python number: some
    5 µs on the CPU. On a device each one waits until everything before it is done, besides.

    How it is computed
    ------------------
    Stretches of the main thread from one read to the next, where that is less than 0.3 ms later.
    The replay runs the steps with 85 % of them gone, and with their waits for the device (low 50 %,
    high 97 %).

    When it is wrong
    ----------------
    If what runs between two reads is needed by itself, that part stays.

    Example
    -------
    `{name: p.grad.norm().item() for name, p in model.named_parameters()}` each step; a metric in a
    double loop over `scores[i, j].item()`.

    What to try
    -----------
    `values = tensor.tolist()` once, and loop over these; `torch.stack(norms).tolist()` for many
    scalars; better, compute the metric with ops and read one number every 50 steps.

    References
    ----------
    train-doctor flags three reads a step; PyTorch performance tuning guide, "Avoid unnecessary
    CPU-GPU synchronization".
    """

    code = "HO06"
    name = "element-reads"
    subject = "reading numbers out of tensors"
    needs = (Need.HOST_OPS,)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all loops of reads."""
        reads = context.outermost(context.on_main(context.ops(_READS)))
        outside = np.concatenate((context.loading, context.ranges(OPTIMIZER_STEP))).astype(
            np.uint32
        )
        reads = reads[~context.lies_in(reads, outside)]
        number = reads.size // context.window.num_steps
        if context.main is None or number < LEAST_PER_STEP:
            return
        loops = _loops(context, reads)
        everything = Removal((HostCut(context.main, loops),), waits=_waits(context, reads))
        yield Claim(
            title=f"Python reads {number:,} numbers per step out of tensors, one at a time",
            evidence=reads,
            likely=everything.scaled(LIKELY_SHARE),
            low=replace(everything.scaled(LOW_SHARE), waits=everything.waits[:0]),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "read all at once: tensor.tolist(), or torch.stack(scalars).tolist()",
                "compute the metric with tensor ops, and read one number every 50 steps",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these loops gone",
        )


def _loops(context: StepContext, reads: U32) -> Intervals:
    """The reads and what lies between near ones."""
    start = context.trace.slices.start_ns[reads]
    end = start + context.trace.slices.dur_ns[reads]
    near = np.append(start[1:] - end[:-1] < NEAR_NS, False)
    until = np.where(near, np.append(start[1:], 0), end)
    bounds = (context.window.start_ns, context.window.end_ns)
    return Intervals.union_of(start, until).clip(*bounds)


def _waits(context: StepContext, reads: U32) -> U32:
    """The calls inside reads that waited for the device."""
    calls = waiting_calls(context)
    return np.asarray(calls[context.lies_in(calls, reads)], np.uint32)
