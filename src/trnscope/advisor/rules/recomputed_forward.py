"""ME02: backward computes the forward pass once more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.memory_room import used_share
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32, Bool

_BACKWARD = re.compile(r"^autograd::engine::evaluate_function")
_ATEN = re.compile(r"^aten::")
_FORWARD = re.compile(
    r"^aten::(linear|conv[123]d|layer_norm|rms_norm|batch_norm|group_norm|embedding|softmax"
    r"|scaled_dot_product_attention|gelu|silu|relu|dropout)$"
)
"""Ops that a model's code calls and autograd's formulas do not."""
ROOM = 0.6
"""Of the device's memory, that the run may take at its peak for recomputing to be needless. Ours:
what is recomputed is mostly less than what is kept."""
LOW_SHARE, LIKELY_SHARE = 0.4, 1.0
"""Of what is recomputed: all of it goes where everything is kept; less where only the cheap half
can be. Ours."""


class RecomputedForwardRule(Rule):
    """Backward computes parts of the forward pass once more (activation checkpointing).

    What it finds
    -------------
    Ops of the forward pass (`aten::linear`, convolutions, norms, attention) inside of backward.
    Where the trace tells how much memory is used, only if it is less than 60 %.

    Why it costs time
    -----------------
    `torch.utils.checkpoint` keeps less for backward and computes it again: up to one more forward
    pass in each step, a quarter to a third of the whole. With memory to spare that is for nothing.

    How it is computed
    ------------------
    The stretches from the first to the last such op under one op of backward, with everything in
    them. The replay runs the steps without them (low 40 %).

    When it is wrong
    ----------------
    Without it the batch may not fit: the trace shows memory only if it was recorded
    (`trnscope run --memory`), and only what this run used.

    Example
    -------
    Each of four blocks under `checkpoint(...)`: 45 of 190 ms per step.

    What to try
    -----------
    No checkpointing; or only of the layers that keep most (`checkpoint` every second block); or
    selective checkpointing, which keeps products and recomputes the rest.

    References
    ----------
    Neuron Explorer's gap between MFU and HFU; torch.utils.checkpoint, selective checkpointing.
    """

    code = "ME02"
    name = "recomputed-forward"
    subject = "computing the forward pass again"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over everything that is recomputed."""
        again = _recomputed(context)
        if again.size == 0:
            return
        used = used_share(context.trace)
        if used is not None and used > ROOM:
            return
        everything = context.removal_of(again)
        room = "" if used is None else f", with memory {percent(max(used, 0.01))} full"
        yield Claim(
            title=f"Backward computes parts of the forward pass once more (checkpointing){room}",
            evidence=again,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            confidence=Confidence.HIGH if used is not None else Confidence.MEDIUM,
            tries=(
                "leave out torch.utils.checkpoint, if memory allows (trnscope run --memory shows "
                "it)",
                "checkpoint fewer blocks, or keep the products: selective checkpointing",
            ),
            how="the steps replayed without what is recomputed",
        )


def _recomputed(context: StepContext) -> U32:
    """Outermost ops between the first and the last op of the forward pass in a part of backward."""
    slices = context.trace.slices
    forward = context.ops(_FORWARD)
    forward = forward[context.lies_in(forward, context.ops(_BACKWARD))]
    forward = context.outermost(forward)
    if forward.size == 0:
        return forward
    parent = slices.parent[forward]
    begin, end = slices.start_ns[forward], slices.start_ns[forward] + slices.dur_ns[forward]
    _, group = np.unique(parent, return_inverse=True)
    first = np.full(group.max() + 1, np.iinfo(np.int64).max)
    last = np.zeros(group.max() + 1, np.int64)
    np.minimum.at(first, group, begin)
    np.maximum.at(last, group, end)
    inside = _within(context, Intervals.union_of(first, last), np.unique(slices.track[forward]))
    return context.outermost(inside)


def _within(context: StepContext, time: Intervals, tracks: U32) -> U32:
    """Ops of some threads that lie in some stretches, without the nodes of backward."""
    slices = context.trace.slices
    ops = context.ops(_ATEN)
    start, dur = slices.start_ns[ops], slices.dur_ns[ops]
    covered = time.covered_within(start, start + dur)
    inside: Bool = (covered == dur) & (dur > 0) & np.isin(slices.track[ops], tracks)
    return ops[inside]
