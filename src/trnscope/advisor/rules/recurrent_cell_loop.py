"""OP14: a recurrent network as a Python loop over cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent

_CELLS = re.compile(r"^aten::(lstm|gru|rnn_tanh|rnn_relu)_cell$")
_LSTM = re.compile(r"^aten::lstm_cell$")
_LAYERS = {
    "aten::lstm_cell": "LSTM",
    "aten::gru_cell": "GRU",
    "aten::rnn_tanh_cell": "RNN",
    "aten::rnn_relu_cell": "RNN",
}
LEAST_PER_STEP = 8
"""Cells; a decoder that looks at each output takes a few. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.4, 0.8, 0.95
"""What goes when the layer runs all positions: measured on the CPU with torch 2.13 for 64 positions
of width 64 (likely); the rest assumptions of ours."""


class RecurrentCellLoopRule(Rule):
    """A recurrent network runs cell by cell in a Python loop.

    What it finds
    -------------
    At least eight calls of a recurrent cell (`nn.LSTMCell`, and on a device `nn.GRUCell` and
    `nn.RNNCell` too) per step.

    Why it costs time
    -----------------
    Each position costs two products and a dozen small ops, forward and backward. The layer computes
    the inputs' part for all positions in one product, and runs the rest in one kernel.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of the cells and of their backward gone (low 40 %, high
    95 %).

    When it is wrong
    ----------------
    Where the next input depends on the last output (a decoder that feeds itself), the loop has to
    be. On the CPU only the LSTM has such a kernel; a GRU layer gains nothing there.

    Example
    -------
    `for t in range(64): h, c = cell(x[:, t], (h, c))`: 21 ms per step, 7 with `nn.LSTM`.

    What to try
    -----------
    `nn.LSTM(..., batch_first=True)` on the whole sequence; its weights have the same shapes.

    References
    ----------
    torch.nn.LSTM, torch.nn.LSTMCell.
    """

    code = "OP14"
    name = "recurrent-cell-loop"
    subject = "a loop over recurrent cells"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all cells and their backward."""
        on_device = context.device().size > 0
        ids = context.outermost(context.ops(_CELLS if on_device else _LSTM))
        number = ids.size // context.window.num_steps
        if number < LEAST_PER_STEP:
            return
        everything = context.removal_of(context.with_backward(ids))
        cell = Counter(context.names(ids)).most_common(1)[0][0]
        layer = _LAYERS[cell]
        yield Claim(
            title=f"A Python loop calls {number:,} {layer} cells per step",
            evidence=ids,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=(
                f"nn.{layer}(..., batch_first=True) on the whole sequence in place of the loop "
                f"over nn.{layer}Cell",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the cells and of their "
            "backward gone",
        )
