"""HO09: the model is evaluated inside the training steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import all_frames, rare_work
from trnscope.analysis.names import slices_named
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32, Bool

_EVAL = re.compile(r"torch/nn/modules/module\.py\(\d+\): eval$")
_TRAIN = re.compile(r"torch/nn/modules/module\.py\(\d+\): train$")
_TRAINING = re.compile(r"^autograd::engine::evaluate_function|^Optimizer\.step#")
_MODULE = re.compile(r"^nn\.Module: ")
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
    the recorded steps, with no backward and no step of an optimizer in them: a teacher or a frozen
    norm that is set to `eval()` in each step is no evaluation. Where the trace names the modules
    that are called, one of a stretch must be called outside of the stretches too.

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
    A model whose samples train another (a generator) is set to `eval()` and back for that, which
    looks the same. An evaluation that takes gradients is not found. A short recording that happens
    to hold the evaluations of a whole epoch says too much. How often a model must be evaluated is
    yours to say.

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
        time = _of_trained(context, _evaluations(context, begun))
        begun = begun[_place(time, context.trace.slices.start_ns[begun]) >= 0]
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
            how="time from eval() to train(), without backward, over the "
            f"{work.num_steps} recorded steps",
        )


def _evaluations(context: StepContext, begun: U32) -> Intervals:
    """From each eval() to the train() after it, where nothing is trained in between; one that is
    not ended is not counted."""
    slices = context.trace.slices
    back = all_frames(context, _TRAIN)
    ended = np.sort(slices.start_ns[back[~context.lies_in(back, begun)]])
    start = np.sort(slices.start_ns[begun])
    place = np.searchsorted(ended, start)
    known = place < ended.size
    start, end = start[known], ended[place[known]]
    training = _training(context)
    idle = np.searchsorted(training, start) == np.searchsorted(training, end)
    return Intervals.union_of(start[idle], end[idle])


def _training(context: StepContext) -> I64:
    """When each node of backward and each step of an optimizer begins, on any thread, rising."""
    slices = context.trace.slices
    ids = slices.of_kind(SliceKind.CPU_OP, SliceKind.ANNOTATION)
    return np.sort(slices.start_ns[slices_named(context.trace, ids, _TRAINING.search)])


def _of_trained(context: StepContext, time: Intervals) -> Intervals:
    """Those stretches that call a module which is called elsewhere too, or name none."""
    slices = context.trace.slices
    ids = slices_named(context.trace, slices.of_kind(SliceKind.PYTHON), _MODULE.search)
    ids = context.on_main(ids)
    place, name = _place(time, slices.start_ns[ids]), slices.name[ids]
    is_trained = np.isin(name, name[place < 0])
    kept: Bool = np.array(
        [is_trained[place == at].any() or not (place == at).any() for at in range(len(time))],
        np.bool_,
    )
    return Intervals.union_of(time.start[kept], time.end[kept])


def _place(time: Intervals, at: I64) -> I64:
    """In which of the stretches each moment lies; -1: in none."""
    if not len(time):
        return np.full(at.size, -1, np.int64)
    place = np.searchsorted(time.start, at, side="right") - 1
    return np.where((place >= 0) & (at < time.end[place]), place, -1).astype(np.int64)
