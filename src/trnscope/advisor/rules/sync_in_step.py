"""HO01: the host stops for the device inside the step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.store.tables import U32

_READING_OPS = re.compile(
    r"^aten::(item|_local_scalar_dense|nonzero|is_nonzero|equal|masked_select)$"
)
_CALLS = re.compile(r"Synchronize|Memcpy|^(?!kbl_exec|nrt_queue).*_wait|tensor_read")
"""Not the Neuron runtime's own threads, nor a host that waits because the queue is full."""
_HOST_TO_DEVICE = re.compile(r"HtoD|Host.?To.?Device", re.IGNORECASE)
_WORDS = (
    (re.compile(r"^aten::(item|_local_scalar_dense|is_nonzero)$"), ".item() or float(tensor)"),
    (re.compile(r"^aten::(nonzero|masked_select)$"), "nonzero() or indexing by a mask"),
    (re.compile(r"^aten::equal$"), "torch.equal()"),
    (re.compile(r"DeviceSynchronize"), "torch.cuda.synchronize()"),
    (re.compile(r"Memcpy|tensor_read"), "a copy to the host (.cpu(), .to('cpu'), .tolist())"),
)
_OTHER = "a synchronising call"


class SyncInStepRule(Rule):
    """The host stops inside the step until the device has finished.

    What it finds
    -------------
    Calls that wait for device work: `.item()`, `float(loss)`, `print(tensor)`, `.cpu()`,
    `nonzero`, indexing by a mask, `torch.cuda.synchronize()`.

    Why it costs time
    -----------------
    Normally the host runs ahead and queues work. After a wait the queue is empty, and the device
    idles until the host has launched something again.

    How it is computed
    ------------------
    The replay runs the steps with these waits gone, and with the ops that read the value. A wait is
    a runtime call that ended when device work launched before it did. Low: the last wait of each
    step stays. A wait that costs nothing, because the device was the slower one anyway, is named as
    hidden.

    When it is wrong
    ----------------
    A value that decides what runs next has to be waited for. Of a device-bound step nothing comes
    back.

    Example
    -------
    `total += loss.item()` each step: read it every 50 steps, or add on the device.

    What to try
    -----------
    Keep metrics on the device (`total += loss.detach()`), read them every N steps;
    `torch.where` instead of indexing by a mask.

    References
    ----------
    PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization"; a wait that costs
    nothing is the example of gpu-idle's author.
    """

    code = "HO01"
    name = "sync-in-step"
    subject = "waiting for the device"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all waits for the device but those of copies to it."""
        calls = waiting_calls(context)
        if calls.size == 0:
            return
        reading = context.outermost(context.ops(_READING_OPS))
        reading = reading[context.holds(reading, calls)]
        outer = np.concatenate((reading, calls[~context.lies_in(calls, reading)]))
        everything = replace(context.host_removal(outer), waits=calls)
        word = _most_frequent(context.names(outer))
        each = round(outer.size / context.window.num_steps, 1)
        yield Claim(
            title=f"The host waits for the device inside the step: {word}, {each:g} per step",
            evidence=outer,
            likely=everything,
            low=_all_but_last(context, everything, calls),
            confidence=Confidence.HIGH,
            tries=(
                "keep losses and metrics on the device and read them every 50 steps, not each step",
                "replace indexing by a mask with torch.where, and .cpu() with "
                ".to('cpu', non_blocking=True)",
            ),
            how="the steps replayed with these waits gone",
        )


def waiting_calls(context: StepContext) -> U32:
    """Runtime calls that waited for device work, without copies to the device."""
    if context.replay is None:
        return np.empty(0, np.uint32)
    points = context.replay.graph.points
    waiting = np.array(sorted(p.call for p in points if p.call is not None), np.uint32)
    waiting = waiting[np.isin(waiting, context.calls(_CALLS))]
    copying = context.launches_of(context.device(pattern=_HOST_TO_DEVICE))
    return np.setdiff1d(waiting, copying).astype(np.uint32)


def _all_but_last(context: StepContext, everything: Removal, calls: U32) -> Removal:
    """The last wait of each step stays."""
    start = context.trace.slices.start_ns[calls]
    ends = np.array([step.end_ns for step in context.window.steps], np.int64)
    step = np.searchsorted(ends, start, side="right")
    order = np.lexsort((start, step))
    is_last = np.append(step[order][1:] != step[order][:-1], True)
    last = calls[order][is_last]
    return replace(everything, waits=np.setdiff1d(calls, last).astype(np.uint32))


def _most_frequent(names: list[str]) -> str:
    words = Counter(
        next((word for pattern, word in _WORDS if pattern.search(name)), _OTHER) for name in names
    )
    return words.most_common(1)[0][0]
