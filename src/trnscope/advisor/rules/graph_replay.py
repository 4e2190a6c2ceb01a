"""CA07: most device work comes from replayed graphs, of which the trace shows no ops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

LEAST_OF_ONE_CALL = 10
"""Pieces of work of one launch, from which on it replays a graph: cuBLAS and others launch two or
three kernels with one call. Ours."""
LEAST_SHARE = 0.5
"""Of the device time. Ours: below, rules about ops see most of it."""


class GraphReplayRule(Rule):
    """Most device work was launched as recorded graphs, so that it belongs to no op.

    What it finds
    -------------
    Launches with ten or more kernels each (`cudaGraphLaunch`, `hipGraphLaunch`) that account for
    half of the device time or more.

    Why it costs time
    -----------------
    It costs none: replaying a graph is the quickest way to launch. But the ops ran once, when the
    graph was captured. Rules about ops (norms, attention, casts) see nothing of what is replayed,
    and their silence says nothing.

    How it is computed
    ------------------
    No figure of time belongs to it.

    When it is wrong
    ----------------
    A trace that holds the capture too shows the ops once, with their shapes.

    Example
    -------
    Decoding with vLLM: one launch holds 421 of 425 kernels.

    What to try
    -----------
    Record the run once without graphs (`enforce_eager=True`, `mode="default"`), or the phase that
    captures them; `trnscope kernels` shows what is replayed, kernel by kernel.

    References
    ----------
    Users whose device time falls into one row: AMD-AGI/TraceLens#827, vllm-project/vllm#45069.
    """

    code = "CA07"
    name = "graph-replay"
    subject = "the recording"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """A fault of the recording where most work is replayed."""
        replayed = _replayed(context)
        share = context.duration_ns(replayed) / max(context.duration_ns(context.device()), 1)
        if share < LEAST_SHARE:
            return
        yield Claim(
            title=f"{percent(share)} of the device's work are replayed graphs: rules about ops see "
            "nothing of it",
            evidence=replayed,
            likely=None,
            confidence=Confidence.HIGH,
            tries=(
                'record the run once without graphs: enforce_eager=True (vLLM), mode="default" '
                "(torch.compile)",
            ),
            how="no figure of time belongs to it",
            is_fault=True,
        )


def _replayed(context: StepContext) -> U32:
    """Work of the window whose launch has at least ten pieces."""
    launches = context.trace.launches
    linked = launches.has_launch
    work, calls = launches.device_slice[linked], launches.launch_slice[linked]
    _, group, count = np.unique(calls, return_inverse=True, return_counts=True)
    many = work[count[group] >= LEAST_OF_ONE_CALL]
    return np.sort(context.inside(np.asarray(many, np.uint32)))
