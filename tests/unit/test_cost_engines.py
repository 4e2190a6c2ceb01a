"""Documented cycles of instructions, and times of DMA transfers."""

from __future__ import annotations

import pytest

from trnscope.hardware.neuroncore import load_core
from trnscope.sim.cost.dma import DmaModel
from trnscope.sim.cost.engines import EngineModel
from trnscope.sim.cost.program import DmaTransfer, Instruction

TRN1, TRN2 = EngineModel(load_core("trn1")), EngineModel(load_core("trn2"))


def cycles(
    model: EngineModel,
    opcode: str,
    n: int,
    dtype: str = "float32",
    engine: str = "vector",
    psum: bool = False,
) -> float:
    return model.cycles(Instruction(opcode, engine, n, dtype, from_psum=psum))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("opcode", "n", "dtype", "psum", "expected"),
    [
        ("TENSOR_TENSOR", 512, "float32", False, 1024),
        ("TENSOR_TENSOR", 512, "float32", True, 512),
        ("TENSOR_TENSOR_SCAN", 512, "float32", False, 1024),
        ("TENSOR_REDUCE", 512, "float32", False, 512),
        ("BN_AGGR", 6, "float32", False, 26),
        ("TENSOR_SCALAR", 512, "float32", False, 512),
        ("SELECT", 512, "float32", False, 1024),
        ("SCALAR_TENSOR_TENSOR", 512, "bfloat16", False, 512),
        ("TENSOR_SCALAR_REDUCE", 512, "float32", False, 576),
    ],
)
def test_vector_cycles_of_the_first_generation(
    opcode: str, n: int, dtype: str, psum: bool, expected: float
) -> None:
    assert cycles(TRN1, opcode, n, dtype, psum=psum) == expected


def test_perf_modes_of_the_third_generation() -> None:
    assert cycles(TRN2, "TENSOR_COPY", 512, "bfloat16") == 128
    assert cycles(TRN2, "TENSOR_COPY", 512, "bfloat16", psum=True) == 256
    assert cycles(TRN2, "TENSOR_COPY", 512, "float32") == 512
    assert cycles(TRN2, "TENSOR_TENSOR", 512, "bfloat16") == 512
    assert cycles(TRN2, "TENSOR_REDUCE", 512, "bfloat16") == 256


def test_a_float32_product_takes_four_passes_and_fp8_half_a_one() -> None:
    bf16 = cycles(TRN2, "MATMUL", 512, "bfloat16", "tensor")
    assert cycles(TRN2, "MATMUL", 512, "float32", "tensor") == 4 * bf16
    assert cycles(TRN2, "MATMUL", 512, "float8_e4m3fn", "tensor") == bf16 / 2


def test_a_short_product_takes_the_least_time() -> None:
    short = cycles(TRN2, "MATMUL", 1, "bfloat16", "tensor")
    assert short == cycles(TRN2, "MATMUL", 64, "bfloat16", "tensor")


def test_an_instruction_alone_has_its_start_before_its_elements() -> None:
    time = TRN2.time(Instruction("ACTIVATE", "scalar", 128))
    assert time.result_ns == pytest.approx(293 + 128 / 1.2, abs=1)
    assert time.busy_ns == pytest.approx(128 / 1.2, abs=1)


def ring(bytes_per_partition: int) -> float:
    """Bandwidth relative to that of 32 KiB a partition."""
    model = DmaModel(load_core("trn2"))

    def rate(size: int) -> float:
        step = DmaTransfer("x", "load", 128 * size, size, ring=True)
        return step.num_bytes / model.time(step).data_ns

    return rate(bytes_per_partition) / rate(32768)


@pytest.mark.parametrize(
    ("size", "published"),
    [(64, 0.026), (128, 0.053), (512, 0.209), (1024, 0.426), (2048, 0.814), (8192, 0.983)],
)
def test_dma_efficiency_by_size_is_the_published_curve(size: int, published: float) -> None:
    assert ring(size) == pytest.approx(published, rel=0.05)


def test_one_dma_engine_moves_32_kib_in_1416_ns() -> None:
    model = DmaModel(load_core("trn2"))
    step = DmaTransfer("x", "load", 32768, 32768, engines=1)
    assert model.time(step).data_ns == pytest.approx(1416, rel=0.02)


def test_transfers_made_by_software_cost_time_for_each_packet() -> None:
    model = DmaModel(load_core("trn1"))
    plain = DmaTransfer("x", "load", 128 * 6528, 6528)
    made = DmaTransfer("x", "load", 128 * 6528, 6528, software=True)
    assert model.time(made).busy_ns == pytest.approx(128 * 33.2)
    assert model.time(plain).busy_ns < model.time(made).busy_ns


def test_a_copy_within_hbm_uses_its_bandwidth_twice() -> None:
    model = DmaModel(load_core("trn2"))
    load = model.time(DmaTransfer("x", "load", 1 << 22, 65536)).busy_ns
    assert model.time(DmaTransfer("x", "move", 1 << 22, 65536)).busy_ns > 1.5 * load


@pytest.mark.parametrize(
    ("dtype", "passes"),
    [("float16", 1), ("tfloat32", 1), ("float32", 4), ("int8", 1), ("int32", 4), ("float64", 16)],
)
def test_passes_of_a_product_by_type(dtype: str, passes: float) -> None:
    assert TRN2.passes(dtype) == passes


@pytest.mark.parametrize(
    "dtype", ["float64", "int16", "int32", "int64", "complex32", "complex64", "complex128"]
)
def test_types_that_the_matrix_engine_lacks_are_never_faster_than_float32(dtype: str) -> None:
    assert TRN2.passes(dtype) >= TRN2.passes("float32")
