"""IN07: putting samples together takes most of the loading."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.workers import advised_workers
from trnscope.advisor.source import short_frame
from trnscope.advisor.words import percent

_COLLATE = re.compile(r"\): \w*collate\w*$")
_OF_TORCH = re.compile(r"torch/utils/data/_utils/collate\.py")
LEAST_OF_LOADING = 0.5
"""A majority: what train-doctor asks of `__getitem__`."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.5, 0.8, 0.95
"""What goes when samples come as tensors and are stacked at once: assumptions of ours."""


class SlowCollateRule(Rule):
    """Putting the samples of a batch together takes longer than making them.

    What it finds
    -------------
    Calls of a collate function (torch's `default_collate`, or one of yours whose name says so) that
    take more than half of the time in the data loader.

    Why it costs time
    -----------------
    A sample of plain numbers is turned into tensors one number at a time: a list of 200 floats
    makes 200 tensors of one column each. Padding in a Python loop does the same.

    How it is computed
    ------------------
    Frames of collate functions inside the loader's ranges. The replay runs the steps with 80 % of
    them gone (low 50 %, high 95 %).

    When it is wrong
    ----------------
    Only frames of the recorded process are seen; collating in worker processes is not. Recording
    stacks slows such loops down more than the rest.

    Example
    -------
    `__getitem__` returns `[float(x) for x in row]`: 10 of the 14 ms that loading takes.

    What to try
    -----------
    Return one tensor per sample (`torch.as_tensor(row)`), so that collating is one `torch.stack`;
    pad with `torch.nn.utils.rnn.pad_sequence`; `__getitems__` for a whole batch at once.

    References
    ----------
    torch.utils.data: "Working with collate_fn".
    """

    code = "IN07"
    name = "slow-collate"
    subject = "putting batches together"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the outermost calls of collate functions."""
        loading = context.on_main(context.loading)
        ids = context.on_main(context.frames(_COLLATE))
        ids = context.outermost(ids[context.lies_in(ids, loading)])
        if ids.size == 0:
            return
        if context.duration_ns(ids) <= LEAST_OF_LOADING * context.duration_ns(loading):
            return
        everything = context.host_removal(ids)
        name = context.names(ids[:1])[0]
        is_torchs = _OF_TORCH.search(name) is not None
        yield Claim(
            title="Most of the time of loading goes to putting samples together, in "
            + ("default_collate" if is_torchs else short_frame(name)),
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "return one tensor per sample from __getitem__ (torch.as_tensor(row)) instead of "
                "a list of numbers"
                if is_torchs
                else f"fill the batch at once in {short_frame(name)}: torch.stack, pad_sequence",
                f"let workers collate: num_workers={advised_workers(context)}, "
                "persistent_workers=True",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of collating gone",
        )
