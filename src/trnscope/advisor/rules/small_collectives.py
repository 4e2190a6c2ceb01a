"""CM02: communication in many small pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind

_CALLS = re.compile(r"^c10d::|^record_param_comms$")
LEAST_PER_STEP = 64
"""Collectives; DDP in buckets of 25 MB needs some dozens for a large model. Ours."""
SMALL_NS = 500_000
"""A mean collective shorter than this is mostly start-up: a ring takes some tens of µs to start
and moves megabytes in the rest. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.4, 0.7, 0.9
"""What joining them into buckets takes off, host and device: assumptions of ours."""


class SmallCollectivesRule(Rule):
    """Ranks exchange many small messages instead of few large ones.

    What it finds
    -------------
    At least 64 collectives per step that take less than 0.5 ms each: one per parameter, say.

    Why it costs time
    -----------------
    Each collective costs the host a call of some 50 to 100 µs, and the device a start-up that does
    not depend on its size.

    How it is computed
    ------------------
    The replay runs the steps with 70 % gone of the host's calls and of the collectives (low 40 %,
    high 90 %): what remains if they are joined into buckets.

    When it is wrong
    ----------------
    Tensor parallelism needs two to four collectives per layer, which depend on one another.

    Example
    -------
    `for p in model.parameters(): dist.all_reduce(p.grad)`: 400 all-reduces per step.

    What to try
    -----------
    `DistributedDataParallel` instead of a loop over parameters; a larger `bucket_cap_mb`; one
    all-reduce over a flattened tensor.

    References
    ----------
    msprof-analyze's small packets.
    """

    code = "CM02"
    name = "small-collectives"
    subject = "small messages between ranks"
    needs = (Need.DEVICE_WORK, Need.COLLECTIVES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all collectives and their calls."""
        ids = context.device(SliceKind.COLLECTIVE)
        each = ids.size // context.window.num_steps
        if each < LEAST_PER_STEP or context.trace.slices.dur_ns[ids].mean() >= SMALL_NS:
            return
        calls = context.outermost(context.ops(_CALLS))
        everything = replace(context.host_removal(calls), device=(DeviceCut(ids),))
        yield Claim(
            title=f"Ranks exchange {each:,} small messages per step",
            evidence=calls if calls.size else ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "let DistributedDataParallel join gradients into buckets (bucket_cap_mb=25 or "
                "more), or all-reduce one flattened tensor",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these messages and their "
            "calls gone",
        )
