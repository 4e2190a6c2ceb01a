"""Own time and device time of calls, as the native passes count them; by hand."""

from __future__ import annotations

import numpy as np

from trnscope import _native
from trnscope.analysis.grouping import distinct
from trnscope.analysis.host_calls import SelfTimes


def u32(*values: int) -> np.ndarray:
    return np.array(values, np.uint32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_overlapping_children_count_in_full_while_time_is_left() -> None:
    # Row 100 [0, 100) holds 101 [10, 50) and 102 [40, 70), which overlap by 10.
    parent, start, dur = u32(100, 100, 100), i64(0, 10, 40), i64(100, 40, 30)
    stored = i64(40, 40, 20)
    rows, self_ns = _native.differing_self_times(parent, start, dur, stored, 100)
    assert (rows.tolist(), self_ns.tolist()) == ([100, 102], [30, 30])


def test_overlapping_children_longer_than_their_parent_count_once() -> None:
    # [0, 100) holds [0, 60) and [30, 95): 125 in full, 95 together.
    parent, start, dur = u32(0, 0, 0), i64(0, 0, 30), i64(100, 60, 65)
    rows, self_ns = _native.differing_self_times(parent, start, dur, i64(0, 60, 65), 0)
    assert (rows.tolist(), self_ns.tolist()) == ([0], [5])


def test_work_counts_towards_all_groups_around_its_call() -> None:
    # 0 holds 1 holds 2; 1 is skipped, and 3 is of no group but lies in 2.
    above, key, skip = u32(0, 0, 1, 2), u32(0, 1, 1, 7), np.array([0, 1, 0, 0], np.uint8)
    total = _native.charge_upwards(above, key, skip, u32(2, 3), i64(5, 11), 2)
    assert total.tolist() == [16, 16]


def test_outer_calls_have_no_call_directly_around_them() -> None:
    key, above = u32(0, 0, 9, 0), u32(0, 0, 2, 2)
    assert _native.outer_calls(key, above, 5).tolist() == [0, 3]


def test_slices_are_found_by_kind_and_name() -> None:
    name, kind = u32(0, 1, 1, 2), np.array([4, 4, 5, 4], np.uint8)
    wanted = np.zeros(256, np.uint8)
    wanted[4] = 1
    assert _native.names_present(name, kind, wanted, 4).tolist() == [1, 1, 1, 0]
    flags = np.array([0, 1, 1, 0], np.uint8)
    assert _native.find_names(name, kind, wanted, flags).tolist() == [1, 3]
    assert _native.find_keys(name, flags).tolist() == [1, 2, 3]


def test_corrected_times_stand_beside_the_stored_ones() -> None:
    stored = i64(1, 2, 3, 4)
    times = SelfTimes.joined([SelfTimes(u32(3), i64(40)), SelfTimes(u32(1), i64(20))])
    assert times.slices.tolist() == [1, 3]
    assert times.of(u32(3, 0, 1), stored).tolist() == [40, 1, 20]
    assert times.applied_to(stored).tolist() == [1, 20, 3, 40]
    assert stored.tolist() == [1, 2, 3, 4]


def test_distinct_values_and_their_numbers() -> None:
    values, number = distinct(i64(7, -1, 7, 3))
    assert (values.tolist(), number.tolist()) == ([-1, 3, 7], [2, 0, 2, 1])
    assert distinct(i64())[0].size == 0
