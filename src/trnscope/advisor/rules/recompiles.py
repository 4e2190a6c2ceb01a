"""CO02: code is compiled again and again."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.all_steps import time_in_steps
from trnscope.advisor.rules.compiling import compilation

LOW_SHARE = 0.5
"""Some versions of the code are needed; half of the compiling goes at the least. Ours."""


class RecompilesRule(Rule):
    """torch.compile compiles the same code again for other inputs.

    What it finds
    -------------
    Compiling inside recorded steps whose compile id is of a second or later version (`0/1`, `0/2`).

    Why it costs time
    -----------------
    A new shape, a changed number or flag breaks the guards of the compiled code; the step stops for
    seconds until there is another version. After eight versions torch gives up and runs eagerly.

    How it is computed
    ------------------
    Time of compiling over the number of recorded steps. Low: half of it. The steps that compile
    stand out and are not part of the replay.

    When it is wrong
    ----------------
    If the recorded steps are the only ones with new shapes (the last, smaller batch of an epoch),
    the mean over them says too much.

    Example
    -------
    Batches padded to their own longest text: every length is a new shape.

    What to try
    -----------
    `drop_last=True`; pad to a few lengths; `torch.compile(dynamic=True)` or
    `torch._dynamo.mark_dynamic`; `TORCH_LOGS=recompiles` names the guard.

    References
    ----------
    torch.compile troubleshooting, "Recompilation".
    """

    code = "CO02"
    name = "recompiles"
    subject = "compiling again"
    needs = (Need.HOST_OPS,)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all compiling, if any of it is done again."""
        found = compilation(context)
        if found is None or not found.is_again:
            return
        each = found.per_step_ns
        yield Claim(
            title="torch.compile compiles the same code again for other inputs",
            evidence=found.slices,
            likely=context.host_removal(found.slices),
            direct_ns=(round(each * LOW_SHARE), each, each),
            direct_time=time_in_steps(context, found.slices),
            confidence=Confidence.HIGH,
            tries=(
                "keep shapes the same: drop_last=True, pad to a few lengths; or "
                "torch.compile(model, dynamic=True)",
                "see which guard fails: TORCH_LOGS=recompiles",
            ),
            how=f"time of compiling over the {found.num_steps} recorded steps",
        )
