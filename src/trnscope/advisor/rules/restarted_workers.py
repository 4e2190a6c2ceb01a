"""IN06: each epoch starts the loader's processes anew."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import all_frames, rare_work

_STARTING = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): __init__$")
_ENDING = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): _shutdown_workers$")
_PROCESS = re.compile(r"multiprocessing/process\.py\(\d+\): start$")
LOW_SHARE, LIKELY_SHARE = 0.5, 0.9
"""What is left over is the first start, and the first requests of each epoch: assumptions of ours;
high is all of it."""


class RestartedWorkersRule(Rule):
    """Every epoch stops the data loader's worker processes and starts them again.

    What it finds
    -------------
    Worker processes that end and others that are started inside the recorded steps.

    Why it costs time
    -----------------
    Starting a process copies the address space of this one, or imports everything anew; the new
    worker has empty caches. Meanwhile the main thread waits. With short epochs that is a large
    share.

    How it is computed
    ------------------
    Time of the frames that start and stop the workers over the number of recorded steps, 90 % of it
    (low half, high all). Steps that start workers stand out and are not part of the replay.

    When it is wrong
    ----------------
    With epochs of thousands of steps one start is next to nothing; a short recording that happens
    to hold it says too much.

    Example
    -------
    Epochs of five batches with `num_workers=2`: 85 ms to start and stop, in steps of 30 ms.

    What to try
    -----------
    `DataLoader(..., persistent_workers=True)`, and the same loader for all epochs.

    References
    ----------
    torch.utils.data: `persistent_workers`.
    """

    code = "IN06"
    name = "restarted-workers"
    subject = "starting the loader's workers"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all starts and ends of workers."""
        starting = all_frames(context, _STARTING)
        starting = starting[context.holds(starting, all_frames(context, _PROCESS))]
        ending = all_frames(context, _ENDING)
        if starting.size == 0 or ending.size == 0:
            return
        ids = np.concatenate((starting, ending)).astype(np.uint32)
        work = rare_work(context, context.outermost(ids))
        if not work.is_worth_it:
            return
        each = work.per_step_ns
        yield Claim(
            title="The data loader starts its worker processes again in each epoch",
            evidence=work.slices,
            likely=work.removal,
            direct_ns=(round(each * LOW_SHARE), round(each * LIKELY_SHARE), each),
            confidence=Confidence.HIGH,
            tries=(
                "give the DataLoader persistent_workers=True, and make it once, outside of the "
                "loop over epochs",
            ),
            how=f"time to start and stop workers over the {work.num_steps} recorded steps",
        )
