"""HO11: Python hooks run in the middle of backward."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import BACKWARD_NODES, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.source import is_named_code, short_frame
from trnscope.advisor.words import percent
from trnscope.analysis.names import slices_named
from trnscope.store.tables import U32

_OWN = re.compile(r"^\w+Backward\d*$")
LOW_SHARE, LIKELY_SHARE = 0.4, 0.85
"""What goes when hooks look at fewer steps or do less: assumptions of ours; high is all of it."""


class BackwardHooksRule(Rule):
    """Backward stops for Python hooks on gradients.

    What it finds
    -------------
    Python functions, not torch's, that autograd calls between its nodes: `tensor.register_hook`,
    `register_full_backward_hook`, `register_post_accumulate_grad_hook`. The backward of an
    `autograd.Function` and recomputed checkpoints are not hooks.

    Why it costs time
    -----------------
    Backward runs without Python otherwise. Each hook takes the interpreter's lock, runs Python, and
    what it reads of a gradient waits for the device.

    How it is computed
    ------------------
    The replay runs the steps with 85 % of these functions gone (low 40 %, high all).

    When it is wrong
    ----------------
    A hook that does a part of the training itself, as an optimizer in backward, has to run
    somewhere. Recording stacks slows Python down.

    Example
    -------
    `p.register_hook(lambda g: stats.append(float(g.abs().max())))` for each of 80 parameters: 8 ms
    per step in place of 2.5.

    What to try
    -----------
    Remove hooks after debugging (`handle.remove()`); collect statistics after backward for all
    gradients at once (`torch._foreach_norm`), every 100 steps.

    References
    ----------
    torch.autograd mechanics, "Backward Hooks execution".
    """

    code = "HO11"
    name = "backward-hooks"
    subject = "Python hooks in backward"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the outermost functions that autograd's nodes call."""
        frames = slices_named(context.trace, context.frames(), is_named_code)
        frames = frames[context.lies_in(frames, context.ops(BACKWARD_NODES))]
        frames = context.outermost(frames[~context.lies_in(frames, context.ops(_OWN))])
        if frames.size == 0:
            return
        everything = context.removal_of(frames)
        number = frames.size // context.window.num_steps
        longest = short_frame(context.names(_heaviest(context, frames))[0])
        yield Claim(
            title=f"Backward stops for {number:,} Python hooks per step: {longest}",
            evidence=frames,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                f"remove the hook {longest}, or register it for single steps only",
                "look at all gradients at once after backward: torch._foreach_norm(grads)",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the hooks gone",
        )


def _heaviest(context: StepContext, frames: U32) -> U32:
    """A call of the function that takes most in all."""
    slices = context.trace.slices
    weight = np.bincount(slices.name[frames], weights=slices.dur_ns[frames])
    return np.asarray(frames[slices.name[frames] == int(np.argmax(weight))][:1], np.uint32)
