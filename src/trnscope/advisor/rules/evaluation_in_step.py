"""HO09: the model is evaluated inside the training steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import all_frames, rare_work
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32

_EVAL = re.compile(r"torch/nn/modules/module\.py\(\d+\): eval$")
_TRAIN = re.compile(r"torch/nn/modules/module\.py\(\d+\): train$")
LEAST_TIMES = 2
"""In the recorded steps: how often a single evaluation comes back, they do not tell. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""What goes with half and with a fifth of the evaluations; high is all of it. Assumptions of
ours."""


class EvaluationInStepRule(Rule):
    """The program evaluates the model so often that it is a share of its steps.

    What it finds
    -------------
    At least two stretches of the main thread from `model.eval()` to the next `model.train()` inside
    the recorded steps.

    Why it costs time
    -----------------
    No training happens meanwhile. An evaluation also brings its own data loader, often without
    workers, and reads its metrics batch by batch.

    How it is computed
    ------------------
    These stretches over the number of recorded steps, 80 % of them (low half, high all). Steps
    that evaluate stand out and are not part of the replay.

    When it is wrong
    ----------------
    A short recording that happens to hold the evaluations of a whole epoch says too much. How
    often a model must be evaluated is yours to say.

    Example
    -------
    Ten batches of validation after every fourth step: 27 ms per step in place of 15.

    What to try
    -----------
    Evaluate once an epoch or every 1,000 steps; larger batches without gradients; in another
    process, from a checkpoint.

    References
    ----------
    PyTorch performance tuning guide, "Disable gradient calculation for validation or inference".
    """

    code = "HO09"
    name = "evaluation-in-step"
    subject = "evaluating the model"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all evaluations."""
        begun = all_frames(context, _EVAL)
        time = _evaluations(context, begun)
        work = rare_work(context, begun, time)
        if len(time) < LEAST_TIMES or not work.is_worth_it:
            return
        each, number = work.per_step_ns, len(time)
        yield Claim(
            title=f"The model is evaluated inside the steps: {number} times in {work.num_steps}",
            evidence=begun,
            likely=work.removal,
            direct_ns=(round(each * LOW_SHARE), round(each * LIKELY_SHARE), each),
            confidence=Confidence.MEDIUM,
            tries=(
                "evaluate once an epoch or every 1,000 steps, on fewer batches",
                "evaluate in larger batches under torch.inference_mode(), with workers for its "
                "loader",
            ),
            how=f"time from eval() to train() over the {work.num_steps} recorded steps",
        )


def _evaluations(context: StepContext, begun: U32) -> Intervals:
    """From each eval() to the train() after it; one that is not ended is not counted."""
    slices = context.trace.slices
    back = all_frames(context, _TRAIN)
    ended = np.sort(slices.start_ns[back[~context.lies_in(back, begun)]])
    start = np.sort(slices.start_ns[begun])
    place = np.searchsorted(ended, start)
    known = place < ended.size
    return Intervals.union_of(start[known], ended[place[known]])
