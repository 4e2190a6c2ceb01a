"""ME01: device memory is asked for inside the step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule

_CALLS = re.compile(
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostRegister|FreeHost|MallocHost|HostFree|HostMalloc)$"
    r"|^cuMem(Create|Map|Unmap|Release)$"
)


class AllocatorStallsRule(Rule):
    """Device memory is taken from the driver, or given back, inside the step.

    What it finds
    -------------
    `cudaMalloc`, `cudaFree`, `cudaHostAlloc` and their like in steps after the first ones.

    Why it costs time
    -----------------
    These calls take up to milliseconds, and `cudaFree` waits for the whole device. A program in its
    stride takes memory from torch's cache and calls none of them.

    How it is computed
    ------------------
    The replay runs the steps without these calls and their waits.

    When it is wrong
    ----------------
    In the first steps they are normal: the cache is being filled.

    Example
    -------
    `torch.cuda.empty_cache()` in the loop, inputs of ever new sizes, or memory nearly full, so that
    the cache is emptied and filled again.

    What to try
    -----------
    Take `empty_cache()` out of the loop; `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`; pad
    inputs to a few sizes; a smaller batch if memory is nearly full.

    References
    ----------
    msprof-analyze's allocator rule; torch's "Memory management" notes.
    """

    code = "ME01"
    name = "allocator-stalls"
    subject = "allocating device memory"
    needs = (Need.DEVICE_WORK, Need.STEPS)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such calls."""
        calls = context.calls(_CALLS)
        if calls.size == 0:
            return
        each = calls.size / context.window.num_steps
        yield Claim(
            title=f"Device memory is allocated or freed inside the step: {each:.1f} calls per step",
            evidence=calls,
            likely=replace(context.host_removal(calls), waits=calls),
            low=context.host_removal(calls),
            confidence=Confidence.HIGH,
            tries=(
                "take torch.cuda.empty_cache() out of the loop; set "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                "pad inputs to a few sizes; use a smaller batch if memory is nearly full",
            ),
            how="the steps replayed without these calls and their waits",
        )
