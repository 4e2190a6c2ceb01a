"""IN02: samples are made on the main thread."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.workers import advised_workers, hidden_share

_SINGLE = re.compile(r"enumerate\(DataLoader\)#_SingleProcess")
LOW_SHARE = 0.8
"""Taking a batch from a worker costs the main thread something too. Ours."""


class SingleProcessLoadingRule(Rule):
    """Batches are made on the main thread, one after another.

    What it finds
    -------------
    A `DataLoader` with `num_workers=0`, its default: the training loop makes each batch itself.

    Why it costs time
    -----------------
    While the main thread reads, decodes and collates, it launches nothing, and no step runs.
    Worker processes would make the next batches during the step.

    How it is computed
    ------------------
    The replay runs the steps with the loader's ranges
    (`enumerate(DataLoader)#_SingleProcessDataLoaderIter`) cut to what would not hide: with n
    workers a batch takes 1/n of its time, and as much of that hides as the rest of the step is
    long. Low: one worker, and a fifth for taking its batches. Likely: four, or as many as there
    are processors where `trnscope run` noted them, and all work together takes at least its time
    over these. High: all of it hides.

    When it is wrong
    ----------------
    Workers take cores. Where the step itself runs on the CPU, or the machine has few cores, less
    comes back than the likely figure says. For samples that take no time at all, workers cost more
    than they save.

    Example
    -------
    A dataset that tokenises a text in `__getitem__`, read by `DataLoader(dataset, 16)`: 255 ms of
    a step of 327 ms.

    What to try
    -----------
    `num_workers=4, persistent_workers=True` (fewer where there are fewer processors); and do per
    sample only what differs from epoch to epoch.

    References
    ----------
    torch.utils.data: "Single-process data loading (default)".
    """

    code = "IN02"
    name = "single-process-loading"
    subject = "making batches on the main thread"
    needs = (Need.HOST_OPS, Need.REAL_HOST)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all batches made on the main thread."""
        ids = context.on_main(context.ranges(_SINGLE))
        if ids.size == 0:
            return
        loading_ns = context.duration_ns(ids)
        workers = advised_workers(context)
        everything = replace(context.host_removal(ids), waits=ids)
        yield Claim(
            title="Each step waits while the main thread makes the batch (num_workers=0)",
            evidence=ids,
            likely=everything.scaled(hidden_share(context, loading_ns, workers)),
            low=everything.scaled(LOW_SHARE * hidden_share(context, loading_ns, 1)),
            high=everything,
            confidence=Confidence.HIGH,
            tries=(
                f"give the DataLoader num_workers={workers} and persistent_workers=True",
                "do less per sample: decode, tokenise and resize once, and store the result",
            ),
            how=f"the steps replayed with the loading that {_some(workers)} would not hide",
        )


def _some(workers: int) -> str:
    return "one worker" if workers == 1 else f"{workers} workers"
