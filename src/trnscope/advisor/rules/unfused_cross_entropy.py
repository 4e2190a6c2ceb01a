"""OP10: a cross entropy written out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.op_sequence import OpSequence, forward_ops
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_SOFTMAX = frozenset(("aten::softmax", "aten::_softmax", "aten::log_softmax", "aten::_log_softmax"))
_PICKS = frozenset(
    ("aten::gather", "aten::index", "aten::one_hot", "aten::scatter", "aten::scatter_")
)
_TARGETS = frozenset(("aten::one_hot", "aten::scatter", "aten::scatter_"))
"""Those that make a row of zeros and a one of each target: nothing of an attention looks so."""
_LOGARITHMS = frozenset(("aten::log", "aten::log_softmax", "aten::_log_softmax"))
_KEPT = frozenset(("aten::gather", "aten::index"))
"""Whose backward is what the built-in loss does too."""
_ENDS = frozenset(("aten::mean", "aten::sum"))
_PARTS = (
    _PICKS
    | _ENDS
    | frozenset(
        ("aten::log", "aten::mul", "aten::neg", "aten::to", "aten::add", "aten::clamp",
         "aten::clamp_min", "aten::div", "aten::arange")
    )
)  # fmt: skip
_REACH = 8
"""Ops before or after the softmax that may belong to the loss."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.5, 0.9, 1.0
"""Of all but the softmax, which stays: one number per row is picked, and little else is left.
Assumptions of ours."""


class UnfusedCrossEntropyRule(Rule):
    """The cross entropy is computed op by op over all classes.

    What it finds
    -------------
    A log-softmax, or a softmax and the logarithm of it; a choice of the target's column after it
    (`one_hot`, `gather`, indexing) or a `one_hot` or `scatter` before it; and a mean or sum. All
    close together, with no `nll_loss` and no product of matrices among them.

    Why it costs time
    -----------------
    `one_hot` makes a second tensor as large as the scores, and the logarithm, the product and the
    sum read and write all of them; backward does it again. The built-in loss picks one number per
    row. The logarithm of a softmax also loses precision.

    How it is computed
    ------------------
    The replay runs the steps with 90 % of these ops but the softmax, and of their backward, gone
    (low 50 %, high all). The backward of `gather` and indexing stays: the built-in loss has to
    write the same zeros.

    When it is wrong
    ----------------
    With few classes nothing comes back. A log-probability of what was chosen, as policy gradients
    need it, is computed the same way; there it is `-F.cross_entropy(..., reduction="none")`.
    Soft targets need the product; `F.cross_entropy` takes probabilities too.

    Example
    -------
    `-(F.one_hot(y, V) * torch.log(torch.softmax(x, -1))).sum(-1).mean()` with V = 8,192: 35 ms per
    step in place of 18.

    What to try
    -----------
    `torch.nn.functional.cross_entropy(scores, targets)`, on scores, not on probabilities.

    References
    ----------
    torch.nn.CrossEntropyLoss.
    """

    code = "OP10"
    name = "unfused-cross-entropy"
    subject = "a cross entropy written out"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all such losses and their backward."""
        ids = _loss_ops(forward_ops(context))
        if ids.size == 0:
            return
        picking = np.isin(context.names(ids), sorted(_KEPT))
        gone = np.union1d(ids, context.with_backward(ids[~picking])).astype(np.uint32)
        everything = context.removal_of(gone)
        yield Claim(
            title="The cross entropy is computed op by op over all classes",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=("torch.nn.functional.cross_entropy(scores, targets) in place of the formula",),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops, but for the "
            "softmax, and of their backward gone",
        )


def _loss_ops(ops: OpSequence) -> U32:
    found: list[int] = []
    for at, name in enumerate(ops.names):
        if name in _SOFTMAX:
            found += _around(ops, at)
    return np.sort(ops.ids[np.array(sorted(set(found)), np.int64)]).astype(np.uint32)


def _around(ops: OpSequence, at: int) -> list[int]:
    """The places of the loss's other ops; none where it is another formula."""
    after = _reached(ops, at, +1)
    while after and ops.names[after[-1]] not in _ENDS:
        after.pop()
    before = _reached(ops, at, -1)
    targets = [place for place in before if ops.names[place] in _TARGETS]
    picked = [place for place in after if ops.names[place] in _PICKS]
    if not (targets or picked) or not _LOGARITHMS & {ops.names[place] for place in (at, *after)}:
        return []
    # Before the softmax only the choice of the target, and a cast of it, belongs to the loss.
    return after + [place for place in before if targets and place >= min(targets)]


def _reached(ops: OpSequence, at: int, direction: int) -> list[int]:
    """Places next to the softmax, as far as the ops may belong to a loss."""
    places: list[int] = []
    for step in range(1, _REACH + 1):
        place = at + direction * step
        inside = 0 <= place < len(ops.names) and ops.same_stretch(at, place)
        if not inside or ops.names[place] not in _PARTS:
            break
        places.append(place)
    return places
