"""CM03: ranks wait for one another inside the step, for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule

_BARRIER = re.compile(r"^(c10d::barrier|c10d::monitored_barrier_?|nccl:barrier|gloo:barrier)$")
_ANY = re.compile("")
LEAST_PER_STEP = 0.5
"""Barriers; one in an epoch costs no step. Ours."""
LOW_SHARE = 0.3
"""Part of the wait moves to the next collective, where a rank is late in every step: some of it
goes at the least. Ours."""


class BarrierInStepRule(Rule):
    """Every step holds a barrier at which the ranks wait for one another.

    What it finds
    -------------
    `torch.distributed.barrier()` (or `monitored_barrier`) once in two steps or more often.

    Why it costs time
    -----------------
    A barrier makes the host wait for its own device and then for the slowest rank. What was queued
    runs out, and the device idles until the host has launched something again. Collectives order
    themselves; a step needs no barrier.

    How it is computed
    ------------------
    The replay runs the steps without the barriers: their calls, their collectives and the waits in
    them. Low: 30 % of the calls and collectives, and no waits.

    When it is wrong
    ----------------
    If one rank is late in each step, the others wait for it at the next collective instead, and
    less comes back. A barrier before a file is read by all ranks has its reason.

    Example
    -------
    `dist.barrier()` after each step "to be safe", or to time it.

    What to try
    -----------
    Take it out; time steps with device events; a barrier only around checkpoints.

    References
    ----------
    xprof's rule for time in barriers; torch.distributed: "barrier".
    """

    code = "CM03"
    name = "barrier-in-step"
    subject = "barriers between ranks"
    needs = (Need.HOST_OPS, Need.DEVICE_WORK)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all barriers."""
        ops = context.outermost(context.ops(_BARRIER))
        number = ops.size / context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        calls = context.calls(_ANY)
        waits = np.sort(calls[context.lies_in(calls, ops)])
        gone = context.removal_of(ops)
        yield Claim(
            title=f"Ranks wait for one another at a barrier inside the step: {number:.1f} per step",
            evidence=ops,
            likely=replace(gone, waits=waits),
            low=gone.scaled(LOW_SHARE),
            confidence=Confidence.HIGH,
            tries=(
                "take dist.barrier() out of the step: collectives order themselves",
                "to time a step, use device events or trnscope run",
            ),
            how="the steps replayed without the barriers and their waits",
        )
