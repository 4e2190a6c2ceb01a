"""OP02: the optimizer updates one parameter at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trnscope.advisor.context import ATEN, OPTIMIZER_STEP, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent

_MANY_AT_ONCE = re.compile(r"^aten::_?(foreach|fused)_|multi_tensor|CompiledFx")
LEAST_OPS = 100
"""Ops per optimizer step: ten parameters at ten ops each. Fewer are not worth fusing. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.2, 0.5, 0.9
DEVICE_LOW, DEVICE_LIKELY, DEVICE_HIGH = 0.4, 0.8, 1.0
"""What `fused=True` takes off a loop over parameters: `python -m benchmarks.doctor` measures it
on the CPU; on a device one launch stands for hundreds."""


class UnfusedOptimizerRule(Rule):
    """The optimizer updates one parameter after another, with several ops for each.

    What it finds
    -------------
    `Optimizer.step` made of many small ops (`mul_`, `add_`, `addcdiv_` ...), with no `_foreach` or
    `_fused` op among them.

    Why it costs time
    -----------------
    Each op of each parameter costs a dispatch and a launch, and reads and writes its tensors again.
    A fused optimizer does one pass over everything.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of `Optimizer.step` gone, host and device (low 40 %, high
    all); on the CPU, where no launches are saved, 50 % (low 20 %, high 90 %).

    When it is wrong
    ----------------
    Optimizers of your own have no fused form. With a handful of large parameters little comes back:
    the memory traffic is the same.

    Example
    -------
    `AdamW(model.parameters())` on the CPU, whose default is the loop: 150 parameters, 1,800 ops.

    What to try
    -----------
    `torch.optim.AdamW(..., fused=True)` (Adam, AdamW, SGD, Adagrad; CPU and CUDA), or
    `foreach=True`.

    References
    ----------
    torch.optim: "for-loop, foreach and fused implementations".
    """

    code = "OP02"
    name = "unfused-optimizer"
    subject = "the optimizer"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the optimizer's steps."""
        steps = context.outermost(context.ranges(OPTIMIZER_STEP))
        if steps.size == 0:
            return
        ops = context.outermost(context.ops(ATEN))
        ops = ops[context.lies_in(ops, steps)]
        if ops.size < LEAST_OPS * steps.size or any(map(_MANY_AT_ONCE.search, context.names(ops))):
            return
        everything = context.removal_of(steps)
        low, likely, high = (
            (DEVICE_LOW, DEVICE_LIKELY, DEVICE_HIGH)
            if everything.device
            else (LOW_SHARE, LIKELY_SHARE, HIGH_SHARE)
        )
        optimizer = context.names(steps[:1])[0].partition("#")[2].partition(".")[0]
        each = ops.size // steps.size
        yield Claim(
            title=f"{optimizer} updates one parameter at a time: {each:,} ops per step",
            evidence=steps,
            likely=everything.scaled(likely),
            low=everything.scaled(low),
            high=everything.scaled(high),
            confidence=Confidence.MEDIUM,
            tries=(
                f"torch.optim.{optimizer}(..., fused=True), or foreach=True where there is no "
                "fused form",
            ),
            how=f"the steps replayed with {percent(likely)} of Optimizer.step gone",
        )
