"""CO04: a model is compiled in many small pieces."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import HostCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.compiling import regions
from trnscope.advisor.words import percent

_BACKWARD = re.compile(r"^autograd::engine::evaluate_function: CompiledFunctionBackward$")
_CODE = re.compile(r"^## Call CompiledFxGraph ")
LEAST_RUNS = 8
"""Runs of compiled code per step on the main thread; a model, its loss and its optimizer are
three. Ours."""
LEAST_RUNS_EACH = 4
"""Runs of each piece per step: pieces that run once each are graph breaks (CO03). Ours."""
LOW_SHARE, LIKELY_SHARE = 0.5, 0.9
"""Of what is around the compiled code: one piece in place of all has it once. Assumptions of ours;
high is all of it."""


class CompiledPieceByPieceRule(Rule):
    """The layers of a model are compiled one by one, and each call pays for its wrapping.

    What it finds
    -------------
    At least eight runs of compiled code per step, of the same few pieces again and again
    (`Torch-Compiled Region: 0/1` for each layer), and the time in them that is not the compiled
    code itself (`## Call CompiledFxGraph ... ##`), forward and backward. Calls that show no such
    code are left out: with `backend="aot_eager"` or a backend of your own, what works in them
    cannot be told from what is around it.

    Why it costs time
    -----------------
    Each call checks its guards, makes a node of autograd, wraps and unwraps its tensors: 0.2 to
    0.5 ms. Nothing is fused from one piece to the next.

    How it is computed
    ------------------
    The replay runs the steps with 90 % of the time around the compiled code gone (low half, high
    all).

    When it is wrong
    ----------------
    Compiling layer by layer is a choice where it saves minutes of compiling, as for very deep
    models on a device that is busy anyway; then nothing is found here.

    Example
    -------
    `nn.Sequential(*[torch.compile(layer) for layer in layers])` with 30 layers of width 64: 46 ms
    per step, 11 when the model is compiled as a whole.

    What to try
    -----------
    `model = torch.compile(model)` once, around the outermost module.

    References
    ----------
    torch.compile, "Regional compilation".
    """

    code = "CO04"
    name = "compiled-piece-by-piece"
    subject = "calls of compiled pieces"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over what is around the compiled code."""
        ids, _ = regions(context)
        runs_code = context.ops(_CODE)
        outer = context.outermost(np.concatenate((ids, context.ops(_BACKWARD))).astype(np.uint32))
        outer = outer[context.holds(outer, runs_code)]
        ids = ids[context.lies_in(ids, outer)]
        runs, pieces = ids.size // context.window.num_steps, len(set(context.names(ids)))
        if runs < max(LEAST_RUNS, LEAST_RUNS_EACH * pieces):
            return
        code = context.time_by_thread(runs_code)
        cuts = tuple(
            HostCut(track, time.subtract(code[track]) if track in code else time)
            for track, time in context.time_by_thread(outer).items()
        )
        everything = Removal(cuts)
        yield Claim(
            title=f"Compiled code is called {runs:,} times per step, piece by piece",
            evidence=outer,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "compile the whole: model = torch.compile(model) in place of one torch.compile for "
                "each layer",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the time in these calls that "
            "is not the compiled code gone",
        )
