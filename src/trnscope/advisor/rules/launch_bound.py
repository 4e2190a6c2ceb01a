"""HO02: the device waits for the host to launch work."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.needs import has_device_of
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.replay import Replay
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.python_overhead import LEAST_GAP_NS, long_gaps
from trnscope.advisor.words import percent
from trnscope.model.kinds import DeviceKind
from trnscope.store.tables import U32

_ANY = re.compile("")
_LAUNCH = re.compile(r"Launch|nrt_execute|Enqueue")
BUSY_ENOUGH = 0.8
"""A device that works more than this share of the time is not short of launches; VTune flags a
GPU under 80 %, and the Neuron guides aim at it."""
LEAST_LAUNCHES = 50
"""Launches per step; below, it is not launching that takes the time. Ours."""
MOST_PER_LAUNCH_NS = 200_000
"""Host time that one launch can account for: some 10 µs, several times that with stacks and shapes
recorded. What takes longer is other work. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.3, 0.5, 0.85
"""Host time that goes when a model is compiled or its launches are replayed as a graph: from
fusing alone to one launch a step. Assumptions of ours."""


class LaunchBoundRule(Rule):
    """The host launches work more slowly than the device does it.

    What it finds
    -------------
    Steps in which the device is idle because the next piece of work has not been launched yet,
    with many launches per step. Time in the data loader does not count.

    Why it costs time
    -----------------
    Each op costs the host some 5 to 20 µs in Python and in the dispatcher, however little it does
    on the device. When the ops are short, the device waits for the host.

    How it is computed
    ------------------
    The replay runs the steps with half of the host's own time gone (low 30 %, high 85 %), without
    what other rules explain, the data loader, and single stretches of 0.5 ms or more. Of the rest
    no more than 0.2 ms for each launch counts. What the device does then becomes the limit.

    When it is wrong
    ----------------
    The profiler itself slows the host down more than the device: a step that is launch-bound by a
    little under the profiler may not be without it.

    Example
    -------
    A transformer with batch size 1: 1,200 launches and 4 ms of device work in a step of 18 ms.

    What to try
    -----------
    `torch.compile(model, mode="reduce-overhead")` on a GPU, which replays launches as a graph;
    `torch.compile(model, backend="neuron")` on a NeuronCore, where a graph is one program and
    `mode` counts for nothing; a larger batch; fewer and larger ops.

    References
    ----------
    HTA's kernel launch statistics and TraceLens' idle rule.
    """

    code = "HO02"
    name = "launch-bound"
    subject = "launching work"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 0

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the host's own time."""
        busy_ns, replay = context.busy_ns, context.replay
        if busy_ns is None or replay is None:
            return
        launching_ns = max(context.step_ns - context.duration_ns(context.loading), 1)
        share = min(1.0, busy_ns / launching_ns)
        if share > BUSY_ENOUGH:
            return
        work = replay.graph.work
        launches = int((work.launch_track >= 0).sum()) // context.window.num_steps
        if launches < LEAST_LAUNCHES:
            return
        everything = _launching(context, replay, launches)
        works = percent(share)
        yield Claim(
            title=f"The host launches work too slowly: the device works {works} of the time",
            evidence=context.calls(_LAUNCH),
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                f"compile the model: model = torch.compile(model, {_how_to_compile(context)})",
                f"a larger batch, so that the {launches:,} launches of a step do more work each",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the host's own time gone",
        )


def _how_to_compile(context: StepContext) -> str:
    is_neuron = has_device_of(context.trace, DeviceKind.NEURON)
    return 'backend="neuron"' if is_neuron else 'mode="reduce-overhead"'


def _launching(context: StepContext, replay: Replay, launches: int) -> Removal:
    """The hosts' own time, but for loading and for long stretches of Python or of one op.

    Of more than so many launches can account for, only that much.
    """
    apart = long_gaps(context)
    for time in context.time_by_thread(context.loading).values():
        apart = apart.union(time)
    long = context.time_by_thread(_long_ops(context))
    cuts = []
    for track, own in replay.graph.own.items():
        time = own.subtract(long[track]) if track in long else own
        cuts.append(HostCut(track, time.subtract(apart) if track == context.main else time))
    everything = Removal(tuple(cuts))
    each_ns = context.per_step(everything.host_ns) / launches
    return everything.scaled(min(1.0, MOST_PER_LAUNCH_NS / max(each_ns, 1.0)))


def _long_ops(context: StepContext) -> U32:
    """Ops and calls that compute or wait by themselves, for too long to be launching."""
    slices = context.trace.slices
    ids = np.union1d(context.ops(), context.calls(_ANY)).astype(np.uint32)
    dur = slices.dur_ns[ids]
    is_long = (dur >= LEAST_GAP_NS) & (slices.self_ns[ids] == dur)
    return np.asarray(ids[is_long], np.uint32)
