"""Public traces against data-sheet peaks: bounds that a wrong count or a wrong peak breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

import trnscope
from trnscope.analysis.roofline import Bound, Roofline

TRACES = "traces/TraceLens/tests/traces"
CHIPS = {
    "h100/Falconsai_nsfw_image_detection__1016002": "h100-sxm",
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005": "h100-sxm",
    "h100/facebook_timesformer-base-finetuned-k400__1016002": "h100-sxm",
    "h100/gaunernst_bert-small-uncased__1016001": "h100-sxm",
    "h100/google_owlv2-large-patch14-ensemble__1016001": "h100-sxm",
    "b200/eager_trace": "b200",
    "torch_compile_triton/trace": "mi300x",
    "perf_model/normalization/normalization_layer_test": "mi300x",
}
LARGEST_CACHE = 256 << 20
"""Last-level cache of an MI300X; an H100 and a B200 have less."""
LONG_NS = 50_000
"""Kernels of this length are worth a bound from below."""


def of(shared: Path, name: str) -> Roofline:
    return trnscope.open(shared / TRACES / f"{name}.json.gz").roofline()


@pytest.mark.parametrize("name", CHIPS)
def test_no_op_is_faster_than_its_device(shared: Path, name: str) -> None:
    result = of(shared, name)
    assert result.abstained is None
    assert result.ceilings is not None
    assert result.ceilings.name == CHIPS[name]
    assert [row for row in result.rows if row.bound is Bound.INCONSISTENT] == []
    for row in result.rows:
        if row.bound is Bound.CACHE:
            # What ran faster than main memory has to fit a cache.
            assert (row.num_bytes or 0) / row.calls < LARGEST_CACHE


@pytest.mark.parametrize("name", CHIPS)
def test_times_add_up_to_all_device_work(shared: Path, name: str) -> None:
    profile = trnscope.open(shared / TRACES / f"{name}.json.gz")
    result, (trace,) = profile.roofline(), profile.traces
    everything = int(trace.slices.dur_ns[trace.launches.device_slice].sum())
    listed = sum(row.time_ns for row in result.rows)
    apart = result.communication_ns + result.transfer_ns + result.unattributed_ns
    assert listed + apart == result.sum_ns == everything


@pytest.mark.parametrize(
    ("name", "rows", "at_least", "at_most"),
    [
        # cuBLAS reaches 50 to 80 % of an H100's bfloat16 peak on products of this size.
        ("h100/facebook_timesformer-base-finetuned-k400__1016002", "aten::addmm", 0.5, 0.85),
        ("h100/Qwen_Qwen1.5-0.5B-Chat__1016005", "aten::mm", 0.5, 0.8),
        ("torch_compile_triton/trace", "aten::mm", 0.3, 0.6),
        ("torch_compile_triton/trace", "aten::_scaled_dot_product_flash_attention", 0.15, 0.4),
    ],
)
def test_large_products_run_at_known_rates(
    shared: Path, name: str, rows: str, at_least: float, at_most: float
) -> None:
    large = [
        row
        for row in of(shared, name).rows
        if row.name == rows and row.time_ns > row.calls * LONG_NS and (row.flops or 0) > 1e11
    ]
    assert large
    for row in large:
        assert row.compute_ratio is not None
        assert at_least < row.compute_ratio < at_most, row


def test_large_element_wise_ops_are_bound_by_memory(shared: Path) -> None:
    result = of(shared, "h100/google_owlv2-large-patch14-ensemble__1016001")
    (row,) = (
        row
        for row in result.rows
        if row.name == "aten::mul" and row.input_shapes == "[[1, 5185, 4096], [1, 5185, 4096]]"
    )
    assert row.bound is Bound.MEMORY
    assert row.memory_ratio is not None
    assert 0.8 < row.memory_ratio < 1


def test_an_old_trace_without_types_is_not_guessed_at(shared: Path) -> None:
    path = shared / "traces/param/et_replay/tests/inputs/resnet_kineto.json.gz"
    result = trnscope.open(path).roofline("a100-sxm4-40gb")
    assert result.abstained is not None
    assert result.mfu_device is None
    assert all(row.bound is None for row in result.rows)
