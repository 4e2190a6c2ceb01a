"""HO05: more threads than processors."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import ATEN, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule

LEAST_RATIO = 1.5
"""Threads per processor; a little more than one does no harm. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.1, 0.3, 0.5
"""Of the ops' time: threads that take turns on a processor wait for one another at the end of each
op. Assumptions of ours; the trace does not show these waits."""


class ThreadOversubscriptionRule(Rule):
    """Ops on the CPU use more threads than there are processors for them.

    What it finds
    -------------
    At least one and a half threads of torch for each processor that the process may run on, with
    the ranks of the job counted together.

    Why it costs time
    -----------------
    An op is done when its last thread is. Threads that share a processor take turns, and each op
    waits for the one whose turn comes last.

    How it is computed
    ------------------
    Processors and threads are what `trnscope run` noted beside the trace; the ranks of the job are
    taken to be on one machine. The replay runs the steps with 30 % of the ops' time gone (low 10 %,
    high 50 %).

    When it is wrong
    ----------------
    Ranks on several machines. Ops too small for more than one thread. The waits themselves are not
    in the trace, so the figure is a guess.

    Example
    -------
    A container with 2 processors on a machine of 64, where torch starts 32 threads.

    What to try
    -----------
    `torch.set_num_threads(n)` or `OMP_NUM_THREADS=n` with n x ranks no more than the processors.

    References
    ----------
    PyTorch performance tuning guide, "Utilize OpenMP".
    """

    code = "HO05"
    name = "thread-oversubscription"
    subject = "ops on more threads than processors"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.CAPTURE_RECORD)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all ops of the main thread, where there is no device."""
        record = context.recording
        if record is None or not record.num_cpus or not record.num_threads:
            return
        threads = record.num_threads * (record.world_size or 1)
        ids = context.outermost(context.on_main(context.ops(ATEN)))
        if threads < LEAST_RATIO * record.num_cpus or context.busy_ns or ids.size == 0:
            return
        everything = context.host_removal(ids)
        fitting = max(1, record.num_cpus // (record.world_size or 1))
        yield Claim(
            title=f"{threads} threads share {record.num_cpus} processors",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.LOW,
            tries=(f"torch.set_num_threads({fitting}), or OMP_NUM_THREADS={fitting}",),
            how="the steps replayed with a part of the ops' time gone that is a guess",
        )
