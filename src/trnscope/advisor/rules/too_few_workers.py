"""IN05: fewer loader processes than there are processors for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.host_waits import LEAST_LOADER_WAIT_NS
from trnscope.advisor.recording import Recording
from trnscope.advisor.removal import Removal
from trnscope.advisor.replay import Replay
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import LEAST_SHARE
from trnscope.advisor.rules.workers import num_cpus
from trnscope.store.tables import U32

_WORKERS = re.compile(r"enumerate\(DataLoader\)#_MultiProcessing")


class TooFewWorkersRule(Rule):
    """The data loader has workers, but fewer than the machine has processors for.

    What it finds
    -------------
    Most steps wait for a batch that a worker process makes, and there are fewer workers than
    processors.

    Why it costs time
    -----------------
    All workers are busy, and still a batch takes longer than the rest of the step. Each further
    worker makes batches beside them.

    How it is computed
    ------------------
    Workers and processors are what `trnscope run` noted beside the trace. While the step waits,
    n workers make one batch a step, so m of them would make it in n/m of the step: that, or the
    step replayed without its waits if it is longer, is what a step would take. Likely: as many
    workers as processors, and all work together takes no less than its time over the processors.
    High: without that last limit, as when the workers read rather than compute. Low: one more
    worker.

    When it is wrong
    ----------------
    If the storage is the limit, more workers deliver no more batches. Other processes may need the
    processors.

    Example
    -------
    `num_workers=1` on a machine of 16 processors: 70 ms of a step of 180 ms are waits.

    What to try
    -----------
    `num_workers` as high as the number of processors of one rank, with `persistent_workers=True`.

    References
    ----------
    torch.utils.data: "Multi-process data loading".
    """

    code = "IN05"
    name = "too-few-workers"
    subject = "waiting for too few workers"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.CAPTURE_RECORD)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all waits for batches."""
        ids = context.on_main(context.ranges(_WORKERS))
        room = _room(context)
        if room is None or context.replay is None or not _most_steps_wait(context, ids):
            return
        workers, cpus = room
        everything = replace(context.host_removal(ids), waits=ids)
        times = _times(context, context.replay, everything, workers, cpus)
        if times[1] < LEAST_SHARE * context.step_ns:
            return
        has = "1 worker" if workers == 1 else f"{workers} workers"
        yield Claim(
            title=f"The data loader has {has}, the machine {cpus} processors: batches come late",
            evidence=ids,
            likely=everything,
            direct_ns=times,
            direct_of_judged=True,
            confidence=Confidence.MEDIUM,
            tries=(
                f"give the DataLoader num_workers={cpus} (it has {workers}) and "
                "persistent_workers=True",
                "do less per sample: decode, tokenise and resize once, and store the result",
            ),
            how=f"the steps replayed with batches made by {cpus} workers in place of {workers}",
        )


def _room(context: StepContext) -> tuple[int, int] | None:
    """Workers and processors, where there are more of these."""
    recording, cpus = context.recording or Recording(), num_cpus(context)
    workers = recording.num_workers
    return (workers, cpus) if workers and cpus is not None and workers < cpus else None


def _most_steps_wait(context: StepContext, ids: U32) -> bool:
    """More than a first batch of an epoch now and then."""
    slices = context.trace.slices
    waits = ids[slices.dur_ns[ids] >= LEAST_LOADER_WAIT_NS]
    ends = np.array([step.end_ns for step in context.window.steps], np.int64)
    steps = np.unique(np.searchsorted(ends, slices.start_ns[waits], side="right"))
    return 2 * steps.size > context.window.num_steps


def _times(
    context: StepContext, replay: Replay, everything: Removal, workers: int, cpus: int
) -> tuple[int, int, int]:
    """Low, likely and high per step."""
    step_ns = context.step_ns
    rest_ns = step_ns - replay.saved_ns(everything)
    shared_ns = (workers * step_ns + rest_ns) // cpus
    many_ns = workers * step_ns // cpus
    one_more_ns = max(workers * step_ns // (workers + 1), shared_ns)
    limits = (one_more_ns, max(many_ns, shared_ns), many_ns)
    low, likely, high = (max(0, step_ns - max(rest_ns, limit)) for limit in limits)
    return min(low, likely), likely, max(high, likely)
