"""IN03: one function of the user's takes most of the loading."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.functions import main_function
from trnscope.advisor.rules.workers import advised_workers
from trnscope.advisor.words import percent

LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""What goes when work is vectorised, cached or moved: assumptions of ours; high is all of it."""


class SlowSampleCodeRule(Rule):
    """One function of yours takes most of the time that loading takes.

    What it finds
    -------------
    The innermost function outside of libraries that accounts for more than half of the time in
    the data loader: a tokeniser, a decoder, a collate function.

    Why it costs time
    -----------------
    Python works on one sample at a time and one element at a time; what is done again for each
    sample of each epoch is paid again each time.

    How it is computed
    ------------------
    Python frames inside the loader's ranges, by function, inclusive. The replay runs the steps
    with 80 % of that function gone (low 50 %, high all of it).

    When it is wrong
    ----------------
    Only frames of the recorded process are seen; work of worker processes is not. Recording stacks
    slows Python code down, so that the function's share looks larger than it is.

    Example
    -------
    `tokenize (train.py, line 47)` takes 240 of the 255 ms that loading takes.

    What to try
    -----------
    Do the work once and store the result; use a vectorised or compiled version; hand whole batches
    to it; or move it into workers.

    References
    ----------
    train-doctor and fournex split the wait for data in the same way.
    """

    code = "IN03"
    name = "slow-sample-code"
    subject = "making samples"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim, for the innermost function that takes most of the loading."""
        loading = context.on_main(context.loading)
        if loading.size == 0:
            return
        found = main_function(context, context.time_by_thread(loading)[int(context.main or 0)])
        if found is None:
            return
        everything = context.host_removal(found.calls)
        yield Claim(
            title=f"{found.name} takes most of the time that making a batch takes",
            evidence=found.calls,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                f"do the work of {found.name} once and store the result, or vectorise it",
                f"move it into workers: num_workers={advised_workers(context)}, "
                "persistent_workers=True",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of that function gone",
        )
