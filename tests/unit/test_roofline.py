"""Ops against ceilings, with answers by hand: 1 FLOP/ns is 1 GFLOP/s."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import trnscope
from tests.unit.recordings import recording
from tests.unit.roofline_traces import BF16, H100, Hand
from trnscope.analysis.op_work import op_work
from trnscope.analysis.roofline import Basis, Bound, Roofline, RooflineRow, roofline
from trnscope.errors import UnknownHardwareError, UsageError
from trnscope.model.kinds import SliceKind
from trnscope.report.roofline import roofline_lines
from trnscope.report.view import View
from trnscope.sim.virtual_trace.recording import Inputs
from trnscope.sim.virtual_trace.trace_json import write_trace
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

PEAK, BANDWIDTH = 1e12, 1e9
"""1000 FLOPs and 1 byte a nanosecond: they meet at 1000 FLOPs a byte."""
MM = [[100, 100], [100, 100]]
MM_FLOPS = 2 * 100**3
MM_BYTES = 2 * 3 * 100**2


@pytest.fixture
def hand(tmp_path: Path) -> Hand:
    return Hand(tmp_path / "t")


def of(hand: Hand, peak: float | None = PEAK, bandwidth: float | None = BANDWIDTH) -> Roofline:
    return roofline(hand.profile(), peak_flops=peak, peak_bandwidth=bandwidth)


def only_row(result: Roofline) -> RooflineRow:
    (row,) = result.rows
    return row


def text(result: Roofline) -> str:
    return "\n".join(line.plain for line in roofline_lines(result, View()))


# One op ------------------------------------------------------------------------------------


def test_achieved_and_attainable(hand: Hand) -> None:
    for _ in range(2):
        hand.op("aten::mm", MM, 100_000)
    result = of(hand, peak=4e10, bandwidth=1e9)
    row = only_row(result)
    assert (row.calls, row.time_ns) == (2, 200_000)
    assert (row.flops, row.num_bytes) == (2 * MM_FLOPS, 2 * MM_BYTES)
    # 4e6 FLOPs in 200 µs are 20 GFLOP/s of 40; 120 kB in 200 µs are 0.6 GB/s of 1.
    assert row.flops_per_s == 2e10
    assert row.bytes_per_s == 6e8
    assert row.compute_ratio == 0.5
    assert row.memory_ratio == 0.6
    assert row.arithmetic_intensity == pytest.approx(MM_FLOPS / MM_BYTES)
    assert row.attainable_ns == 120_000
    assert row.attainable_ratio == 0.6
    assert (result.attainable_ns, result.attainable_of_ns) == (120_000, 200_000)
    assert "what took 200.000 µs would take 120.000 µs or more." in text(result)
    assert row.bound is Bound.MEMORY


@pytest.mark.parametrize(
    ("peak", "bandwidth", "bound"),
    # 2e6 FLOPs and 6e4 bytes in 100 µs: 2e10 FLOP/s, 6e8 bytes/s.
    [
        (2e10 / 0.6, 1e12, Bound.COMPUTE),
        (2e10 / 0.59, 1e12, Bound.NEITHER),
        (1e15, 6e8 / 0.6, Bound.MEMORY),
        (1e15, 6e8 / 0.59, Bound.NEITHER),
        (2e10 / 0.9, 6e8 / 0.8, Bound.COMPUTE),
        (2e10 / 0.7, 6e8 / 0.8, Bound.MEMORY),
        (2e10, 1e12, Bound.COMPUTE),
        (2e10 / 1.01, 1e12, Bound.INCONSISTENT),
        (1e15, 6e8, Bound.MEMORY),
        (1e15, 6e8 / 1.01, Bound.CACHE),
    ],
)
def test_what_binds(hand: Hand, peak: float, bandwidth: float, bound: Bound) -> None:
    hand.op("aten::mm", MM, 100_000)
    assert only_row(of(hand, peak, bandwidth)).bound is bound


def test_a_rate_that_cannot_be_is_told_and_not_shown_as_a_share(hand: Hand) -> None:
    hand.op("aten::mm", MM, 100_000)
    result = of(hand, peak=1e10)
    row = only_row(result)
    assert (result.mfu_device, row.compute_ratio is None) == (None, True)
    assert "200" not in text(result)
    assert (row.compute_ratio, row.memory_ratio, row.attainable_ns) == (None, None, None)
    assert row.reason is not None
    assert row.reason.startswith("2.00 times the peak for bfloat16")


def test_a_known_device_brings_its_own_ceilings(hand: Hand) -> None:
    hand.op("aten::mm", MM, 100_000)
    hand.op("aten::mm", MM, 100_000, dtype="float")
    hand.op("aten::mm", MM, 100_000, dtype="float", kernel="cutlass_80_tensorop_s1688gemm_128")
    result = roofline(hand.profile())
    assert result.ceilings is not None
    assert result.ceilings.name == "h100-sxm"
    by_type = {row.dtype: row for row in result.rows}
    assert set(by_type) == {"bfloat16", "float32", "tfloat32"}
    for dtype, peak in (("bfloat16", 989.5e12), ("float32", 67e12), ("tfloat32", 494.5e12)):
        assert by_type[dtype].compute_ratio == pytest.approx(2e10 / peak)
    assert by_type["bfloat16"].memory_ratio == pytest.approx(6e8 / 3.35e12)


def test_copies_have_no_arithmetic_and_can_be_bound_by_memory(hand: Hand) -> None:
    hand.op("aten::copy_", [[1000], [1000], []], 4_000, values=["", "", "False"])
    row = only_row(of(hand))
    assert (row.flops, row.num_bytes, row.compute_ratio) == (0, 4000, 0.0)
    assert row.bound is Bound.MEMORY


# Nested ops --------------------------------------------------------------------------------


def test_a_product_is_counted_once_however_it_is_wrapped(hand: Hand) -> None:
    hand.op("aten::addmm", [[100], *MM], 100_000, inside=["aten::linear"])
    row = only_row(of(hand))
    assert (row.name, row.flops, row.time_ns) == ("aten::addmm", MM_FLOPS, 100_000)


def test_the_outermost_op_with_a_formula_has_all_the_time_under_it(hand: Hand) -> None:
    shapes = [[4, 8, 16], [], [16], [16], []]
    values = ["", "[16]", "", "", "1e-05"]
    hand.builder.slice(
        hand.thread,
        "aten::native_layer_norm",
        0,
        300,
        SliceKind.CPU_OP,
        input_dims=json.dumps(shapes),
        input_types=json.dumps([BF16, "ScalarList", BF16, BF16, "Scalar"]),
        concrete_inputs=json.dumps(values),
    )
    hand.host_ns = 10
    hand.op("aten::mean", [[4, 8, 16], [], [], []], 700)
    hand.op("aten::mul", [[4, 8, 16], [4, 8, 16]], 300)
    row = only_row(of(hand))
    assert (row.name, row.time_ns, row.flops) == ("aten::native_layer_norm", 1000, 8 * 512)


def test_a_wrapper_counts_where_nothing_under_it_does(hand: Hand) -> None:
    shapes = [[4, 8], [16, 8], [16]]
    hand.op("mps::linear", shapes, 500, inside=["aten::linear"])
    hand.op("aten::linear", shapes, 500)
    row = only_row(of(hand))
    assert (row.name, row.calls, row.flops) == ("aten::linear", 2, 2 * 2 * 4 * 8 * 16)


def test_a_wrapper_of_one_counted_call_does_not_hide_another(hand: Hand) -> None:
    hand.op("aten::mm", MM, 100, inside=["aten::matmul"])
    hand.op("custom::mm", MM, 100, inside=["aten::matmul"])
    result = of(hand)
    assert {row.name: row.flops for row in result.rows} == {
        "aten::mm": MM_FLOPS,
        "aten::matmul": MM_FLOPS,
    }


# What is not known -------------------------------------------------------------------------


def test_time_of_every_kind_adds_up(hand: Hand) -> None:
    hand.op("aten::mm", MM, 100_000)
    hand.op("vllm::moe", MM, 300)
    hand.op("aten::mm", None, 70)
    hand.op("aten::_foreach_mul_", [[[10]], []], 5)
    hand.op("c10d::allreduce_", [[100]], 200, kind=SliceKind.COLLECTIVE)
    hand.op(
        "aten::copy_",
        [[9], [9]],
        40,
        kernel="Memcpy HtoD (Pinned -> Device)",
        kind=SliceKind.MEMCPY,
    )
    hand.op("aten::copy_", [[9], [9]], 6, kernel="Memcpy DtoD", kind=SliceKind.MEMCPY)
    hand.op("aten::copy_", [[9], [9]], 3, kernel="Memcpy PtoP", kind=SliceKind.MEMCPY)
    hand.builder.slice(hand.stream, "orphan", hand.device_ns + 500, 9, SliceKind.KERNEL)
    result = of(hand)
    assert result.basis is Basis.DEVICE
    assert (result.communication_ns, result.transfer_ns, result.unattributed_ns) == (200, 43, 9)
    assert result.counted_ns == 100_000 + 5 + 6
    assert result.uncounted_ns == 300 + 70 + 9
    assert result.sum_ns == 100_000 + 300 + 70 + 5 + 200 + 43 + 6 + 9
    assert result.uncounted_ratio == pytest.approx(379 / 100_390)
    reasons = {(row.name, row.flops is None): row.reason for row in result.rows}
    assert reasons["vllm::moe", True] == "no formula for this op"
    assert reasons["aten::mm", True] == "no shapes were recorded for it"
    assert "at least" in text(result)


def test_unknown_is_shown_as_such(hand: Hand) -> None:
    hand.op("triton_poi_fused_add_0", MM, 1000)
    hand.op("aten::mm", MM, 1000)
    shown = text(of(hand))
    assert "a generated kernel" in shown
    line = next(line for line in shown.splitlines() if line.startswith("triton"))
    assert line.split()[-1] == "?"


def test_without_shapes_it_says_how_to_record_them(hand: Hand) -> None:
    hand.op("aten::mm", None, 1000)
    result = of(hand)
    assert result.abstained is not None
    assert "--shapes" in result.abstained
    assert result.to_json()["abstained"] is True
    assert "Nothing can be said" in text(result)


def test_an_empty_trace_is_no_error(tmp_path: Path) -> None:
    builder = TraceBuilder(tmp_path / "t")
    builder.thread()
    result = roofline(Profile((builder.build(),)))
    assert result.abstained is not None
    assert "Nothing can be said" in text(result)


# Hardware ----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["AMD Radeon Graphics", None])
def test_an_unknown_device_has_no_ceilings(tmp_path: Path, device: str | None) -> None:
    hand = Hand(tmp_path / "t", device)
    hand.op("aten::mm", MM, 100_000)
    result = of(hand, None, None)
    assert result.ceilings is None
    assert result.no_ceilings is not None
    assert "--peak-flops" in result.no_ceilings
    row = only_row(result)
    assert (row.flops_per_s, row.bound, row.compute_ratio) == (2e10, None, None)
    assert (result.mfu_device, result.mfu_step, result.mbu_device) == (None, None, None)
    assert "is not known" in text(result)


def test_a_name_the_user_gives_counts_before_the_traces(hand: Hand) -> None:
    hand.op("aten::mm", MM, 100_000)
    profile = hand.profile()
    result = roofline(profile, "mi300x")
    assert result.ceilings is not None
    assert result.ceilings.name == "mi300x"
    mixed = roofline(profile, "mi300x", peak_bandwidth=1e9)
    assert only_row(mixed).memory_ratio == 0.6
    assert only_row(mixed).compute_ratio == only_row(result).compute_ratio
    with pytest.raises(UnknownHardwareError):
        roofline(profile, "abacus")


@pytest.mark.parametrize("peak", [0.0, -1.0, float("inf"), float("nan")])
def test_a_peak_that_is_none_is_refused(hand: Hand, peak: float) -> None:
    hand.op("aten::mm", MM, 100)
    with pytest.raises(UsageError, match="not possible"):
        of(hand, peak=peak)


def test_devices_of_two_kinds_have_no_common_ceilings(tmp_path: Path) -> None:
    traces = []
    for name in (H100, "Tesla T4"):
        hand = Hand(tmp_path / name, name)
        hand.op("aten::mm", MM, 100)
        traces.append(hand.profile().traces[0])
    result = roofline(Profile(tuple(traces)))
    assert result.ceilings is None
    assert "not of one kind" in (result.no_ceilings or "")


def test_a_type_without_a_peak_is_named(tmp_path: Path) -> None:
    hand = Hand(tmp_path / "t", "Tesla T4")
    hand.op("aten::mm", MM, 100_000)
    row = only_row(roofline(hand.profile()))
    assert row.compute_ratio is None
    assert row.memory_ratio is not None
    assert row.reason == "no peak is known for bfloat16"


def test_a_logical_core_has_the_peaks_of_its_physical_ones(tmp_path: Path) -> None:
    hand = Hand(tmp_path / "t", "AWS Trainium2", simulated=True)
    hand.op("aten::mm", MM, 100_000)
    result = roofline(hand.profile())
    assert result.ceilings is not None
    assert result.ceilings.device_is == "2 of 8 cores"
    assert result.to_json()["simulated"] == "model not named"
    peak, bandwidth = result.ceilings.flops("bfloat16"), result.ceilings.bandwidth
    assert peak is not None
    assert bandwidth is not None
    assert peak.value == pytest.approx(2 * 78.64e12)
    assert bandwidth.value == pytest.approx(2.9e12 / 4)


# Utilisation -------------------------------------------------------------------------------


def test_mfu_of_steps_and_of_busy_time(hand: Hand) -> None:
    """Two steps of 10 µs with one product each, and one product outside."""
    for start in (0, 10_000):
        hand.step(f"ProfilerStep#{start}", start, 10_000)
        hand.host_ns = start + 100
        hand.op("aten::mm", MM, 4_000)
        hand.op("aten::relu", [[100, 100]], 1_000)
    hand.host_ns = 20_100
    hand.op("aten::mm", MM, 4_000)
    result = of(hand, peak=1e12)
    assert [(step.duration_ns, step.matrix_flops) for step in result.steps] == [
        (10_000, MM_FLOPS)
    ] * 2
    assert [step.flops for step in result.steps] == [MM_FLOPS + 10_000] * 2
    # 2e6 FLOPs take 2 µs at the peak.
    assert [step.mfu for step in result.steps] == [0.2, 0.2]
    assert result.mfu_step == 0.2
    assert result.busy_ns == 14_000
    assert result.mfu_device == pytest.approx(3 * 2_000 / 14_000)
    assert result.matrix_flops == 3 * MM_FLOPS
    assert result.flops == 3 * MM_FLOPS + 2 * 10_000


def test_mfu_holds_each_product_against_the_peak_of_its_type(hand: Hand) -> None:
    hand.op("aten::mm", MM, 1_000)
    hand.op("aten::mm", MM, 1_000, dtype="float")
    result = roofline(hand.profile())
    least = MM_FLOPS / 989.5e12 + MM_FLOPS / 67e12
    assert result.mfu_device == pytest.approx(least / 2e-6)


def test_without_products_there_is_no_mfu(hand: Hand) -> None:
    hand.op("aten::relu", [[100, 100]], 1_000)
    assert of(hand).mfu_device is None


def test_ranks_add_up(tmp_path: Path) -> None:
    traces = []
    for rank in range(2):
        hand = Hand(tmp_path / str(rank))
        hand.step("ProfilerStep#0", 0, 10_000)
        hand.host_ns = 100
        hand.op("aten::mm", MM, 4_000)
        traces.append(hand.profile().traces[0])
    result = roofline(Profile(tuple(traces)), peak_flops=PEAK, peak_bandwidth=BANDWIDTH)
    assert (result.num_devices, only_row(result).calls) == (2, 2)
    assert result.mfu_step == 0.2
    assert result.mfu_device == 0.5


# On the host -------------------------------------------------------------------------------


def test_without_a_device_ops_are_measured_by_host_time(tmp_path: Path) -> None:
    hand = Hand(tmp_path / "t")
    hand.op("aten::addmm", [[100], *MM], 0, inside=["aten::linear"])
    hand.op("aten::view", [[100]], 0)
    hand.op("my::op", [[100]], 0)
    result = of(hand, peak=1e11, bandwidth=1e12)
    assert (result.basis, result.num_devices) == (Basis.HOST, 0)
    rows = {row.name: row for row in result.rows}
    assert set(rows) == {"aten::addmm", "my::op"}
    assert rows["aten::addmm"].time_ns == 98
    # The wrapper's own 2 ns, and the view.
    assert result.overhead_ns == 2 + 100
    assert result.sum_ns == result.busy_ns == 98 + 2 + 100 + 100
    assert "that ops took on the CPU" in text(result)


def test_a_cpu_without_given_peaks_is_unknown(tmp_path: Path) -> None:
    hand = Hand(tmp_path / "t")
    hand.op("aten::mm", MM, 0)
    assert "CPU" in (of(hand, None, None).no_ceilings or "")


def test_ops_of_the_host_do_not_count_beside_a_device(hand: Hand) -> None:
    hand.op("aten::mm", MM, 1_000)
    hand.op("aten::mm", [[7, 7], [7, 7]], 0)
    assert [row.calls for row in of(hand).rows] == [1]


def test_a_simulated_step_is_labelled_and_its_copies_are_apart(tmp_path: Path) -> None:
    """A product of 30 µs on a logical core of two, with copies of 10 µs each way."""
    inputs = Inputs(((128, 1024), (1024, 512)), ("c10::BFloat16",) * 2, ("", ""))
    host = tuple(
        replace(row, inputs=inputs) if row.name == "aten::mm" else row for row in recording().host
    )
    path = write_trace(recording(host=host), tmp_path / "trace.json")
    result = trnscope.open(path).roofline()
    row = only_row(result)
    assert result.simulated == "trn2 model v1"
    assert (row.name, row.time_ns, row.flops) == ("aten::mm", 30_000, 2 * 128 * 1024 * 512)
    assert row.compute_ratio == pytest.approx(2 * 128 * 1024 * 512 / 30e-6 / (2 * 78.64e12))
    assert (result.transfer_ns, result.communication_ns) == (20_000, 30_000)
    assert result.mfu_step == pytest.approx(row.compute_ratio * 30_000 / 100_000)
    assert result.mfu_device == pytest.approx(row.compute_ratio * 30_000 / 68_000)


def test_one_call_is_one_row_of_op_work(hand: Hand) -> None:
    hand.op("aten::mm", MM, 1_000)
    hand.op("aten::mm", MM, 500)
    work = op_work(hand.profile().traces[0])
    assert work.time_ns.tolist() == [1_000, 500]
    assert len(work.signatures) == 1
