"""HO04: Python collects garbage inside the step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule

_COLLECTION = re.compile(r"^Python GC$|^<built-in function collect>$|^gc\.collect$")


class GcInStepRule(Rule):
    """Python collects garbage in the middle of the step.

    What it finds
    -------------
    Calls of `gc.collect()` inside steps, and collections that Python started by itself where the
    profiler recorded them.

    Why it costs time
    -----------------
    A full collection visits every object that the process holds: tens to hundreds of ms in a large
    training program, at a moment that differs from rank to rank.

    How it is computed
    ------------------
    The replay runs the steps without these slices.

    When it is wrong
    ----------------
    If the collection frees device memory that the next step needs, calling it less often can run
    out of memory.

    Example
    -------
    `gc.collect(); torch.cuda.empty_cache()` at the end of each step, against running out of memory.

    What to try
    -----------
    Take it out of the loop; `gc.freeze()` after set-up; `gc.disable()` and one collection every
    1,000 steps, at the same step on all ranks.

    References
    ----------
    msprof-analyze flags pauses above 1 ms.
    """

    code = "HO04"
    name = "gc-in-step"
    subject = "collecting garbage"
    needs = (Need.REAL_HOST, Need.STACKS)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all collections."""
        ids = np.union1d(context.frames(_COLLECTION), context.ops(_COLLECTION))
        other = context.other_host(_COLLECTION)
        ids = context.outermost(np.union1d(ids, other).astype(np.uint32))
        if ids.size == 0:
            return
        yield Claim(
            title="Python collects garbage inside the step",
            evidence=ids,
            likely=context.host_removal(ids),
            confidence=Confidence.HIGH,
            tries=(
                "take gc.collect() out of the loop; call gc.freeze() after set-up and "
                "gc.disable(), and collect every 1,000 steps",
            ),
            how="the steps replayed without the collections",
        )
