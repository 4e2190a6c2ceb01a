"""Exact group-by against plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnscope.analysis.grouping import group_percentiles, group_sum, pair_up, running_max

_PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**60), 2**60)), max_size=50)


@given(_PAIRS)
def test_sums_are_exact_beyond_53_bits(rows: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in rows], np.uint32)
    values = np.array([value // 50 for _, value in rows], np.int64)
    count, total = group_sum(keys, values, 6)
    expected: dict[int, int] = defaultdict(int)
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        expected[key] += value
    assert count.tolist() == [Counter(keys.tolist())[key] for key in range(6)]
    assert total.tolist() == [expected[key] for key in range(6)]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60),
    st.sampled_from([1, 1_000_003]),
)
def test_pairs_are_numbered_in_order(rows: list[tuple[int, int]], stretch: int) -> None:
    first = np.array([a * stretch for a, _ in rows], np.uint32)
    second = np.array([b for _, b in rows], np.uint32)
    pairs = pair_up(first, second)
    distinct = sorted(set(zip(first.tolist(), second.tolist(), strict=True)))
    assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == distinct
    assert [distinct[key] for key in pairs.key.tolist()] == list(
        zip(first.tolist(), second.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0.0, 10), (0.2, 10), (0.21, 20), (0.5, 30), (0.95, 50), (1.0, 50)]
)
def test_percentiles_by_nearest_rank(ratio: float, expected: int) -> None:
    values = np.array([50, 20, 10, 40, 30], np.int64)
    (result,) = group_percentiles(np.zeros(5, np.uint32), values, 1, [ratio])
    assert result.tolist() == [expected]


@pytest.mark.parametrize("scale", [1, 2**61])
def test_running_max_starts_anew_in_each_segment(scale: int) -> None:
    segments = np.array([0, 0, 0, 1, 1, 2])
    values = np.array([1, 3, 2, -1, 0, 2], np.int64) * scale
    assert (running_max(segments, values) // scale).tolist() == [1, 3, 3, -1, 0, 2]
