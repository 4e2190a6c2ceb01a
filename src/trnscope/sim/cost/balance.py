"""Which engine does a pass that several could do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trnscope.sim.cost.lowering.work import Pass
from trnscope.sim.cost.program import Engine

MOVABLE = ("TENSOR_SCALAR", "TENSOR_COPY", "CAST", "MEMSET")
"""Passes that the Scalar engine does as well as the Vector engine."""


def balanced(passes: Sequence[Pass]) -> list[Pass]:
    """Movable passes go to the engine of the two that has less to do."""
    load = {"vector": 0, "scalar": 0}
    for work in passes:
        if work.opcode not in MOVABLE and work.engine in load:
            load[work.engine] += work.elements * (2 if work.opcode == "TENSOR_TENSOR" else 1)
    found = []
    for work in passes:
        if work.opcode in MOVABLE and work.engine in load:
            engine: Engine = (
                "scalar" if load["scalar"] + work.elements < load["vector"] else "vector"
            )
            load[engine] += work.elements
            opcode = "ACTIVATE" if engine == "scalar" else work.opcode
            work = replace(work, engine=engine, opcode=opcode)
        found.append(work)
    return found
