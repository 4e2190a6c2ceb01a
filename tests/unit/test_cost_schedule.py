"""Schedules of small programs whose times can be worked out by hand."""

from __future__ import annotations

import pytest

from trnscope.hardware.neuroncore import load_core
from trnscope.sim.cost.program import DmaTransfer, Instruction, Loop, Program, Tile
from trnscope.sim.cost.schedule import Scheduler

TRN1, TRN2 = load_core("trn1"), load_core("trn2")


def act(n: int, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> Instruction:
    return Instruction("ACTIVATE", "scalar", n, reads=reads, writes=writes)


def test_a_chain_of_dependent_instructions_pays_their_start_each_time() -> None:
    """189 ns an instruction: the chain of the architecture guide."""
    tile = Tile("a", 4, buffers=1)
    program = Program("chain", (tile,), (Loop((act(1, ("a",), ("a",)),), 1000),))
    assert Scheduler(TRN1).run(program).total_ns == pytest.approx(189_000, rel=0.01)


def test_independent_instructions_follow_each_other_at_the_least_interval() -> None:
    program = Program("free", (), (Loop((act(1),), 1000),))
    interval = TRN1.engine("scalar").ns(64)
    assert Scheduler(TRN1).run(program).total_ns == pytest.approx(1000 * interval, rel=0.01)


def test_engines_work_side_by_side() -> None:
    a = Instruction("TENSOR_REDUCE", "vector", 4800)
    b = Instruction("ACTIVATE", "scalar", 6000)
    schedule = Scheduler(TRN2).run(Program("both", (), (a, b)))
    assert schedule.total_ns == pytest.approx(293 + 6000 / 1.2, abs=2)
    assert set(schedule.engine_ns) == {"vector", "scalar"}


def test_the_first_generation_shares_a_port() -> None:
    a = Instruction("TENSOR_REDUCE", "vector", 11200)
    b = Instruction("IOTA", "gpsimd", 14000)
    together = Scheduler(TRN1).run(Program("both", (), (a, b))).total_ns
    assert together > 19_900
    assert Scheduler(TRN2).run(Program("both", (), (a, b))).total_ns < 13_000


def test_an_instruction_waits_for_its_load() -> None:
    load = DmaTransfer("x", "load", 1 << 20, 8192, writes=("x",))
    step = Instruction("TENSOR_REDUCE", "vector", 2048, reads=("x",))
    schedule = Scheduler(TRN2).run(Program("load", (Tile("x", 8192),), (load, step)), 10)
    transfer, reduce = schedule.executions
    assert reduce.start_ns >= transfer.start_ns + transfer.duration_ns + 290
    assert transfer.start_ns >= 730


def test_one_buffer_stops_the_next_load_until_the_reader_is_done() -> None:
    load = DmaTransfer("x", "load", 1 << 20, 8192, writes=("x",))
    step = Instruction("TENSOR_REDUCE", "vector", 2048, reads=("x",))

    def total(buffers: int) -> int:
        program = Program("p", (Tile("x", 8192, buffers),), (Loop((load, step), 50),))
        return Scheduler(TRN2).run(program).total_ns

    data = (1 << 20) / TRN2.dma_bytes_per_ns
    assert total(3) == pytest.approx(50 * data, rel=0.1)
    assert total(1) > 1.5 * total(3)


def test_a_loop_is_advanced_exactly_as_it_would_run() -> None:
    load = DmaTransfer("x", "load", 1 << 19, 4096, writes=("x",))
    work = Instruction("TENSOR_TENSOR", "vector", 1024, reads=("x",), writes=("y",))
    root = act(1024, ("y",), ("z",))
    store = DmaTransfer("z", "store", 1 << 19, 4096, "store", reads=("z",))
    tiles = (Tile("x", 4096), Tile("y", 4096), Tile("z", 4096))
    inner = Loop((work, root), 3)
    program = Program("p", tiles, (Loop((load, inner, store), 400),))
    closed = Scheduler(TRN2).run(program)
    unrolled = Scheduler(TRN2).run(program, 10_000)
    assert closed.total_ns == unrolled.total_ns
    assert closed.engine_ns == unrolled.engine_ns
    assert unrolled.complete and not closed.complete
    assert len(unrolled.executions) == 400 * 8


def test_accumulation_stays_in_its_bank_until_it_is_read() -> None:
    """Two products summed into a bank do not wait for the copy of the bank before."""
    product = Instruction("MATMUL", "tensor", 512, "bfloat16", writes=("p",), accumulate=True)
    copy = Instruction("TENSOR_COPY", "vector", 512, reads=("p",), from_psum=True)
    tiles = (Tile("p", 2048, 2, "psum"),)
    body = (product, product, product, product, copy)
    total = Scheduler(TRN2).run(Program("p", tiles, (Loop(body, 100),))).total_ns
    alone = 400 * 512 / 2.4 / TRN2.tensor.sustained_rate
    assert total == pytest.approx(alone, rel=0.02)


def test_memory_in_use_rises_and_falls_to_nothing() -> None:
    load = DmaTransfer("x", "load", 1 << 20, 8192, writes=("x",))
    step = Instruction("TENSOR_REDUCE", "vector", 2048, reads=("x",), writes=("y",))
    program = Program("p", (Tile("x", 8192), Tile("y", 4)), (load, step))
    memory = Scheduler(TRN2).run(program, 10).memory
    assert max(level.sbuf_bytes for level in memory) == 128 * (8192 + 4)
    assert memory[-1].sbuf_bytes == 0
    assert all(level.psum_bytes == 0 for level in memory)


def test_a_quiet_matrix_engine_starts_at_half_its_rate() -> None:
    burst = Instruction("MATMUL", "tensor", 512, "bfloat16", writes=("p",), repeat=8)
    pause = Instruction("TENSOR_REDUCE", "vector", 96000, reads=("p",), writes=("q",))
    wait = Instruction("MATMUL", "tensor", 512, "bfloat16", reads=("q",), repeat=8)
    tiles = (Tile("p", 2048, 2, "psum"), Tile("q", 4))
    program = Program("p", tiles, (burst, pause, wait))
    steady = Scheduler(TRN2).run(program).total_ns
    throttled = Scheduler(TRN2, throttle=True).run(program).total_ns
    assert throttled - steady == pytest.approx(8 * 512 / 2.4 / TRN2.tensor.sustained_rate, rel=0.02)


def test_a_scheduler_keeps_nothing_of_a_program() -> None:
    """Several threads may price with one scheduler at a time."""
    scheduler = Scheduler(load_core("trn2"))
    before = {name: repr(value) for name, value in vars(scheduler).items() if name != "core"}
    load = DmaTransfer("x", "load", 4096, 4096, writes=("x",))
    scheduler.run(Program("p", (Tile("x", 64, 3),), (Loop((load,), 8),)))
    after = {name: repr(value) for name, value in vars(scheduler).items() if name != "core"}
    assert after == before
