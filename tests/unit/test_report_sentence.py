"""The sentence says what was measured, of what, and marks what is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trnscope.analysis.breakdown import Breakdown, BreakdownBasis, BreakdownPart, BreakdownRow
from trnscope.model.kinds import DeviceKind
from trnscope.model.track import Device
from trnscope.report.sentence import where_time_goes

GPU = Device(DeviceKind.CUDA, 0)
OTHER_GPU = Device(DeviceKind.CUDA, 1)


def row(
    parts: dict[str, int], name: str = "ProfilerStep#1", device: Device | None = GPU
) -> BreakdownRow:
    return BreakdownRow(
        source=0,
        rank=None,
        name=name,
        device=device,
        start_ns=0,
        duration_ns=sum(parts.values()),
        parts=tuple(BreakdownPart(key, value) for key, value in parts.items()),
    )


def test_names_the_two_largest_parts_and_their_denominator() -> None:
    rows = (
        row({"compute": 3_000, "host_wait": 6_000, "other": 1_000}),
        row({"compute": 3_000, "host_wait": 6_000, "other": 1_000}),
    )
    assert where_time_goes(Breakdown(BreakdownBasis.DEVICE, rows), incomplete=False) == (
        "Of a step of 10.000 µs (mean of 2 steps on cuda:0), 60.0 % went to waiting for the "
        "host to launch work and 30.0 % to kernels computing."
    )


def test_leaves_out_a_small_second_part() -> None:
    split = Breakdown(BreakdownBasis.DEVICE, (row({"compute": 9_000, "other": 1_000}),))
    assert where_time_goes(split, incomplete=False) == (
        "Of a step of 10.000 µs (mean of 1 step on cuda:0), 90.0 % went to kernels computing."
    )


def test_marks_damage_and_simulation() -> None:
    split = Breakdown(BreakdownBasis.DEVICE, (row({"compute": 10}),))
    assert where_time_goes(split, incomplete=True, simulated=True) == (
        "In the part of the trace that could be read: of a step of 10 ns (mean of 1 step on "
        "cuda:0), 100.0 % went to kernels computing. Device times are simulated."
    )


def test_says_when_no_steps_were_found() -> None:
    split = Breakdown(
        BreakdownBasis.HOST, (row({"operators": 80, "other": 20}, "(whole trace)", None),)
    )
    assert where_time_goes(split, incomplete=False).startswith(
        "Of the 100 ns of the whole trace (no steps were found), 80.0 % went to operators"
    )


def test_counts_steps_per_device() -> None:
    rows = (row({"compute": 10}), row({"compute": 30}, device=OTHER_GPU))
    sentence = where_time_goes(Breakdown(BreakdownBasis.DEVICE, rows), incomplete=False)
    assert sentence.startswith("Of a step of 20 ns (mean of 1 step over 2 devices), 100.0 %")


def test_files_that_are_no_ranks_are_counted_as_files() -> None:
    # Three steps in one file and one in another of the same worker.
    rows = (*[row({"compute": 10})] * 3, replace(row({"compute": 30}), source=1))
    sentence = where_time_goes(Breakdown(BreakdownBasis.DEVICE, rows), incomplete=False)
    assert sentence.startswith("Of a step of 15 ns (mean of 4 steps in 2 files), 100.0 %")
    ranks = tuple(replace(one, rank=one.source) for one in rows[2:])
    sentence = where_time_goes(Breakdown(BreakdownBasis.DEVICE, ranks), incomplete=False)
    assert sentence.startswith("Of a step of 20 ns (mean of 1 step over 2 devices), 100.0 %")
    same_rank = tuple(replace(one, rank=3) for one in rows)
    sentence = where_time_goes(Breakdown(BreakdownBasis.DEVICE, same_rank), incomplete=False)
    assert sentence.startswith("Of a step of 15 ns (mean of 4 steps in 2 files), 100.0 %")


@pytest.mark.parametrize("rows", [(), (row({"compute": 0}),)])
def test_without_time_there_is_nothing_to_say(rows: tuple[BreakdownRow, ...]) -> None:
    basis = BreakdownBasis.DEVICE if rows else None
    sentence = where_time_goes(Breakdown(basis, rows), incomplete=False)
    assert sentence == "There is no time to account for: no slices with a duration were read."
