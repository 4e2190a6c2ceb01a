"""HO08: checkpoints are written inside the steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import all_frames, rare_work

_SAVING = re.compile(
    r"torch/serialization\.py\(\d+\): save$"
    r"|safetensors/\w+\.py\(\d+\): save_(file|model)$"
    r"|torch/distributed/checkpoint/\w+\.py\(\d+\): save$"
)
LEAST_TIMES = 2
"""In the recorded steps: how often a single checkpoint comes back, they do not tell. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.9
"""What goes with half as many checkpoints, and with one in ten or in the background; high is all of
it. Assumptions of ours."""


class CheckpointInStepRule(Rule):
    """The program writes checkpoints so often that they are a share of its steps.

    What it finds
    -------------
    At least two calls of `torch.save`, of `safetensors` or of `torch.distributed.checkpoint.save`
    inside the recorded steps.

    Why it costs time
    -----------------
    The main thread copies all parameters to the host, serialises and writes them, and launches
    nothing meanwhile.

    How it is computed
    ------------------
    Time of these frames over the number of recorded steps, 90 % of it (low half, high all). Steps
    that save stand out and are not part of the replay.

    When it is wrong
    ----------------
    A short recording that happens to hold the two checkpoints of an hour says too much. On a device
    a part of it is waiting for work that has to be done anyway.

    Example
    -------
    `torch.save(model.state_dict(), path)` after each step: 14 of 28 ms.

    What to try
    -----------
    Every 1,000 steps or every half hour; `torch.distributed.checkpoint.async_save`, or a copy of
    the parameters that a thread writes.

    References
    ----------
    train-doctor and pytscope warn of checkpoints above 2 % of a step.
    """

    code = "HO08"
    name = "checkpoint-in-step"
    subject = "writing checkpoints"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all checkpoints."""
        work = rare_work(context, all_frames(context, _SAVING))
        if work.slices.size < LEAST_TIMES or not work.is_worth_it:
            return
        each, saved = work.per_step_ns, work.slices.size
        yield Claim(
            title=f"Checkpoints are written inside the steps: {saved} in {work.num_steps} steps",
            evidence=work.slices,
            likely=work.removal,
            direct_ns=(round(each * LOW_SHARE), round(each * LIKELY_SHARE), each),
            confidence=Confidence.HIGH,
            tries=(
                "save every 1,000 steps or every half hour",
                "write in the background: torch.distributed.checkpoint.async_save, or a thread "
                "that writes a copy of the state",
            ),
            how=f"time of saving over the {work.num_steps} recorded steps",
        )
