"""NE01: ops that the NeuronCore does not have run on the host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import ATEN, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.words import percent
from trnscope.model.kinds import SliceKind
from trnscope.store.tables import U32

_COPY_OP = re.compile(r"^aten::(copy_|_to_copy|to|item|_local_scalar_dense|contiguous|clone|cpu)$")
_READ = re.compile(r"d2h|DtoH|copyout|tensor_read", re.IGNORECASE)
_WRITE = re.compile(r"h2d|HtoD|copyin|tensor_write", re.IGNORECASE)
_ANY = re.compile("")
LOW_SHARE, LIKELY_SHARE = 0.6, 0.9
"""What goes when the op has a program on the device: its dispatch, some 0.17 ms of the millisecond
that two copies and a wait take, stays. Low: two ops take its place. Assumptions of ours."""


class CpuFallbackRule(Rule):
    """Ops that the NeuronCore does not have run on the host, with a copy there and back.

    What it finds
    -------------
    Ops that read their inputs from the device, launch no program, and write their results to it:
    matrix decompositions, FFT, `nonzero`-like ops and others that the device lacks.

    Why it costs time
    -----------------
    The host has to wait until all that is queued has run, copies the inputs, computes on one
    processor and copies the results back. Meanwhile nothing is launched and the core idles.

    How it is computed
    ------------------
    The replay runs the steps with 90 % of these ops and their copies gone, and without their
    waits (low 60 %, high all).

    When it is wrong
    ----------------
    An op that has to run on the host (a decomposition that nothing replaces) can only move to where
    fewer steps pass through it.

    Example
    -------
    `torch.linalg.inv` of a small matrix in the loss: two reads, two writes, 1 ms of a step of 15.

    What to try
    -----------
    An op that the device has (`torch.linalg.solve` of a fixed matrix becomes a product with its
    inverse, computed once); the op every N steps; the values on the CPU from the start, if nothing
    on the device needs them.

    References
    ----------
    msprof-analyze's rule for ops that fell back to the AICPU; TorchNeuron: `torch_neuronx` lists
    the ops that fell back.
    """

    code = "NE01"
    name = "cpu-fallback"
    subject = "ops that run on the host"
    needs = (Need.NEURON, Need.HOST_OPS, Need.LAUNCHES)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all ops that fell back."""
        ops = _fallen_back(context)
        if ops.size == 0:
            return
        calls = context.calls(_ANY)
        waits = calls[context.lies_in(calls, ops)]
        everything = replace(context.removal_of(ops), waits=np.sort(waits))
        number = ops.size / context.window.num_steps
        yield Claim(
            title=f"{_words(context.names(ops))} {number:.0f} per step, run on the host: "
            "the NeuronCore does not have them",
            evidence=ops,
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything,
            confidence=Confidence.HIGH,
            tries=(
                "use an op that the device has, or compute this one every N steps instead of each",
                "keep what it works on on the CPU, if nothing on the device needs it",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops, their copies and "
            "their waits gone",
        )


def _fallen_back(context: StepContext) -> U32:
    """Ops as the program calls them, if one inside copies each way and launches no program."""
    ops = context.ops()
    names = context.names(ops)
    ops = ops[np.array([not _COPY_OP.search(name) for name in names], np.bool_)]
    ops = ops[context.holds(ops, context.calls(_READ)) & context.holds(ops, context.calls(_WRITE))]
    kernels = context.launches_of(context.device(SliceKind.KERNEL))
    fallen = ops[~context.holds(ops, kernels)]
    called = context.outermost(context.ops(ATEN))
    return called[context.holds(called, fallen)]


def _words(names: list[str]) -> str:
    """``aten::linalg_inv and 2 other ops,``."""
    counts = Counter(names)
    first = counts.most_common(1)[0][0]
    others = len(counts) - 1
    if others == 0:
        return f"{first},"
    return f"{first} and {others} other op{'' if others == 1 else 's'},"
