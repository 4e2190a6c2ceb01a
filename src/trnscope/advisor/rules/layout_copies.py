"""OP06: copies that only change the layout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import ATEN, OPTIMIZER, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind

_CONTIGUOUS = re.compile(r"^aten::contiguous$")
_CLONE = re.compile(r"^aten::clone$")
_COPY = re.compile(r"^aten::copy_$")
_KERNELS = re.compile(r"nchwToNhwc|nhwcToNchw|nhwcToFoldedNhwc|[Tt]ranspose(?!d)|permute", re.ASCII)
LOW_SHARE, LIKELY_SHARE = 0.4, 0.8
"""Some copies stay, whatever the layout: assumptions of ours; high is all of them."""


class LayoutCopiesRule(Rule):
    """Tensors are copied only to change the order of their dimensions in memory.

    What it finds
    -------------
    `contiguous()` that copies, copies that other ops (`reshape`, convolutions) make of their input,
    and kernels that turn one layout into another
    (`nchwToNhwc`, transposes).

    Why it costs time
    -----------------
    Such a copy reads and writes the whole tensor and computes nothing.

    How it is computed
    ------------------
    The replay runs the steps with 80 % of these copies gone, host and device (low 40 %, high all).

    When it is wrong
    ----------------
    A copy that makes many later reads quicker is worth its time.

    Example
    -------
    A convnet in mixed precision without channels_last: each convolution turns its input and output
    around.

    What to try
    -----------
    `model.to(memory_format=torch.channels_last)`, the same for its input; `reshape` instead of
    `transpose(...).contiguous().view(...)`; `einsum` or a matmul that takes the transposed tensor.

    References
    ----------
    xprof's unfused transposes, TraceLens' batch norm rule.
    """

    code = "OP06"
    name = "layout-copies"
    subject = "copies that change the layout"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over copying ops and converting kernels."""
        clones = context.ops(_CLONE)
        deliberate = context.outermost(context.ops(ATEN))
        clones = np.setdiff1d(clones, deliberate)
        ops = np.union1d(context.ops(_CONTIGUOUS), clones).astype(np.uint32)
        ops = context.outermost(ops)
        outside = np.concatenate((context.ranges(OPTIMIZER), context.loading)).astype(np.uint32)
        ops = ops[~context.lies_in(ops, outside)]
        copies = context.ops(_COPY)
        holding = context.outermost(copies[context.lies_in(copies, ops)])
        kernels = context.device(SliceKind.KERNEL, pattern=_KERNELS)
        if holding.size + kernels.size == 0:
            return
        everything = _with_kernels(context.removal_of(holding), kernels)
        number = (holding.size + kernels.size) // context.window.num_steps
        yield Claim(
            title=f"{number:,} copies per step only change the layout of a tensor",
            evidence=holding if holding.size else kernels,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.MEDIUM,
            tries=(
                "convnets: model.to(memory_format=torch.channels_last), and the same for the input",
                "elsewhere: avoid transpose(...).contiguous(); let matmul or einsum take the "
                "transposed tensor",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these copies gone",
        )


def _with_kernels(
    removal: Removal, kernels: np.ndarray[tuple[int], np.dtype[np.uint32]]
) -> Removal:
    known = [cut.slices for cut in removal.device]
    work = np.union1d(np.concatenate([np.empty(0, np.uint32), *known]), kernels)
    return replace(removal, device=(DeviceCut(work.astype(np.uint32)),) if work.size else ())
