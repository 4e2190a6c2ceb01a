"""ME02: backward computes the forward pass once more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import ATEN, BACKWARD_NODES, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.memory_room import used_share
from trnscope.advisor.rules.shapes import input_shapes
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.store.tables import U32, Bool

_CHECKPOINT = re.compile(r"^autograd::engine::evaluate_function: CheckpointFunctionBackward$")
"""The node of a checkpoint with ``use_reentrant=True``; one without has no node of its own."""
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
    Ops of the forward pass (`aten::linear`, convolutions, norms, attention) inside of backward: in
    the node of a checkpoint, or where autograd records them (they carry a sequence number) and the
    forward pass has the same ops of the same shapes in the same order. The backward of an
    `autograd.Function` of the program's own runs without autograd and is none. Where the trace
    tells how much memory is used, only if it is less than 60 %.

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
    A backward of the program's own that calls the same layers under `torch.enable_grad()` is found
    too, though there is no `torch.utils.checkpoint` to leave out. Without it the batch may not fit:
    the trace shows memory only if it was recorded (`trnscope run --memory`), and only what this run
    used.

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
    ops = context.outermost(context.ops(_FORWARD))
    in_backward = context.lies_in(ops, context.ops(BACKWARD_NODES))
    again = ops[in_backward]
    in_checkpoint = context.lies_in(again, context.ops(_CHECKPOINT))
    repeated = _repeated(context, again[~in_checkpoint], ops[~in_backward])
    forward = np.concatenate((again[in_checkpoint], repeated)).astype(np.uint32)
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


def _repeated(context: StepContext, again: U32, before: U32) -> U32:
    """Ops of backward, by their parent, whose row of names and shapes the forward pass has too."""
    again, before = _recorded_by_autograd(context, again), _recorded_by_autograd(context, before)
    letters: dict[object, str] = {}
    forward = "".join(_letters(context, before, letters))
    rows: dict[int, list[int]] = {}
    for at, parent in enumerate(context.trace.slices.parent[again].tolist()):
        rows.setdefault(parent, []).append(at)
    words = _letters(context, again, letters)
    kept = [at for row in rows.values() if "".join(words[k] for k in row) in forward for at in row]
    return again[np.array(kept, np.int64)]


def _recorded_by_autograd(context: StepContext, ids: U32) -> U32:
    """Those that ran with gradients on: torch gives them a sequence number."""
    numbers = context.trace.attribute("sequence_number")
    return ids[:0] if numbers is None else ids[numbers.of(ids)[0]]


def _letters(context: StepContext, ids: U32, known: dict[object, str]) -> list[str]:
    """A character for each op, the same for the same name and shapes."""
    keys = zip(context.names(ids), input_shapes(context, ids), strict=True)
    return [known.setdefault(key, chr(len(known))) for key in keys]


def _within(context: StepContext, time: Intervals, tracks: U32) -> U32:
    """Ops of some threads that lie in some stretches, without the nodes of backward."""
    slices = context.trace.slices
    ops = context.ops(ATEN)
    start, dur = slices.start_ns[ops], slices.dur_ns[ops]
    covered = time.covered_within(start, start + dur)
    inside: Bool = (covered == dur) & (dur > 0) & np.isin(slices.track[ops], tracks)
    return ops[inside]
