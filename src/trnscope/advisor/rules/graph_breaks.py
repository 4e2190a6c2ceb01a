"""CO03: a compiled model in pieces."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.compiling import regions
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals

LEAST_PIECES = 3
"""Compiled pieces per step; a model and its loss are two."""
LOW_SHARE, LIKELY_SHARE = 0.3, 0.6
"""Of the time between pieces, which runs eagerly: assumptions of ours; high is all of it."""


class GraphBreaksRule(Rule):
    """A compiled model runs in pieces, with Python between them.

    What it finds
    -------------
    Three or more different compiled regions per step (`Torch-Compiled Region: 0/0`, `1/0` ...), and
    what runs between one and the next.

    Why it costs time
    -----------------
    Where torch.compile meets code that it cannot take into its graph, it breaks the graph: Python
    runs that part, guards are checked again, and nothing is fused across.

    How it is computed
    ------------------
    Time of the main thread from the end of one region to the start of the next in the same step.
    The replay runs the steps with 60 % of it gone (low 30 %, high all).

    When it is wrong
    ----------------
    Several models or functions compiled apart (`torch.compile` of each layer) are no breaks.

    Example
    -------
    `print(x.shape)` or `x.item()` in `forward`.

    What to try
    -----------
    `torch._dynamo.explain(model)(x)` lists the breaks; `fullgraph=True` turns them into errors.

    References
    ----------
    torch.compile troubleshooting, "Graph breaks".
    """

    code = "CO03"
    name = "graph-breaks"
    subject = "time between compiled pieces"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the time between compiled regions."""
        ids, names = regions(context)
        if context.main is None or len(set(names)) < LEAST_PIECES:
            return
        starts = context.trace.slices.start_ns[ids]
        ends = starts + context.trace.slices.dur_ns[ids]
        bounds = np.array([step.end_ns for step in context.window.steps], np.int64)
        step = np.searchsorted(bounds, starts, side="right")
        same = (step[1:] == step[:-1]) & (starts[1:] > ends[:-1])
        if not same.any():
            return
        between = Intervals.union_of(ends[:-1][same], starts[1:][same])
        everything = Removal((HostCut(context.main, between),))
        pieces = len(set(names))
        yield Claim(
            title=f"The compiled model runs in {pieces} pieces, with Python between them",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.LOW,
            tries=(
                "list the graph breaks: torch._dynamo.explain(model)(example_input)",
                "compile with fullgraph=True, which names the line of the first break",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the time between pieces gone",
        )
