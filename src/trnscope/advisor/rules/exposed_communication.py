"""CM01: communication that nothing hides."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind

LOW_SHARE, LIKELY_SHARE = 0.3, 0.6
"""How much of it overlapping can hide: from one bucket less in the way to most of it. TraceLens
supposes 85 %. High is all of it."""


class ExposedCommunicationRule(Rule):
    """Ranks exchange data while nothing is computed.

    What it finds
    -------------
    Collectives on the critical path: all-reduce, all-gather, all-to-all with no compute beside
    them.

    Why it costs time
    -----------------
    The device waits for the network and for the slowest rank.

    How it is computed
    ------------------
    The replay runs the steps with 60 % of the collectives' time gone (low 30 %, high all). What
    hides behind compute costs nothing and gives nothing back.

    When it is wrong
    ----------------
    A collective lasts until the last rank has joined: on a rank that is early most of its time is
    waiting for others, and the cure is on the slow rank. One trace cannot tell the two apart.

    Example
    -------
    One all-reduce over all gradients after backward, instead of buckets during it.

    What to try
    -----------
    DDP with `gradient_as_bucket_view=True` and a smaller `bucket_cap_mb`; `no_sync()` while
    accumulating; FSDP prefetch; compare ranks to find a straggler.

    References
    ----------
    TraceLens, nsys-ai; HTA on where overlap is booked (#241).
    """

    code = "CM01"
    name = "exposed-communication"
    subject = "communication between ranks"
    needs = (Need.DEVICE_WORK, Need.COLLECTIVES)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all collectives."""
        ids = context.device(SliceKind.COLLECTIVE)
        if ids.size == 0:
            return
        everything = Removal((), (DeviceCut(ids),))
        yield Claim(
            title="Communication between ranks holds up the step",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "overlap it with backward: DDP buckets (bucket_cap_mb), FSDP prefetch, async_op",
                "see whether this rank waits for a slower one: compare one step on all ranks",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the collectives' time gone",
        )
