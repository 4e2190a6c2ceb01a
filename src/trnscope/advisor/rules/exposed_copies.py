"""DE02: copies between host and device that nothing hides."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import about_ns, percent
from trnscope.model.kinds import SliceKind

_OVER_THE_LINK = re.compile(r"HtoD|DtoH|h2d|d2h|Host|copyin|copyout", re.IGNORECASE)
LOW_SHARE, LIKELY_SHARE = 0.4, 0.8
"""Of the copies' time: a copy of the next batch hides behind this one's step; some wait for
results. Assumptions of ours; high is all of it."""


class ExposedCopiesRule(Rule):
    """Copies between host and device run while nothing is computed.

    What it finds
    -------------
    Copies to or from the host that the step waits for, whatever memory they come from.

    Why it costs time
    -----------------
    A copy on the stream that computes comes between the kernels: nothing computes until it is done.
    The link to the host is some 50 times slower than the device's memory.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of the copies' time gone (low 40 %, high all). What other
    rules explain (pageable memory, ops on the host, reading values) is theirs.

    When it is wrong
    ----------------
    If the next batch is not there early enough, there is nothing to copy ahead: see the loader.

    Example
    -------
    A batch of 77 MB copied from pinned memory at the begin of each step: 11 of 124 ms.

    What to try
    -----------
    Copy the next batch on a stream of its own while this one is computed (a prefetcher); smaller
    types (uint8 images, normalised on the device); data that does not change, copied once.

    References
    ----------
    VTune (transfers dominate), TraceLens (copies above 5 %); CUDA C++ best practices: "Asynchronous
    and overlapping transfers".
    """

    code = "DE02"
    name = "exposed-copies"
    subject = "copies between host and device"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all copies over the link."""
        copies = context.device(SliceKind.MEMCPY, pattern=_OVER_THE_LINK)
        if copies.size == 0:
            return
        everything = Removal((), (DeviceCut(copies),))
        each = about_ns(context.duration_ns(copies))
        yield Claim(
            title=f"Copies between host and device hold up the step: they take {each} of it",
            evidence=copies,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "copy the next batch on a stream of its own while this one is computed: pinned "
                "memory and .to(device, non_blocking=True) under torch.cuda.stream(...)",
                "copy less: uint8 in place of float32 images, what never changes only once",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the copies' time gone",
        )
