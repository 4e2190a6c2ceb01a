"""Sums over executions: time with a bounded queue, utilisation, and what binds."""

from __future__ import annotations

import pytest

from trnscope.sim.cost import CostModel
from trnscope.sim.cost.usage import binding_of, peak_flops, total_ns, usage
from trnscope.sim.signature import ExecutionCost

MODEL = CostModel.for_instance("trn2.3xlarge", lnc=2)
DISPATCH, LATENCY = 166_000, MODEL.runtime.launch_latency_ns


def cost(device_ns: int, **more: int) -> ExecutionCost:
    return ExecutionCost(DISPATCH, device_ns, **more)


def test_small_ops_take_their_dispatch() -> None:
    assert total_ns([cost(20_000)] * 100, MODEL) == 100 * DISPATCH + LATENCY + 20_000


def test_large_ops_take_their_device_time() -> None:
    total = total_ns([cost(1_000_000)] * 100, MODEL)
    assert total == pytest.approx(100 * 1_000_000, rel=0.01)


def test_the_host_may_not_run_far_ahead() -> None:
    """One long op, then many short ones: their dispatch hardly hides behind it."""
    total = total_ns([cost(10_000_000), *[cost(20_000)] * 10], MODEL)
    assert total > 10_000_000 + 9 * DISPATCH


def test_what_binds_an_execution() -> None:
    assert binding_of(ExecutionCost(DISPATCH, 20_000)) == "host"
    busy = {"tensor": 300_000, "dma": 100_000}
    assert binding_of(ExecutionCost(DISPATCH, 400_000, engine_ns=busy)) == "tensor"
    assert binding_of(ExecutionCost(DISPATCH, 700_000, engine_ns=busy)) == "latency"


def test_utilisation_of_the_step_and_of_the_device() -> None:
    flops = 1_000_000_000_000
    found = usage([ExecutionCost(DISPATCH, 10_000_000, flops=flops)], MODEL)
    peak = peak_flops(MODEL, "bfloat16")
    assert peak == pytest.approx(157.28e12)
    assert found.mfu_device_ratio(peak) == pytest.approx(1e12 / (157.28e12 * 0.01))
    assert found.mfu_ratio(peak) < found.mfu_device_ratio(peak)
    assert peak_flops(MODEL, "int64") is None


def test_nothing_executed_binds_nothing() -> None:
    found = usage([], MODEL)
    assert found.binding is None
    assert found.mfu_ratio(1e12) == 0.0


def test_binding_times_add_up() -> None:
    costs = [cost(20_000), cost(400_000), ExecutionCost(0, 0)]
    found = usage(costs, MODEL)
    assert sum(found.binding_ns.values()) == DISPATCH + 400_000
    assert found.host_ns == 2 * DISPATCH
