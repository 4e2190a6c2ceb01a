"""Opcodes as Neuron Explorer names them, each with the engine that runs it here."""

from __future__ import annotations

from trnscope.sim.cost.program import Engine

Opcode = tuple[str, Engine]
Opcodes = tuple[Opcode, ...]

ACT: Opcode = ("ACTIVATE", "scalar")
ACTR: Opcode = ("ACTIVATE_REDUCE", "scalar")
COPY: Opcode = ("TENSOR_COPY", "vector")
RANDOM: Opcode = ("RAND", "gpsimd")
REC: Opcode = ("RECIPROCAL", "vector")
RED: Opcode = ("TENSOR_REDUCE", "vector")
SCAN: Opcode = ("TENSOR_TENSOR_SCAN", "vector")
SEL: Opcode = ("SELECT", "vector")
STATS: Opcode = ("BN_STATS", "vector")
STT: Opcode = ("SCALAR_TENSOR_TENSOR", "vector")
TS: Opcode = ("TENSOR_SCALAR", "vector")
TT: Opcode = ("TENSOR_TENSOR", "vector")
