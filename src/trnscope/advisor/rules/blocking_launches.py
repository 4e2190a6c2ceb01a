"""DE04: every launch waits for its own work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.intervals import Intervals
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32, Bool

LEAST_BLOCKING = 0.9
"""Of the launches of kernels, that return only when their kernel has ended. Ours: a program that
waits on purpose does so a few times a step."""
LEAST_PER_STEP = 10
"""Launches; fewer may be waited for one by one for a reason. Ours."""
WOKEN_NS = 30_000
"""A call that waited returns so soon after its kernel ended; a slow launch of a short kernel
returns whenever it does. Ours."""
LAUNCH_NS = 10_000
"""What a launch takes that does not wait."""
_WAITS = re.compile(r"Synchronize|^(?!kbl_exec|nrt_queue).*_wait")


class BlockingLaunchesRule(Rule):
    """Every launch waits until its work is done, as with CUDA_LAUNCH_BLOCKING=1.

    What it finds
    -------------
    Nine of ten launches return within 30 µs of the end of their kernel, or are followed at once by
    a wait for it.

    Why it costs time
    -----------------
    Host and device take turns: the host prepares nothing while the device works, and the device has
    nothing queued while the host prepares.

    How it is computed
    ------------------
    The replay runs the steps with launches of 10 µs and without the waits that follow them.

    When it is wrong
    ----------------
    A program of ten large kernels that reads each result looks alike; then the reads are the cause.

    Example
    -------
    `CUDA_LAUNCH_BLOCKING=1`, left over from looking for an illegal access; on a NeuronCore
    `NEURON_LAUNCH_BLOCKING=1`.

    What to try
    -----------
    Unset the variable: `env | grep LAUNCH_BLOCKING`.

    References
    ----------
    msprof-analyze's rule for synchronous streams; CUDA programming guide, environment variables.
    """

    code = "DE04"
    name = "blocking-launches"
    subject = "launches that wait for their work"
    needs = (Need.DEVICE_WORK, Need.LAUNCHES)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all launches and the waits behind them."""
        kernels, calls = _linked_kernels(context)
        if kernels.size < LEAST_PER_STEP * context.window.num_steps:
            return
        inside = _ended_in(context, kernels, calls)
        waits = _waits_after(context, calls[~inside])
        blocking = int(inside.sum()) + waits.size
        if blocking < LEAST_BLOCKING * kernels.size:
            return
        everything = context.host_removal(waits)
        cuts = [
            _beyond_a_launch(context, track, calls[inside]) for track in _tracks(context, calls)
        ]
        evidence = np.union1d(calls[inside], waits).astype(np.uint32)
        share = percent(min(1.0, blocking / kernels.size))
        yield Claim(
            title=f"Every launch waits for its own work ({share} of them): is LAUNCH_BLOCKING set?",
            evidence=evidence,
            likely=replace(everything, host=(*everything.host, *cuts), waits=np.sort(evidence)),
            confidence=Confidence.HIGH,
            tries=("unset CUDA_LAUNCH_BLOCKING (NEURON_LAUNCH_BLOCKING on a NeuronCore)",),
            how="the steps replayed with launches that return at once",
        )


def _linked_kernels(context: StepContext) -> tuple[U32, U32]:
    """Kernels of the window whose launch is known, and the launch of each; one a launch."""
    launches = context.trace.launches
    mine = np.isin(launches.device_slice, context.device(SliceKind.KERNEL)) & launches.has_launch
    calls, first = np.unique(launches.launch_slice[mine], return_index=True)
    return launches.device_slice[mine][first], calls.astype(np.uint32)


def _ended_in(context: StepContext, kernels: U32, calls: U32) -> Bool:
    """For each launch whether it returned when its kernel had ended."""
    slices = context.trace.slices
    ended = slices.start_ns[kernels] + slices.dur_ns[kernels]
    after_ns = slices.start_ns[calls] + slices.dur_ns[calls] - ended
    return np.asarray((after_ns >= 0) & (after_ns <= WOKEN_NS), np.bool_)


def _waits_after(context: StepContext, calls: U32) -> U32:
    """Waits of a thread before which exactly one launch came since the wait before."""
    slices = context.trace.slices
    points = () if context.replay is None else context.replay.graph.points
    waits = np.array(sorted({p.call for p in points if p.call is not None}), np.uint32)
    waits = waits[np.isin(waits, context.calls(_WAITS))]
    found = []
    for track in _tracks(context, waits):
        mine = waits[slices.track[waits] == track]
        mine = mine[np.argsort(slices.start_ns[mine], kind="stable")]
        launched = np.sort(slices.start_ns[calls[slices.track[calls] == track]])
        before = np.searchsorted(launched, slices.start_ns[mine])
        found.append(mine[np.diff(before, prepend=0) == 1])
    return np.sort(np.concatenate(found)) if found else np.empty(0, np.uint32)


def _tracks(context: StepContext, ids: U32) -> list[int]:
    return [int(track) for track in np.unique(context.trace.slices.track[ids])]


def _beyond_a_launch(context: StepContext, track: int, calls: U32) -> HostCut:
    """What a thread's launches take longer than a launch does."""
    slices = context.trace.slices
    mine = calls[slices.track[calls] == track]
    start = slices.start_ns[mine]
    end = start + slices.dur_ns[mine]
    return HostCut(track, Intervals.union_of(np.minimum(start + LAUNCH_NS, end), end))
