"""CO01: code is compiled while steps are recorded."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.compiling import compilation


class CompileInWindowRule(Rule):
    """The recording holds steps in which torch.compile compiled for the first time.

    What it finds
    -------------
    Ranges of TorchDynamo and its backend inside recorded steps, all for code that had not been
    compiled before.

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
    If compiling goes on for many steps, see CO02.

    Example
    -------
    A trace of the first three steps of a compiled model.

    What to try
    -----------
    Record later steps: `trnscope run --warmup 10`; keep the compiler's cache between runs.

    References
    ----------
    torch.compile: "Compile time and caching"; profiling the compiler instead of the run is a
    complaint in Neuron Explorer's own troubleshooting.
    """

    code = "CO01"
    name = "compile-in-window"
    subject = "compiling"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim, without time per step."""
        found = compilation(context)
        if found is None or found.is_again:
            return
        total_s = found.total_ns / 1e9
        yield Claim(
            title=f"The recording contains {total_s:.1f} s of compiling, which happens once",
            evidence=found.slices,
            likely=None,
            confidence=Confidence.HIGH,
            tries=("record later steps: trnscope run --warmup 10 ...",),
            how="compiling happens once and is not counted per step",
            is_fault=True,
        )
