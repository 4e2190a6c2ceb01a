"""Laws of the roofline: scaling, sums, and independence of how calls are spread."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope.analysis.roofline import Bound, Roofline, roofline
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

NAMES = ("aten::mm", "aten::linear", "aten::add", "aten::view", "my::op")
STEP_NS = 10_000


@dataclass(frozen=True)
class Call:
    """One op, perhaps inside a wrapper, and the device time of its kernel."""

    name: str
    size: int
    step: int
    dur_ns: int
    wrapped: bool


calls = st.lists(
    st.builds(
        Call,
        name=st.sampled_from(NAMES),
        size=st.integers(1, 64),
        step=st.integers(0, 3),
        dur_ns=st.integers(1, 400),
        wrapped=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
peaks = st.floats(1e9, 1e15)


def profile_of(ops: list[Call], folder: Path) -> Profile:
    """Steps of 10 µs; an op begins 200 ns after the one before it in its step."""
    builder = TraceBuilder(folder)
    thread, stream = builder.thread(), builder.stream(name="no such device")
    for step in range(4):
        builder.slice(thread, f"ProfilerStep#{step}", step * STEP_NS, STEP_NS, SliceKind.ANNOTATION)
    free_ns, next_ns = 0, {step: step * STEP_NS + 100 for step in range(4)}
    for number, op in enumerate(sorted(ops, key=lambda each: each.step)):
        at = next_ns[op.step]
        next_ns[op.step] += 200
        shape = [[op.size, op.size], [op.size, op.size]]
        args = {"input_dims": json.dumps(shape), "input_types": '["float", "float"]'}
        names = ["aten::matmul", op.name] if op.wrapped else [op.name]
        for depth, name in enumerate(names):
            builder.slice(thread, name, at + depth, 100 - 2 * depth, SliceKind.CPU_OP, **args)
        builder.slice(
            thread, "cudaLaunchKernel", at + 10, 5, SliceKind.RUNTIME, correlation=number + 1
        )
        start = max(free_ns, at + 20)
        builder.slice(stream, "k", start, op.dur_ns, SliceKind.KERNEL, correlation=number + 1)
        free_ns = start + op.dur_ns
    return Profile((builder.build(),))


def of(ops: list[Call], peak: float, bandwidth: float) -> Roofline:
    with tempfile.TemporaryDirectory() as folder:
        profile = profile_of(ops, Path(folder) / "t")
        return roofline(profile, peak_flops=peak, peak_bandwidth=bandwidth)


@settings(max_examples=40, deadline=None)
@given(calls, peaks, peaks)
def test_sums(ops: list[Call], peak: float, bandwidth: float) -> None:
    result = of(ops, peak, bandwidth)
    assert sum(row.time_ns for row in result.rows) == sum(op.dur_ns for op in ops)
    assert result.sum_ns == sum(op.dur_ns for op in ops)
    assert result.counted_ns + result.uncounted_ns == result.sum_ns
    assert sum(step.flops for step in result.steps) == result.flops
    assert sum(step.matrix_flops for step in result.steps) == result.matrix_flops
    by_bound = [result.time_bound_by(bound) for bound in (None, *Bound)]
    assert sum(by_bound) == result.sum_ns


@settings(max_examples=40, deadline=None)
@given(calls)
def test_products_are_counted_once(ops: list[Call]) -> None:
    """A wrapped ``view`` or custom op is a product of its wrapper; other products are their own."""
    result = of(ops, 1e12, 1e12)
    products = 0
    for op in ops:
        is_product = op.name in ("aten::mm", "aten::linear")
        is_only_the_wrappers = op.wrapped and op.name in ("aten::view", "my::op")
        products += 2 * op.size**3 if is_product or is_only_the_wrappers else 0
    assert result.matrix_flops == products


@settings(max_examples=20, deadline=None)
@given(calls, st.floats(1e14, 1e15), st.floats(1e14, 1e15), st.floats(2, 10))
def test_a_higher_peak_lowers_the_ratios_in_proportion(
    ops: list[Call], peak: float, bandwidth: float, factor: float
) -> None:
    low, high = of(ops, peak, bandwidth), of(ops, peak * factor, bandwidth * factor)
    for before, after in zip(low.rows, high.rows, strict=True):
        assert (before.flops, before.num_bytes) == (after.flops, after.num_bytes)
        for old, new in (
            (before.compute_ratio, after.compute_ratio),
            (before.memory_ratio, after.memory_ratio),
        ):
            if old is not None and new is not None:
                assert new * factor == pytest.approx(old)
    for old, new in ((low.mfu_step, high.mfu_step), (low.mfu_device, high.mfu_device)):
        if old is not None and new is not None:
            assert new * factor == pytest.approx(old)


@settings(max_examples=40, deadline=None)
@given(calls, peaks, peaks)
def test_no_share_exceeds_what_is_possible(ops: list[Call], peak: float, bandwidth: float) -> None:
    result = of(ops, peak, bandwidth)
    ratios = [result.mfu_step, result.mfu_device, result.mbu_device]
    for row in result.rows:
        ratios += [row.compute_ratio, row.memory_ratio, row.attainable_ratio]
        if row.bound in (Bound.COMPUTE, Bound.MEMORY) and row.attainable_ns is not None:
            assert row.attainable_ns <= row.time_ns
    assert all(ratio is None or 0 <= ratio <= 1 for ratio in ratios)
