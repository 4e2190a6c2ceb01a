"""NE04: the Neuron compiler runs while steps are recorded."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_compiling import neuron_compilation


class NeuronCompileRecordedRule(Rule):
    """The recording holds steps in which programs for the NeuronCore were compiled for the first
    time.

    What it finds
    -------------
    Runs of `neuronx-cc` inside recorded steps, nearly all of them in the first half of the steps.

    Why it costs time
    -----------------
    Compiling takes seconds to minutes, once. A recording that contains it says little about the
    steps that follow.

    How it is computed
    ------------------
    Nothing is recoverable per step: this happens once. Steps three times as long as the median are
    left out of all other figures.

    When it is wrong
    ----------------
    If compiling goes on in step after step, see NE03.

    Example
    -------
    A trace of the first step of a model, without warm-up.

    What to try
    -----------
    Record later steps: `trnscope run --warmup 10`; keep the compiler's cache between runs.

    References
    ----------
    Neuron Explorer's own troubleshooting: profiles of the compiler instead of the run.
    """

    code = "NE04"
    name = "neuron-compile-recorded"
    subject = "compiling for the NeuronCore"
    needs = (Need.NEURON, Need.HOST_OPS)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim, without time per step."""
        found = neuron_compilation(context)
        if found is None or found.is_again:
            return
        yield Claim(
            title=f"The recording contains {found.total_ns / 1e9:.1f} s of compiling for the "
            "NeuronCore, which happens once",
            evidence=found.slices,
            likely=None,
            confidence=Confidence.HIGH,
            tries=("record later steps: trnscope run --warmup 10 ...",),
            how="compiling happens once and is not counted per step",
            is_fault=True,
        )
