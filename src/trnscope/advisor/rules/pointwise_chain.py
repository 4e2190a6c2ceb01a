"""OP04: element by element in many passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.op_sequence import POINTWISE, OpSequence, forward_ops
from trnscope.advisor.rules.unfused_norm import norm_ops
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

LEAST_OPS = 4
"""A chain of fewer ops gains little: a fused one still reads and writes once."""
LEAST_KINDS = 3
"""Different ops in a chain; the same one again and again is a loop over tensors. Ours."""
MOST_COUNTED = 12
"""A longer row is hardly one formula; its length counts no further. Ours."""


class PointwiseChainRule(Rule):
    """Several element-wise ops in a row make several passes over the same memory.

    What it finds
    -------------
    Four or more element-wise ops one after another in the forward pass: an activation written out
    (GELU by `tanh`, SwiGLU, a gate), rotary embeddings, masks, a loss of one's own.

    Why it costs time
    -----------------
    Each op reads and writes the whole tensor. Fused into one, the chain reads and writes once.

    How it is computed
    ------------------
    A chain of n ops takes n passes, each of which reads one or two tensors and writes one; fused it
    takes one pass. The replay runs the steps with 1 - 1/n of these ops and of their backward gone
    (low 1 - 2/n of half of it, high all); n is the mean length, and at most twelve.

    When it is wrong
    ----------------
    Small tensors: dispatch costs more than memory then, and more comes back than stated. Ops in a
    row need not work on the same tensor.

    Example
    -------
    `0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3)))`: eight passes.

    What to try
    -----------
    `torch.nn.functional.gelu(x, approximate="tanh")`, `silu`; `torch.compile` of the function.

    References
    ----------
    TraceLens' element-wise rule; msprof-analyze's repeated sequences.
    """

    code = "OP04"
    name = "pointwise-chain"
    subject = "chains of element-wise ops"
    needs = (Need.HOST_OPS,)
    specificity = 2

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all chains but those of norms."""
        chains = _chains(context, forward_ops(context))
        if not chains.ids.size:
            return
        everything = context.removal_of(context.with_backward(chains.ids))
        share = 1.0 - 1.0 / chains.mean_length
        formula = _formula(chains.names)
        what = "" if formula is None else f"{formula.word} is written out: "
        chains_of = f"chains of {chains.mean_length:.0f} element-wise ops pass over the same memory"
        yield Claim(
            title=what + (chains_of if what else chains_of.capitalize()),
            evidence=chains.ids,
            likely=everything.scaled(share),
            low=everything.scaled(0.5 - 1.0 / chains.mean_length),
            high=everything,
            confidence=Confidence.MEDIUM,
            with_backward=True,
            tries=(
                "use the built-in form (torch.nn.functional.gelu, silu ...) or torch.compile the "
                "function that computes it"
                if formula is None
                else f"{formula.built_in} in its place, or torch.compile the function that "
                "computes it",
            ),
            how=f"the steps replayed with {percent(share)} of these ops and their backward gone",
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Chains:
    ids: U32
    names: list[tuple[str, ...]]
    """The ops of each."""
    mean_length: float


@dataclass(frozen=True)
class _Formula:
    word: str
    built_in: str
    ops: frozenset[str]
    """That it holds, all of them."""


_FORMULAS = (
    _Formula("Mish", "torch.nn.functional.mish(x)", frozenset(("aten::softplus", "aten::tanh"))),
    _Formula("GELU (by erf)", "torch.nn.functional.gelu(x)", frozenset(("aten::erf", "aten::mul"))),
    _Formula(
        "GELU (by tanh)",
        'torch.nn.functional.gelu(x, approximate="tanh")',
        frozenset(("aten::pow", "aten::tanh", "aten::add", "aten::mul")),
    ),
)
"""What most chains must be for the finding to name it."""


def _formula(chains: list[tuple[str, ...]]) -> _Formula | None:
    """The formula that more than half of the chains hold."""
    for formula in _FORMULAS:
        if 2 * sum(formula.ops <= set(names) for names in chains) > len(chains):
            return formula
    return None


def _chains(context: StepContext, ops: OpSequence) -> _Chains:
    taken = set(norm_ops(context).tolist())
    runs: list[list[int]] = [[]]
    for at, name in enumerate(ops.names):
        belongs = name in POINTWISE and int(ops.ids[at]) not in taken
        if runs[-1] and not (belongs and ops.same_stretch(runs[-1][-1], at)):
            runs.append([])
        if belongs:
            runs[-1].append(at)
    found = [run for run in runs if _is_chain([ops.names[at] for at in run])]
    ids = ops.ids[[at for run in found for at in run]] if found else ops.ids[:0]
    names = [tuple(ops.names[at] for at in run) for run in found]
    return _Chains(np.sort(ids), names, min(ids.size / max(len(found), 1), MOST_COUNTED))


def _is_chain(names: list[str]) -> bool:
    """Whether ops in a row look like one formula: not one op again and again."""
    return len(names) >= LEAST_OPS and len(set(names)) >= LEAST_KINDS
