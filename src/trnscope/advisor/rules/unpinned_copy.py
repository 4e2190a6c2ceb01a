"""IN04: batches are copied to the device from pageable memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.model.kinds import SliceKind

_PAGEABLE = re.compile(r"HtoD \(Pageable|Host.?To.?Device \(Pageable", re.IGNORECASE)
LIKELY_DEVICE_SHARE = 0.5
"""Copies from pinned memory run about twice as fast: pageable ones go through a staging buffer
(CUDA C++ best practices guide, "Pinned memory")."""


class UnpinnedCopyRule(Rule):
    """Batches go to the device from ordinary (pageable) memory, so the host waits for each copy.

    What it finds
    -------------
    Copies from host to device whose source is not pinned.

    Why it costs time
    -----------------
    The driver first copies pageable memory into a pinned buffer of its own, in pieces, and the call
    returns only when that is done: the host cannot run ahead, whatever `non_blocking` says.

    How it is computed
    ------------------
    The replay runs the steps without the time of the copy calls and their waits, and with copies of
    half the duration. Low: the calls only. High: the copies hide entirely.

    When it is wrong
    ----------------
    Small copies (labels, scalars) cost their call either way. Pinning itself takes host time, which
    `pin_memory=True` moves to a thread of the loader.

    Example
    -------
    `x.to("cuda")` of a batch of images: 2 ms in `cudaMemcpyAsync`, in which nothing is launched.

    What to try
    -----------
    `DataLoader(..., pin_memory=True)` and `x.to(device, non_blocking=True)`.

    References
    ----------
    Nsight Systems flags the same ("async copy from pageable memory").
    """

    code = "IN04"
    name = "unpinned-copy"
    subject = "copying batches from pageable memory"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such copies."""
        copies = context.device(SliceKind.MEMCPY, pattern=_PAGEABLE)
        calls = context.launches_of(copies)
        if calls.size == 0:
            return
        host = context.host_removal(calls).host
        yield Claim(
            title="Batches are copied from pageable memory, and the host waits for each copy",
            evidence=copies,
            likely=Removal(host, (DeviceCut(copies, LIKELY_DEVICE_SHARE),), calls),
            low=Removal(host, (), calls),
            high=Removal(host, (DeviceCut(copies),), calls),
            confidence=Confidence.HIGH,
            tries=(
                "give the DataLoader pin_memory=True and copy with "
                "batch.to(device, non_blocking=True)",
            ),
            how="the steps replayed without the copy calls, with copies of half the duration",
        )
