"""NE10: the hardware slows itself down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import (
    device_of,
    engine_time,
    neuron_tracks,
    shorter_programs,
)
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind, TrackKind
from trnscope.store.tables import U32

LEAST_SHARE = 0.1
"""Of the programs' time. Ours: less gives back under 5 %."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.2, 0.4, 0.5
"""Of the throttled time: the Tensor engine starts a burst at half its rate (Neuron Explorer's
troubleshooting), so half of it would go at the most. Low and likely are assumptions of ours."""


class ThrottledRule(Rule):
    """The hardware slows the Tensor engine down to keep its power steady.

    What it finds
    -------------
    Stretches that the device profile marks as throttled, in 10 % of the programs' time or more.

    Why it costs time
    -----------------
    A Tensor engine that was used less than half for some 3 µs starts its next burst at about half
    of its rate and speeds up slowly. Programs that alternate between transfers and products pay
    for it each time.

    How it is computed
    ------------------
    The replay runs the steps with the programs shorter by 40 % of the throttled share of their time
    (low 20 %, high half). A device profile alone has no steps: the same share of its time.

    When it is wrong
    ----------------
    Throttling for heat lasts, and no edit of the program ends it.

    Example
    -------
    Small products, each waiting for its weights: throttled for a third of the time.

    What to try
    -----------
    Keep the Tensor engine busy: load the next tiles while this one is computed, larger tiles, fewer
    pauses between products.

    References
    ----------
    Neuron Explorer's troubleshooting page on power throttling.
    """

    code = "NE10"
    name = "throttled"
    subject = "throttling"
    needs = (Need.NEURON, Need.ENGINES)
    specificity = 3

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the throttled stretches."""
        found = engine_time(context)
        if found is None or found.whole.total == 0:
            return
        ids = _throttled(context, found.device)
        if ids.size == 0:
            return
        outside = found.whole.subtract(context.union_of(ids))
        share = 1.0 - outside.total / found.whole.total
        if share < LEAST_SHARE:
            return
        throttled_ns = found.whole.total - outside.total
        shares = (LOW_SHARE, LIKELY_SHARE, HIGH_SHARE)
        gone = shorter_programs(context, throttled_ns, found.whole.total, shares)
        yield Claim(
            title=f"The Tensor engine is throttled for {percent(share)} of the programs' time",
            evidence=ids,
            likely=gone.likely,
            low=gone.low,
            high=gone.high,
            direct_ns=gone.direct_ns,
            direct_time=found.whole.subtract(outside),
            direct_of_judged=True,
            confidence=Confidence.MEDIUM,
            tries=(
                "keep the Tensor engine busy: larger tiles, the next tiles loaded meanwhile, fewer "
                "pauses between products",
                "if it lasts for seconds it is heat: look at the instance",
            ),
            how=f"programs shorter by {percent(LIKELY_SHARE)} of the throttled time",
        )


def _throttled(context: StepContext, device: int) -> U32:
    trace = context.trace
    tracks = [
        track
        for track in neuron_tracks(context, TrackKind.DEVICE_STREAM)
        if device_of(context, track) == device
        and "throttling" in (trace.tracks[track].thread_name or trace.tracks[track].thread)
    ]
    ids = context.inside(trace.slices.of_kind(SliceKind.DEVICE_ANNOTATION))
    return np.asarray(ids[np.isin(trace.slices.track[ids], tracks)], np.uint32)
