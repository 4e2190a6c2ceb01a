"""NE03: ops are compiled again because their inputs have other shapes."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import time_in_steps
from trnscope.advisor.rules.neuron_compiling import neuron_compilation

LOW_SHARE = 0.5
"""Some shapes stay different; half of the compiling goes at the least. Ours."""


class NewShapesRule(Rule):
    """Inputs of ever new shapes make the Neuron compiler run inside the steps.

    What it finds
    -------------
    Runs of `neuronx-cc` that do not end with the first steps: in two steps of the later half of the
    recording, or in one of it and in half of all steps.

    Why it costs time
    -----------------
    A program for a NeuronCore is compiled for fixed shapes. Every other shape is another program:
    a second or more for one op, minutes for a graph, during which nothing else happens.

    How it is computed
    ------------------
    Time of compiling over the number of recorded steps. Low: half of it.

    When it is wrong
    ----------------
    If these were the first steps, and all shapes come again, a few programs are compiled once and
    kept (also from run to run, in the compiler's cache): record later steps. The trace does not say
    what was new: parts of the model that are first used in a late step are compiled there too.

    Example
    -------
    Batches padded to their own longest text: 23 programs compiled per step, one second each.

    What to try
    -----------
    Pad to a few lengths (buckets); `drop_last=True`; a fixed batch size; masks instead of slices
    whose length depends on the data.

    References
    ----------
    msprof-analyze's rule for shapes that are compiled on line; the Neuron SDK on dynamic shapes and
    bucketing.
    """

    code = "NE03"
    name = "new-shapes"
    subject = "compiling for new shapes"
    needs = (Need.NEURON, Need.HOST_OPS)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all compiling, if it goes on after the first half of the steps."""
        found = neuron_compilation(context)
        if found is None or not found.is_again:
            return
        each = found.total_ns // found.num_steps
        number = found.slices.size / found.num_steps
        yield Claim(
            title=f"New shapes make the Neuron compiler run inside the step: {number:.1f} programs "
            "per step",
            evidence=found.slices,
            likely=context.host_removal(found.slices),
            direct_ns=(round(each * LOW_SHARE), each, each),
            direct_time=time_in_steps(context, found.slices),
            confidence=Confidence.MEDIUM,
            tries=(
                "keep shapes the same: pad to a few lengths, drop_last=True, a fixed batch size",
                "if these shapes come again, record later steps: trnscope run --warmup 20 ...",
            ),
            how=f"time of compiling over the {found.num_steps} recorded steps, of which "
            f"{found.num_compiling} compiled",
        )
