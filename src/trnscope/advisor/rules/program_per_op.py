"""NE02: each op is a program of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from trnscope.advisor.context import ATEN, OPTIMIZER, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import DeviceCut, Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.launch_bound import BUSY_ENOUGH
from trnscope.advisor.rules.neuron_work import programs_of
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_COMPILED = re.compile(r"^Torch-Compiled Region|^CompiledFunction")
LEAST_PER_STEP = 8
"""Programs of one op each; fewer cost less than two milliseconds, and some are always there (the
loss, copies of the batch). Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.6, 0.85, 0.95
"""Host time of these ops that goes when they are compiled: an op costs 0.17 ms of dispatch, a graph
0.12 ms and 0.02 ms for each tensor passed to it (trnscope's cost model, after public figures)."""
START_NS = 11_000
"""Device time of one program that is its start (trnscope's cost model, after public figures)."""
MOST_OF_DEVICE = 0.5
"""Device time of these programs that goes at the most: starts, and values that stay on the chip.
Assumption of ours; likely are the starts alone, low is none."""


class ProgramPerOpRule(Rule):
    """The host launches each op as a program of its own, and the NeuronCore waits for it.

    What it finds
    -------------
    At least 8 programs (NEFFs) per step that hold one op each: the model, or the part of the step
    that is not compiled, runs eagerly.

    Why it costs time
    -----------------
    Launching a program costs the host some 0.17 ms, however little it computes, and the device
    11 µs to start it. Between programs everything goes to HBM and comes back.

    How it is computed
    ------------------
    The replay runs the steps with 85 % of these ops' host time and the 11 µs of each program's
    start gone (low 60 % and none, high 95 % and half of the device time). Ops of the optimizer
    count only where nothing else runs eagerly: another edit removes them.

    When it is wrong
    ----------------
    Large ops hide their dispatch: where the core works 80 % of the time, nothing is said. Code that
    `torch.compile` cannot take as one graph gives back less.

    Example
    -------
    A small transformer, trained eagerly: 72 programs in a step of 12.3 ms; compiled, 4.0 ms.

    What to try
    -----------
    `model = torch.compile(model, backend="neuron")`; for what is left, the loss in the same
    compiled function as the model and `fused=True` for the optimizer; larger batches.

    References
    ----------
    TorchNeuron's eager mode ("one NEFF per op, shape and type"); measured cost of an op: trnscope's
    page on simulated times.
    """

    code = "NE02"
    name = "program-per-op"
    subject = "launching ops one by one"
    needs = (Need.NEURON, Need.HOST_OPS, Need.LAUNCHES)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the ops of the model, or over what is left of them."""
        busy_ns = context.busy_ns
        if busy_ns is None or busy_ns > BUSY_ENOUGH * context.step_ns:
            return
        is_compiled = context.ops(_COMPILED).size > 0
        ops = _eager_ops(context)
        in_optimizer = context.lies_in(ops, context.ranges(OPTIMIZER))
        if _number(context, ops[~in_optimizer]) >= LEAST_PER_STEP:
            ops = ops[~in_optimizer]
        number = _number(context, ops)
        if number < LEAST_PER_STEP:
            return
        work = programs_of(context, ops)
        host = context.host_removal(ops)
        taken_ns = int(context.trace.slices.dur_ns[work].sum())
        starts = min(MOST_OF_DEVICE, START_NS * work.size / max(taken_ns, 1))
        rest = " that are not compiled" if is_compiled else ""
        yield Claim(
            title=f"{number:,.0f} ops per step{rest} run as a program of their own: "
            "launching takes longer than computing",
            evidence=ops,
            likely=_cut(host, LIKELY_SHARE, work, starts),
            low=host.scaled(LOW_SHARE),
            high=_cut(host, HIGH_SHARE, work, MOST_OF_DEVICE),
            confidence=Confidence.MEDIUM,
            tries=_tries(is_compiled),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of these ops' host time and "
            f"{percent(starts)} of their device time, the programs' starts, gone",
        )


def _tries(is_compiled: bool) -> tuple[str, ...]:
    if is_compiled:
        return (
            "put the loss into one compiled function with the model; make the optimizer with "
            "fused=True",
            "see what splits the graph: TORCH_LOGS=graph_breaks",
        )
    return (
        'compile the model: model = torch.compile(model, backend="neuron")',
        "a larger batch, so that each program does more work",
    )


def _number(context: StepContext, ops: U32) -> float:
    """Programs that were launched in some ops, per step."""
    return programs_of(context, ops).size / context.window.num_steps


def _eager_ops(context: StepContext) -> U32:
    """The outermost ops outside of compiled code."""
    ops = context.outermost(context.ops(ATEN))
    ops = ops[~context.lies_in(ops, context.ops(_COMPILED))]
    return np.sort(ops)


def _cut(host: Removal, host_share: float, work: U32, device_share: float) -> Removal:
    return replace(host.scaled(host_share), device=(DeviceCut(np.sort(work), device_share),))
