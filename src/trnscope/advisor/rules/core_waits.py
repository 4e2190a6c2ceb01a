"""NE11: the NeuronCore idles, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.launch_bound import BUSY_ENOUGH
from trnscope.advisor.rules.neuron_work import programs
from trnscope.advisor.words import percent
from trnscope.analysis.breakdown import device_breakdown
from trnscope.analysis.devices import device_work
from trnscope.model.intervals import I64, Intervals

LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.3, 0.5, 0.85
"""Of the host's own time while the core idles: from fewer and larger graphs to one launch a step.
Assumptions of ours."""
_REASONS = {
    "host_wait": "the host to launch work",
    "launch_wait": "launched work to begin",
    "exposed_memcpy": "copies",
    "exposed_communication": "other ranks",
    "other": "what the trace does not show",
}


class CoreWaitsRule(Rule):
    """The NeuronCore works less than 80 % of the time; the finding says what it waits for.

    What it finds
    -------------
    Steps in which the core is idle for a fifth of the time or more, where no other rule explains
    the host's part of it.

    Why it costs time
    -----------------
    The core costs the same, whether it works or waits. A graph costs the host 0.12 ms to launch,
    and 0.02 ms more for each tensor that is passed to it; a core that is done sooner waits.

    How it is computed
    ------------------
    The parts of the step in which the core does not compute are those of `trnscope breakdown`. The
    replay runs the steps with half of the host's own time gone, as far as the core idles meanwhile
    (low 30 %, high 85 %), without the data loader and what other rules explain.

    When it is wrong
    ----------------
    It names no single line. On a simulated device Python itself takes no time, so that a real core
    waits longer than this says.

    Example
    -------
    A compiled model of 0.2 ms with 25 parameters: each launch costs the host 0.6 ms.

    What to try
    -----------
    A larger batch; model and loss in one compiled function; `fused=True` for the optimizer; fewer
    and larger tensors passed to each graph.

    References
    ----------
    The Neuron SDK's guides aim at a NeuronCore that is busy 80 % of the time or more.
    """

    code = "NE11"
    name = "core-waits"
    subject = "waiting of the NeuronCore"
    needs = (Need.NEURON, Need.HOST_OPS, Need.LAUNCHES)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the host's own time while the core idles."""
        busy_ns, replay = context.busy_ns, context.replay
        if busy_ns is None or replay is None:
            return
        share = min(1.0, busy_ns / max(context.step_ns, 1))
        if share > BUSY_ENOUGH:
            return
        idle = _idle(context)
        loading = context.time_by_thread(context.loading)
        cuts = []
        for track, own in replay.graph.own.items():
            time = own.subtract(own.subtract(idle))
            cuts.append(HostCut(track, time.subtract(loading.get(track, Intervals.empty()))))
        everything = Removal(tuple(cuts))
        yield Claim(
            title=f"The NeuronCore works {percent(share)} of the time; {_reasons(context)}",
            evidence=programs(context),
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                "a larger batch, so that each launch does more work",
                "fewer launches: model and loss in one compiled function, the optimizer with "
                "fused=True; fewer and larger tensors passed to each graph",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the host's own time gone, "
            "where the core idles meanwhile",
        )


def _idle(context: StepContext) -> Intervals:
    """When the busiest device does nothing, within the window."""
    window = context.window
    busiest = max(device_work(context.trace), key=lambda work: work.busy.total)
    whole = Intervals.union_of(*_ends(window.start_ns, window.end_ns))
    return whole.subtract(busiest.busy)


def _reasons(context: StepContext) -> str:
    """``it waits 66 % for the host to launch work and 6 % for copies``."""
    window = context.window
    totals: dict[str, int] = {}
    for row in device_breakdown(context.trace):
        if window.start_ns <= row.start_ns < window.end_ns:
            for part in row.parts:
                totals[part.key] = totals.get(part.key, 0) + part.duration_ns
    whole = max(sum(totals.values()), 1)
    shares = ((totals.get(key, 0) / whole, text) for key, text in _REASONS.items())
    waits = sorted(shares, reverse=True)
    first, second = waits[0], waits[1]
    text = f"it waits {percent(first[0])} for {first[1]}"
    return text if second[0] < 0.05 else f"{text} and {percent(second[0])} for {second[1]}"


def _ends(start_ns: int, end_ns: int) -> tuple[I64, I64]:
    return np.array([start_ns], np.int64), np.array([end_ns], np.int64)
