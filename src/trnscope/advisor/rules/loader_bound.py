"""IN01: the step waits for its input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.workers import advised_workers, num_cpus

_WORKERS = re.compile(r"_MultiProcessing")
LOW_SHARE = 0.5
"""At the least half of the wait goes: twice the workers make twice the batches, where there are
cores for them. An assumption of ours."""


class LoaderBoundRule(Rule):
    """The program waits for its data loader.

    What it finds
    -------------
    Time in which the training loop asks a `DataLoader` for the next batch and does not get it.

    Why it costs time
    -----------------
    A batch that is not ready when it is asked for holds up everything: the host launches
    nothing, and the device runs dry.

    How it is computed
    ------------------
    The replay runs the steps without the ranges `enumerate(DataLoader)#...__next__`. With worker
    processes a batch comes at its own time, however quick the rest of the step gets. Low: half
    of the wait goes. Likely and high: all of it.

    When it is wrong
    ----------------
    If storage or the number of cores is the limit, more workers deliver no more batches. Wait at
    the first batch of an epoch is start-up, which `persistent_workers=True` removes.

    Example
    -------
    A step of 180 ms in which `next(loader)` takes 70 ms.

    What to try
    -----------
    More workers (`num_workers`), `prefetch_factor`, `persistent_workers=True`; less work per
    sample; faster storage.

    References
    ----------
    torch.utils.data: "Single- and multi-process data loading"; user reports of loaders that a
    trace shows as nothing: pytorch/kineto#610.
    """

    code = "IN01"
    name = "loader-bound"
    subject = "waiting for the data loader"
    needs = (Need.HOST_OPS, Need.REAL_HOST)
    specificity = 0

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all requests for batches."""
        ids = context.on_main(context.loading)
        if ids.size == 0:
            return
        all_of_it = replace(context.host_removal(ids), waits=ids)
        has_workers = any(map(_WORKERS.search, context.names(ids)))
        yield Claim(
            title="The data loader's workers deliver batches too late"
            if has_workers
            else "Each step waits for the data loader",
            evidence=ids,
            likely=all_of_it,
            low=all_of_it.scaled(LOW_SHARE) if not has_workers else None,
            confidence=Confidence.HIGH,
            tries=(
                _more_workers(context)
                if has_workers
                else f"give the DataLoader num_workers={advised_workers(context)} and "
                "persistent_workers=True",
                "do less per sample: decode, tokenise and resize once, and store the result",
            ),
            how="the steps replayed without the waits for the loader",
        )


def _more_workers(context: StepContext) -> str:
    """What to say to a program that has workers."""
    cpus, recording = num_cpus(context), context.recording
    workers = None if recording is None else recording.num_workers
    if cpus is not None and workers is not None and workers >= cpus:
        return f"{workers} workers already use all {cpus} processors: set prefetch_factor=4"
    most = "the number of processors" if cpus is None else f"the {cpus} processors"
    return (
        f"raise num_workers of the DataLoader (up to {most}), set persistent_workers=True "
        "and prefetch_factor=4"
    )
