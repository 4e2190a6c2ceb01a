"""OP12: the gradient of a large embedding table is dense."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from trnscope.advisor.context import ATEN, OPTIMIZER, StepContext
from trnscope.advisor.finding import Confidence
from trnscope.advisor.rule import Claim, Need, Rule
from trnscope.advisor.rules.shapes import Dims, input_shapes, num_elements
from trnscope.advisor.words import percent
from trnscope.store.tables import U32

_LOOKUP = re.compile(r"^aten::(embedding|_embedding_bag|embedding_bag)$")
_DENSE = re.compile(r"^aten::(embedding_dense_backward|_embedding_bag_dense_backward)$")
_PRODUCT = re.compile(r"^aten::linear$")
LEAST_RATIO = 10
"""Rows of the table for each one that a step looks up. With fewer, a dense gradient costs little
more. Ours."""
LOW_SHARE, LIKELY_SHARE, HIGH_SHARE = 0.7, 0.95, 1.0
"""Of what is done to the whole table: a tenth of its rows or fewer stay. Assumptions of ours."""


class DenseEmbeddingGradientRule(Rule):
    """Backward and the optimizer work on all rows of an embedding table, of which few were used.

    What it finds
    -------------
    Embedding tables with at least ten times as many rows as a step looks up, whose gradient is
    dense: `embedding_dense_backward`, and ops of the optimizer on tensors of the table's shape.

    Why it costs time
    -----------------
    The gradient is a tensor as large as the table, filled with zeros but for the rows used. Then
    the optimizer reads and writes all of it several times, moments too.

    How it is computed
    ------------------
    From the recorded shapes. The replay runs the steps with 95 % of the dense backward and of the
    optimizer's ops on that table gone; of an op over all parameters at once the table's share of
    the elements counts (low 70 %, high all).

    When it is wrong
    ----------------
    Sparse gradients update only rows that were used: momentum, weight decay and Adam's moments of
    the others stand still, which changes the training a little. A table that is also the output
    layer needs the dense gradient; the rule leaves those out.

    Example
    -------
    A recommender with a table of 100,000 x 32 and 256 ids per step: 112 ms per step with Adam, 2.7
    with sparse gradients.

    What to try
    -----------
    `nn.Embedding(n, d, sparse=True)` (`nn.EmbeddingBag` too) with `torch.optim.SparseAdam`, SGD or
    Adagrad for the tables, and the usual optimizer for the rest.

    References
    ----------
    torch.nn.Embedding, argument `sparse`; xprof's rules for embeddings.
    """

    code = "OP12"
    name = "dense-embedding-gradient"
    subject = "dense gradients of embedding tables"
    needs = (Need.HOST_OPS, Need.SHAPES)
    specificity = 4

    def check(self, context: StepContext) -> Iterator[Claim]:
        """One claim over all large tables."""
        dense = context.outermost(context.ops(_DENSE))
        tables = _tables(context) if dense.size else {}
        if not tables:
            return
        everything = context.removal_of(dense)
        ops, shares = _of_optimizer(context, set(tables))
        for share in np.unique(shares).tolist():
            everything = everything.plus(context.removal_of(ops[shares == share], share))
        rows, width = max(tables, key=num_elements)
        used = tables[rows, width]
        yield Claim(
            title=f"All {rows:,} rows of an embedding table are updated, of which a step uses "
            f"at most {used:,}",
            evidence=np.union1d(dense, ops).astype(np.uint32),
            likely=everything.scaled(LIKELY_SHARE),
            low=everything.scaled(LOW_SHARE),
            high=everything.scaled(HIGH_SHARE),
            confidence=Confidence.MEDIUM,
            tries=(
                f"nn.Embedding({rows}, {width}, sparse=True), with torch.optim.SparseAdam (or SGD, "
                "Adagrad) for the tables and the usual optimizer for the rest",
            ),
            how=f"the steps replayed with {percent(LIKELY_SHARE)} of the work on whole tables gone",
        )


def _tables(context: StepContext) -> dict[Dims, int]:
    """Shapes of tables that are much larger than what a step looks up, with that; not tied ones."""
    looked_up: dict[Dims, int] = {}
    lookups = context.outermost(context.ops(_LOOKUP))
    for shapes in input_shapes(context, lookups):
        table, ids = (shapes or (None, None))[:2]
        if table is not None and ids is not None and len(table) == 2:
            looked_up[table] = looked_up.get(table, 0) + num_elements(ids)
    weights = {
        shapes[1]
        for shapes in input_shapes(context, context.ops(_PRODUCT))
        if shapes and shapes[1:]
    }
    steps = context.window.num_steps
    return {
        table: -(-number // steps)
        for table, number in looked_up.items()
        if table not in weights and table[0] * steps >= LEAST_RATIO * number
    }


def _of_optimizer(
    context: StepContext, tables: set[Dims]
) -> tuple[U32, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Ops of the optimizer that work on such tables, and the share of each that does."""
    ops = context.outermost(context.ops(ATEN))
    ops = ops[context.lies_in(ops, context.ranges(OPTIMIZER))]
    shares = []
    for shapes in input_shapes(context, ops):
        sizes = [(num_elements(shape), shape in tables) for shape in shapes or () if shape]
        whole = sum(size for size, _ in sizes)
        shares.append(sum(size for size, is_table in sizes if is_table) / max(whole, 1))
    found = np.array(shares, np.float64)
    return ops[found > 0], found[found > 0]
