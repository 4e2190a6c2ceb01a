"""CM04: gradients are reduced after backward, not during it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import BACKWARD_NODES, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.collective_ops import large_reductions, step_of
from trnscope.advisor.words import percent
from trnscope.store.tables import U32, Bool

LEAST_LATE = 0.9
"""Of the reductions' time, that is launched after backward. Ours."""
LOW_SHARE, LIKELY_SHARE = 0.4, 0.8
"""Of what fits beside backward: the last bucket stays behind it, and both slow each other down.
Assumptions of ours; high is all that fits (TraceLens supposes 85 %)."""


class LateReductionRule(Rule):
    """Gradients are reduced over the ranks only when backward has ended.

    What it finds
    -------------
    Steps in which the all-reduces (or reduce-scatters) of 4,096 numbers or more are launched after
    the last op of backward. Smaller ones, a loss or a metric, are no gradients, however long they
    wait for a slow rank; where sizes were not recorded nothing is said.

    Why it costs time
    -----------------
    The gradients of the last layers are ready first. Reduced at once, in buckets, they travel while
    the other layers' backward still computes; reduced at the end, the device does nothing else.

    How it is computed
    ------------------
    As much of the reductions as backward takes on the device could run beside it. The replay runs
    the steps with 80 % of that gone (low 40 %, high all).

    When it is wrong
    ----------------
    Large reductions of something else than gradients (a confusion matrix, weights that are
    averaged) cannot begin earlier.

    Example
    -------
    `for p in model.parameters(): dist.all_reduce(p.grad)` between `backward()` and `step()`.

    What to try
    -----------
    `DistributedDataParallel(model)`, which reduces buckets as they become ready; or hooks:
    `p.register_post_accumulate_grad_hook` with `async_op=True`.

    References
    ----------
    PyTorch Distributed (Li et al., VLDB 2020) on overlapping; TraceLens, nsys-ai.
    """

    code = "CM04"
    name = "late-reduction"
    subject = "reducing gradients after backward"
    needs = (Need.HOST_OPS, Need.DEVICE_WORK, Need.COLLECTIVES, Need.MESSAGES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the reductions, if nearly all of them come after backward."""
        found = large_reductions(context)
        backward = context.ops(BACKWARD_NODES)
        if found.slices.size == 0 or backward.size == 0:
            return
        late = found.slices[_is_late(context, backward)]
        late_ns = context.duration_ns(late)
        if late_ns < LEAST_LATE * context.duration_ns(found.slices) or late_ns == 0:
            return
        beside_ns = context.duration_ns(np.setdiff1d(context.launched_in(backward), late))
        fits = min(1.0, beside_ns / late_ns)
        everything = Removal((), (DeviceCut(np.sort(late), fits),))
        number = late.size / context.window.num_steps
        yield Claim(
            title=f"Gradients are reduced over the ranks after backward: {number:.0f} reductions "
            "per step with nothing beside them",
            evidence=late,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "wrap the model in DistributedDataParallel: it reduces buckets during backward",
                "or reduce in p.register_post_accumulate_grad_hook(...) with async_op=True",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the reductions beside "
            "backward",
        )


def _is_late(context: StepContext, backward: U32) -> Bool:
    """For each reduction whether backward of its step had ended when it was launched."""
    slices = context.trace.slices
    begin = slices.start_ns[backward]
    ends = np.zeros(context.window.num_steps, np.int64)
    step = step_of(context, begin)
    inside = step < ends.size
    np.maximum.at(ends, step[inside], (begin + slices.dur_ns[backward])[inside])
    launched = large_reductions(context).launched_ns
    mine = step_of(context, launched)
    last = ends[np.minimum(mine, ends.size - 1)]
    return np.asarray((mine < ends.size) & (last > 0) & (launched >= last), np.bool_)
