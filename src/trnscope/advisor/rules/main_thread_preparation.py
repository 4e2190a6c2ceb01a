"""IN08: batches are prepared on the main thread, after the loader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.functions import main_function
from trnscope.advisor.rules.workers import advised_workers, hidden_share
from trnscope.model.intervals import I64, Intervals
from trnscope.store.tables import U32

_MODEL = re.compile(r"^nn\.Module: ")
_OPTIMIZER = re.compile(r"Optimizer\.(step|zero_grad)#")
LOW_SHARE = 0.5
"""Some of it must stay on the main thread: an assumption of ours."""


class MainThreadPreparationRule(Rule):
    """Each batch is prepared on the main thread between the data loader and the model.

    What it finds
    -------------
    Ops and Python code of the main thread from the end of the loader's `next` to the first call of
    a module, or, if that comes first, to the first work that is launched: augmentation, masking,
    resizing, tokenising of a whole batch.

    Why it costs time
    -----------------
    It runs once a step where everything waits for it. In the loader, worker processes would do it
    during the step before.

    How it is computed
    ------------------
    The replay runs the steps with that time cut to what workers would not hide, as for IN02: four
    of them, or as many as there are processors. Low: half of that. High: all of it hides.

    When it is wrong
    ----------------
    Work that needs the model or the device cannot move. Where the step itself runs on the CPU,
    workers take processors from it.

    Example
    -------
    `x = augment(x)` with a resize and random flips in the loop: 27 of a step of 54 ms.

    What to try
    -----------
    Call it in the dataset's `__getitem__` or in `collate_fn`, with `num_workers` above 0; or do it
    on the device, after the copy.

    References
    ----------
    xprof's host processing as a share of input time.
    """

    code = "IN08"
    name = "main-thread-preparation"
    subject = "preparing batches on the main thread"
    needs = (Need.HOST_OPS, Need.REAL_HOST, Need.MODEL_CALLS)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the time between the loader and the model."""
        time = _preparation(context)
        if context.main is None or time.total == 0:
            return
        each_ns = context.per_step(time.total)
        everything = Removal((HostCut(context.main, time),))
        workers = advised_workers(context)
        likely = everything.scaled(hidden_share(context, each_ns, workers))
        found = main_function(context, time)
        where = "" if found is None else f", most of it in {found.name}"
        what = "that code" if found is None else found.name
        yield Claim(
            title=f"Each batch is prepared on the main thread before the model is called{where}",
            evidence=_ops_in(context, time) if found is None else found.calls,
            likely=likely,
            low=likely.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                f"move {what} into the dataset or collate_fn, and give the DataLoader "
                f"num_workers={workers} and persistent_workers=True",
                "or prepare the batch on the device, after copying it there",
            ),
            how="the steps replayed with the preparation that workers would not hide",
        )


def _preparation(context: StepContext) -> Intervals:
    """From the end of each request for a batch to the model, without the optimizer's ranges."""
    slices = context.trace.slices
    loading = context.on_main(context.loading)
    begin = np.sort(slices.start_ns[loading] + slices.dur_ns[loading])
    next_request = np.append(np.sort(slices.start_ns[loading])[1:], context.window.end_ns)
    models = np.sort(slices.start_ns[_model_calls(context)])
    if begin.size == 0 or models.size == 0:
        return Intervals.empty()
    place = np.searchsorted(models, begin)
    known = place < models.size
    begin, end = begin[known], models[place[known]]
    in_time = end <= next_request[known]
    time = Intervals.union_of(begin[in_time], end[in_time])
    for busy in context.time_by_thread(context.ranges(_OPTIMIZER)).values():
        time = time.subtract(busy)
    return time


def _model_calls(context: StepContext) -> U32:
    """Calls of modules and launches of device work, on the main thread."""
    launches = context.trace.launches
    calls = context.inside(np.unique(launches.launch_slice[launches.has_launch]).astype(np.uint32))
    both = np.concatenate((context.frames(_MODEL), calls)).astype(np.uint32)
    return context.on_main(both)


def _ops_in(context: StepContext, time: Intervals) -> U32:
    """The outermost ops of the main thread that start in some time."""
    ops = context.outermost(context.on_main(context.ops()))
    start: I64 = context.trace.slices.start_ns[ops]
    index = np.searchsorted(time.start, start, side="right") - 1
    inside = (index >= 0) & (start < time.end[np.maximum(index, 0)])
    return np.asarray(ops[inside], np.uint32)
