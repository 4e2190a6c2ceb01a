"""IN08: batches are prepared on the main thread, after the loader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import OPTIMIZER, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.functions import main_function
from trnscope.advisor.rules.workers import advised_workers, hidden_share
from trnscope.model.intervals import I64, Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_MODEL = re.compile(r"^nn\.Module: ")
_COPYING = re.compile(r"^aten::(to|_to_copy|copy_)$")
_FROM_HOST = re.compile(r"HtoD|h2d|copyin|host.?to.?device", re.IGNORECASE)
LOW_SHARE = 0.5
"""Some of it must stay on the main thread: an assumption of ours."""


class MainThreadPreparationRule(Rule):
    """Each batch is prepared on the main thread between the data loader and the model.

    What it finds
    -------------
    Ops and Python code of the main thread from the end of the loader's `next` to the first call of
    a module, or, if that comes first, to the first op that launches work or copies to the device:
    augmentation, masking, resizing, tokenising of a whole batch. Time in which neither ops nor
    Python functions show what was done does not count.

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
        found = main_function(context, time)
        ops = context.outermost(context.on_main(context.ops()))
        ops = _starting_in(context, ops, time)
        if found is None:
            frames = _starting_in(context, context.on_main(context.frames()), time)
            shown = context.union_of(np.concatenate((ops, frames)).astype(np.uint32))
            time = time.subtract(time.subtract(shown))
        if context.main is None or time.total == 0:
            return
        each_ns = context.per_step(time.total)
        everything = Removal((HostCut(context.main, time),))
        workers = advised_workers(context)
        likely = everything.scaled(hidden_share(context, each_ns, workers))
        where = "" if found is None else f", most of it in {found.name}"
        what = "that code" if found is None else found.name
        yield Claim(
            title=f"Each batch is prepared on the main thread before the model is called{where}",
            evidence=ops if found is None else found.calls,
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
    models = np.sort(slices.start_ns[_first_of_model(context)])
    if begin.size == 0 or models.size == 0:
        return Intervals.empty()
    place = np.searchsorted(models, begin)
    known = place < models.size
    begin, end = begin[known], models[place[known]]
    in_time = end <= next_request[known]
    time = Intervals.union_of(begin[in_time], end[in_time])
    for busy in context.time_by_thread(context.ranges(OPTIMIZER)).values():
        time = time.subtract(busy)
    return time


def _first_of_model(context: StepContext) -> U32:
    """Calls of modules, launches of device work, the ops that hold these, and ops of the main
    thread that wait for a copy whose launch is not in the trace."""
    launches = context.trace.launches
    calls = context.inside(np.unique(launches.launch_slice[launches.has_launch]).astype(np.uint32))
    calls = context.on_main(calls)
    ops = context.outermost(context.on_main(context.ops()))
    copying = ops[context.holds(ops, calls)], _copying(context, ops)
    frames = context.on_main(context.frames(_MODEL))
    return np.concatenate((frames, calls, *copying)).astype(np.uint32)


def _copying(context: StepContext, ops: U32) -> U32:
    """Ops that copy, and during which a copy from the host runs that nothing is known to launch."""
    launches, slices = context.trace.launches, context.trace.slices
    copies = context.device(SliceKind.MEMCPY, pattern=_FROM_HOST)
    copies = copies[np.isin(copies, launches.device_slice[~launches.has_launch])]
    ops = np.intersect1d(ops, context.ops(_COPYING)).astype(np.uint32)
    start = slices.start_ns[ops]
    running = context.union_of(copies).covered_within(start, start + slices.dur_ns[ops])
    return np.asarray(ops[running > 0], np.uint32)


def _starting_in(context: StepContext, ids: U32, time: Intervals) -> U32:
    """Those that start in some time."""
    start: I64 = context.trace.slices.start_ns[ids]
    return np.asarray(ids[time.covered_within(start, start + 1) > 0], np.uint32)
