"""HO07: autograd checks every gradient for NaN."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import BACKWARD_NODES, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.removal import Removal
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.source import has_stacks
from trnscope.analysis.backward import link_backward

_CHECKS = re.compile(r"^aten::(isnan|_is_any_true|is_nonzero|item)$")
_NAN = re.compile(r"^aten::isnan$")
_STACKS = re.compile(r"(fx/)?traceback\.py\(\d+\): format_stack$")
LEAST_SHARE_OF_NODES = 0.25
"""Of autograd's nodes that check for NaN. Anomaly mode checks each output of each node. Ours."""
_VIEWS = re.compile(
    r"^aten::(t|transpose|permute|view|reshape|expand|unsqueeze|squeeze|select|slice|alias)$"
)
"""Ops that take no time by themselves: with anomaly detection, that of the stack."""
STACK_NS = 100_000
"""To format a Python stack of some ten frames, where no such op shows what it takes: measured with
torch 2.13, without a profiler of Python."""
MOST_OF_FORWARD = 0.9
"""Of the forward ops, that these stacks may take where they were not recorded. Ours."""
LOW_SHARE = 0.7
"""Other checks of a program's own may look the same. Ours."""


class AnomalyDetectionRule(Rule):
    """Autograd's anomaly detection is on: it checks all gradients and keeps a stack for each op.

    What it finds
    -------------
    `aten::isnan` inside autograd's nodes, for at least a quarter of them, as
    `torch.autograd.set_detect_anomaly(True)` makes them.

    Why it costs time
    -----------------
    Each op of the forward pass formats the Python stack that it was called from (0.1 ms). Each node
    of backward looks for NaN in what it computed and reads the answer, which on a device waits for
    it. Steps take two to four times as long.

    How it is computed
    ------------------
    The replay runs the steps without the checks, and without the frames that format stacks; where
    no stacks were recorded, each forward op with a node of autograd is taken to hold as much of it
    as those that compute nothing (`transpose`, `view`) take, else 0.1 ms.
    Low: 70 %.

    When it is wrong
    ----------------
    Hooks of your own that look for NaN in every gradient look the same; they cost as much.

    Example
    -------
    `torch.autograd.set_detect_anomaly(True)` left in after debugging: 13 ms per step in place of 4.

    What to try
    -----------
    Take it out; look for the NaN in one run, with `with torch.autograd.detect_anomaly():` around a
    few steps.

    References
    ----------
    torch.autograd: "Anomaly detection"; PyTorch performance tuning guide, "Disable debugging APIs".
    """

    code = "HO07"
    name = "anomaly-detection"
    subject = "anomaly detection"
    needs = (Need.HOST_OPS,)
    specificity = 5

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all checks and stacks."""
        nodes = context.ops(BACKWARD_NODES)
        checks = context.ops(_CHECKS)
        checks = context.outermost(checks[context.lies_in(checks, nodes)])
        tests = context.ops(_NAN)
        checking = context.holds(nodes, tests[context.lies_in(tests, nodes)])
        if nodes.size == 0 or np.count_nonzero(checking) < LEAST_SHARE_OF_NODES * nodes.size:
            return
        everything = context.removal_of(checks).plus(_stacks(context))
        yield Claim(
            title="Autograd's anomaly detection is on",
            evidence=checks,
            likely=everything,
            low=everything.scaled(LOW_SHARE),
            confidence=Confidence.HIGH,
            tries=(
                "take out torch.autograd.set_detect_anomaly(True) (or detect_anomaly(), or "
                "detect_anomaly=True of your trainer)",
            ),
            how="the steps replayed without the checks of backward and the stacks of forward",
        )


def _stacks(context: StepContext) -> Removal:
    """What formatting stacks takes of the forward pass."""
    if has_stacks(context.trace):
        return context.host_removal(context.outermost(context.frames(_STACKS)))
    forward = context.inside(np.unique(link_backward(context.trace).forward).astype(np.uint32))
    ids = context.outermost(forward)
    whole_ns = max(1, sum(time.total for time in context.time_by_thread(ids).values()))
    views = np.intersect1d(forward, context.ops(_VIEWS))
    each_ns = np.median(context.trace.slices.self_ns[views]) if views.size else STACK_NS
    share = min(MOST_OF_FORWARD, forward.size * float(each_ns) / whole_ns)
    return context.host_removal(ids, share)
