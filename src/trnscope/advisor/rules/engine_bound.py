"""NE07: another engine than the matrix engine limits the programs."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.advisor.context import StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.neuron_work import EngineTime, engine_time, shorter_programs
from trnscope.advisor.words import percent

BINDS = 0.6
"""Share of the programs' time from which on an engine is the limit: Nsight Compute draws the line
between a bound and latency there."""
LEAST_ALONE = 0.1
"""Share of the programs' time in which only that engine works. Ours: less is not worth an edit."""
LOW_SHARE, LIKELY_SHARE = 0.25, 0.5
"""Of the time in which nothing else works: half goes where the engine's rate doubles, as the Vector
engine's does from float32 to bfloat16 in SBUF. High is all of it. Assumptions of ours."""
_TITLES = {"vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd"}
_TRIES = {
    "vector": "bfloat16 in place of float32: the Vector engine takes two to four elements a cycle",
    "scalar": "cheaper activations (gelu with approximate='tanh', silu), or fewer of them",
    "gpsimd": "avoid sorting, top-k, gathers and iota inside the step, or do them on the host",
}


class EngineBoundRule(Rule):
    """The Vector, Scalar or GpSimd engine limits the programs, and the Tensor engine waits.

    What it finds
    -------------
    An engine other than the Tensor engine that works 60 % of the programs' time or more, longer
    than the Tensor engine does.

    Why it costs time
    -----------------
    Nearly all of the core's arithmetic is in the Tensor engine: 79 of some 80 Tflop/s. Element-wise
    ops, norms, softmax and sorting run on the others, 128 elements a cycle.

    How it is computed
    ------------------
    From the instructions of a device profile: the time in which this engine works, no other does
    and no transfer runs. The replay runs the steps with the programs shorter by half of its
    share (low a quarter, high all). A device profile alone has no steps: the same share
    of its time.

    When it is wrong
    ----------------
    A model that has hardly any products cannot do better: then only cheaper formats help.

    Example
    -------
    A chain of `tanh` and `exp`: the Vector engine works 64 % of the time, the Tensor engine never.

    What to try
    -----------
    bfloat16; fused ops (`rms_norm`, `scaled_dot_product_attention`) in place of written-out ones;
    work moved from the Vector engine to the Scalar engine or into the product.

    References
    ----------
    Neuron Explorer's share of active time by engine; Neuron SDK: architecture pages of the
    NeuronCores (engines, perf modes).
    """

    code = "NE07"
    name = "engine-bound"
    subject = "work of the Vector, Scalar and GpSimd engines"
    needs = (Need.NEURON, Need.ENGINES)
    specificity = 1

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over the instructions of the engine that is the limit."""
        found = engine_time(context)
        if found is None or found.whole.total == 0:
            return
        name, whole_ns = found.limit, found.whole.total
        if name is None or name == "tensor":
            return
        share = found.engines[name].total / whole_ns
        alone = found.alone(name).total / whole_ns
        if share < BINDS or alone < LEAST_ALONE:
            return
        yield _claim(context, found, name)


def _claim(context: StepContext, found: EngineTime, name: str) -> Claim:
    whole_ns = found.whole.total
    share = percent(found.engines[name].total / whole_ns)
    tensor = found.engines.get("tensor")
    tensor_share = percent(0.0 if tensor is None else tensor.total / whole_ns)
    alone_ns = found.alone(name).total
    gone = shorter_programs(context, alone_ns, whole_ns, (LOW_SHARE, LIKELY_SHARE, 1.0))
    return Claim(
        title=f"The {_TITLES[name]} engine is the limit: it works {share} of the programs' time, "
        f"the Tensor engine {tensor_share}",
        evidence=found.instructions[name],
        likely=gone.likely,
        low=gone.low,
        high=gone.high,
        direct_ns=gone.direct_ns,
        direct_time=found.alone(name),
        direct_of_judged=True,
        confidence=Confidence.MEDIUM,
        tries=(
            _TRIES[name],
            "fused ops in place of written-out norms, activations and attention",
        ),
        how=f"programs shorter by {percent(LIKELY_SHARE)} of the time in which only this engine "
        "works",
    )
