"""IN09: the host waits for copies that it need not wait for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.sync_in_step import waiting_calls
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_PINNED = re.compile(r"HtoD \(Pinned|Host.?To.?Device \(Pinned", re.IGNORECASE)
_WAIT = re.compile(r"StreamSynchronize|DeviceSynchronize")


class BlockingCopyRule(Rule):
    """Batches come from pinned memory, and still the host waits for each copy.

    What it finds
    -------------
    Copies from pinned memory to the device, followed by a wait for the stream inside the same op:
    `x.to(device)` without `non_blocking=True`.

    Why it costs time
    -----------------
    The wait is not for the copy alone but for all work queued before it. The host cannot run ahead,
    and the device idles until it has launched something again.

    How it is computed
    ------------------
    The replay runs the steps without these waits; the copies stay.

    When it is wrong
    ----------------
    If the program writes to the batch's memory right after the copy, it has to wait (a loader's
    batches are not written again).

    Example
    -------
    `DataLoader(..., pin_memory=True)` and `images.to("cuda")`: each step begins with a wait for the
    end of the step before.

    What to try
    -----------
    `batch.to(device, non_blocking=True)`.

    References
    ----------
    PyTorch: "A guide on good usage of non_blocking and pin_memory()"; Nsight Systems flags
    synchronous copies.
    """

    code = "IN09"
    name = "blocking-copy"
    subject = "waiting for copies from pinned memory"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all waits in ops that copy from pinned memory."""
        waits = _waits_of_copies(context)
        if waits.size == 0:
            return
        number = max(1, waits.size // context.window.num_steps)
        yield Claim(
            title=f"The host waits for {number:,} copies from pinned memory per step",
            evidence=waits,
            likely=replace(context.host_removal(waits), waits=waits),
            confidence=Confidence.HIGH,
            tries=("copy with batch.to(device, non_blocking=True)",),
            how="the steps replayed without these waits",
        )


def _waits_of_copies(context: StepContext) -> U32:
    """Waits in the same op as a copy from pinned memory, after it."""
    slices = context.trace.slices
    calls = context.launches_of(context.device(SliceKind.MEMCPY, pattern=_PINNED))
    parents = slices.parent[calls]
    inside = parents != calls
    copied = dict(zip(parents[inside].tolist(), calls[inside].tolist(), strict=True))
    waits = np.intersect1d(waiting_calls(context), context.calls(_WAIT))
    kept = [
        at for at in waits.tolist()
        if copied.get(int(slices.parent[at]), at) < at
    ]  # fmt: skip
    return np.array(kept, np.uint32)
