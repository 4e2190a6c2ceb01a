"""NE05: a NeuronCore changes from one program to another all the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import programs
from trnscope.advisor.words import about_ns, percent
from trnscope.analysis.names import slices_named
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_SWITCH = re.compile(r"^(nc|nrt)_model_switch$")
_OF_DEVICE = re.compile(r"^nc_model_switch$")
LOW_SHARE, LIKELY_SHARE = 0.5, 0.8
"""Of the switches: what goes when two programs become one, or take turns less often. Assumptions
of ours; high is all of them."""


class ModelSwitchesRule(Rule):
    """The NeuronCore changes from one program to another again and again.

    What it finds
    -------------
    `nc_model_switch` between programs (NEFFs) of one core, 5 % of the step or more.

    Why it costs time
    -----------------
    To run another program than the last, the core loads its instructions and rings. Two graphs that
    take turns pay for it at each turn.

    How it is computed
    ------------------
    A switch lengthens the program that follows it. The replay runs the steps with programs shorter
    by 80 % of the switches' time (low half, high all).

    When it is wrong
    ----------------
    Where each op is a program of its own there are as many switches as ops; see NE02.

    Example
    -------
    A draft model and a large one on the same core, called in turns: 40 switches per step.

    What to try
    -----------
    One graph for both parts (`torch.compile` around the function that calls them); each model on a
    core of its own; several batches through one before the other.

    References
    ----------
    Neuron Explorer's system profile, event `nc_model_switch`.
    """

    code = "NE05"
    name = "model-switches"
    subject = "changing from program to program"
    needs = (Need.NEURON, Need.LAUNCHES)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all switches of the device."""
        switches = _switches(context)
        ran = programs(context)
        program_ns = context.duration_ns(ran)
        if switches.size == 0 or program_ns == 0:
            return
        taken_ns = context.duration_ns(switches)
        share = min(1.0, taken_ns / program_ns)
        everything = Removal((), (DeviceCut(ran, share),))
        number = switches.size / context.window.num_steps
        each = about_ns(taken_ns * context.window.num_steps // switches.size)
        yield Claim(
            title=f"The NeuronCore changes its program {number:.0f} times per step, {each} each",
            evidence=switches,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "make one graph of the parts that take turns: torch.compile around the function "
                'that calls them, backend="neuron"',
                "give each model a core of its own, or run several batches through one before the "
                "other",
            ),
            how=f"the steps replayed with programs shorter by {percent(LIKELY_SHARE)} of the "
            "switches' time",
        )


def _switches(context: StepContext) -> U32:
    """Rows of the device; where it shows none, calls of the runtime."""
    trace = context.trace
    for kind, pattern in ((SliceKind.DEVICE_ANNOTATION, _OF_DEVICE), (SliceKind.RUNTIME, _SWITCH)):
        found = slices_named(trace, trace.slices.of_kind(kind), pattern.search)
        found = context.inside(found)
        if found.size:
            return np.sort(found)
    return np.empty(0, np.uint32)
