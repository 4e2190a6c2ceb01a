"""When nothing but small transfers runs on a NeuronCore."""

from __future__ import annotations

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.rules.neuron_work import EngineTime, SmallTransfers
from trnscope.model.intervals import Intervals


def time_of_small(
    context: StepContext, found: EngineTime, small: SmallTransfers | None
) -> Intervals:
    """Without the time of engines and of quicker transfers; none where no transfer is small."""
    if small is None:
        return Intervals.empty()
    quick = np.setdiff1d(found.transfers, small.slices).astype(np.uint32)
    return found.dma_alone.subtract(context.union_of(quick))
