"""Cycles of an instruction on its engine.

Formulas are those documented for the NKI instructions (aws-neuron-sdk v2.26.0,
``general/nki/api/nki/isa/__init__.py``, the last version that states them); N is the number of
elements a partition. Perf modes of NeuronCore-v3 and later divide N for two-byte elements in SBUF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost.program import Instruction, item_bytes

FP8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8")


FLOAT32_PASSES = {
    "float32": 1,
    "int16": 1,
    "uint16": 1,
    "int32": 1,
    "uint32": 1,
    "float64": 4,
    "int64": 4,
    "uint64": 4,
    "complex32": 1,
    "complex64": 4,
    "complex128": 16,
}
"""Passes of a product by type, in those of float32; other types take one pass in all.

Documented are float32 and the types of one pass (bfloat16, float16, tfloat32; fp8 is faster). The
matrix engine has no wider integers, no float64 and no complex numbers: they are an assumption.
Integers of up to four bytes go as float32, eight bytes as four products of four-byte halves, and
complex numbers as four real products. Bytes are exact in bfloat16.
"""


@dataclass(frozen=True)
class EngineTime:
    """What one instruction takes."""

    busy_ns: float
    """Until the engine can take the next independent one."""
    result_ns: float
    """Until a dependent one can start."""


def _plain(n: float, _: Instruction, __: float) -> float:
    return n


def _half_mode(n: float, instruction: Instruction, rate: float) -> float:
    """tensor_copy, tensor_scalar, cast: up to 4x for two-byte elements in SBUF, 2x with PSUM."""
    if item_bytes(instruction.dtype) != 2 or rate == 1:
        return n
    return n / 2 if instruction.from_psum else n / (2 * rate)


def _tensor_tensor(n: float, instruction: Instruction, rate: float) -> float:
    """Two streams from SBUF: 2N, or N where one is in PSUM or both are of two bytes."""
    if instruction.from_psum or (item_bytes(instruction.dtype) == 2 and rate > 1):
        return n
    if item_bytes(instruction.dtype) == 2:
        return n
    return 2 * n


def _reduce(n: float, instruction: Instruction, rate: float) -> float:
    return n / 2 if item_bytes(instruction.dtype) == 2 and rate > 1 else n


VECTOR_FORMULAS: dict[str, Callable[[float, Instruction, float], float]] = {
    "TENSOR_COPY": _half_mode,
    "TENSOR_SCALAR": _half_mode,
    "CAST": _half_mode,
    "TENSOR_TENSOR": _tensor_tensor,
    "SCALAR_TENSOR_TENSOR": lambda n, i, _: n if item_bytes(i.dtype) == 2 else 2 * n,
    "TENSOR_REDUCE": _reduce,
    "TENSOR_TENSOR_SCAN": lambda n, _, __: 2 * n,
    "SELECT": lambda n, i, _: n if i.from_psum else 2 * n,
    "RECIPROCAL": lambda n, _, __: 3 * n,
    "BN_STATS": _plain,
    "BN_AGGR": lambda n, _, __: 13 * n / 3,
    "MAX8": _plain,
    "FIND_INDEX8": _plain,
    "MEMSET": _reduce,
    "STREAM_TRANSPOSE": _plain,
}
"""Cycles before the engine's least time, by opcode; others take N."""

ADDED_CYCLES = {
    "ACTIVATE_REDUCE": 64,
    "TENSOR_SCALAR_REDUCE": 64,
    "IOTA": 150,
    "AFFINE_SELECT": 150,
}


class EngineModel:
    """Times of instructions on one core."""

    def __init__(self, core: NeuronCore) -> None:
        self.core = core
        self.engines = {engine.name: engine for engine in core.engines}

    def time(self, instruction: Instruction) -> EngineTime:
        """Of one instruction, its repeats not counted."""
        engine = self.engines.get(instruction.engine)
        if engine is None:
            return EngineTime(0.0, 0.0)
        if instruction.opcode == "ACT_TABLE_LOAD":
            return EngineTime(self.core.activation_table_ns, self.core.activation_table_ns)
        cycles = self.cycles(instruction)
        busy = engine.ns(max(float(engine.min_cycles), cycles))
        return EngineTime(busy, max(busy, engine.fixed_ns + engine.ns(cycles)))

    def cycles(self, instruction: Instruction) -> float:
        """Cycles of the elements, before the least time of an instruction."""
        if instruction.cycles is not None:
            return instruction.cycles
        if instruction.engine == "tensor":
            return self._tensor_cycles(instruction)
        rate = self.engines[instruction.engine].half_rate
        n = float(instruction.elements)
        if instruction.engine == "vector":
            formula = VECTOR_FORMULAS.get(instruction.opcode, _plain)
            return formula(n, instruction, rate) + ADDED_CYCLES.get(instruction.opcode, 0)
        if instruction.engine == "scalar" and item_bytes(instruction.dtype) <= 2:
            n /= rate
        return n + ADDED_CYCLES.get(instruction.opcode, 0)

    def _tensor_cycles(self, instruction: Instruction) -> float:
        """One pass of the moving operand; loading the stationary one goes on behind it."""
        tensor = self.core.tensor
        least = float(self.engines["tensor"].min_cycles)
        if instruction.opcode == "LOAD_STATIONARY":
            return float(tensor.load_stationary_cycles)
        if instruction.opcode == "TRANSPOSE":
            return max(least, float(instruction.elements))
        cycles = max(least, float(instruction.elements)) * self.passes(instruction.dtype)
        return cycles / tensor.sustained_rate

    def passes(self, dtype: str) -> float:
        """Passes of the matrix engine for one of bfloat16."""
        if dtype in FP8:
            return 1 / self.core.tensor.fp8_rate
        return float(max(1, self.core.tensor.float32_passes * FLOAT32_PASSES.get(dtype, 0)))
