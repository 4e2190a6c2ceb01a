"""Flows and attributes against a plain Python reading of their rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnscope import _native

START, STEP, END = 0, 1, 2

ids = st.sampled_from([0, 1, 2, 2**40, 2**40 + 1, 2**64 - 1])
flow_ends = st.lists(
    st.tuples(
        ids, st.sampled_from([3, 9]), st.sampled_from([START, STEP, END]), st.integers(-5, 5)
    ),
    max_size=40,
)


def pairs_by_the_rule(ends, found):
    """(kind, row out, row in), by kind, id, then the later end."""
    rows = [i for i in range(len(ends)) if found[i]]
    rows.sort(key=lambda i: (ends[i][1], ends[i][0], ends[i][3], ends[i][2]))
    pairs = []
    for at, row in enumerate(rows):
        flow_id, kind, phase, _ = ends[row]
        flow = [r for r in rows if ends[r][:2] == (flow_id, kind)]
        earlier = [r for r in rows[:at] if r in flow and ends[r][2] in (START, STEP)]
        starts = [r for r in flow if ends[r][2] == START]
        source = earlier[-1:] or starts[:1]
        if phase != START and source:
            pairs.append((kind, source[0], row))
    return pairs


@given(flow_ends, st.data())
def test_flows_are_paired_by_the_rule(ends, data):
    found = data.draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))
    flow_id, kind, phase, ts = zip(*ends, strict=True) if ends else ((), (), (), ())
    columns = _native.pair_flows(
        np.array(flow_id, np.uint64),
        np.array(kind, np.uint32),
        np.array(phase, np.uint8),
        np.array(ts, np.int64),
        np.array(found, np.uint8),
        np.arange(len(ends), dtype=np.uint32),
    )
    pairs = list(zip(*(column.tolist() for column in columns), strict=True))
    assert pairs == pairs_by_the_rule(ends, found)


@given(
    st.integers(1, 200).flatmap(
        lambda num: st.tuples(
            st.permutations(range(num)),
            st.lists(st.tuples(st.integers(0, num - 1), st.integers(0, 2**64 - 1)), max_size=80),
        )
    )
)
def test_attribute_rows_come_by_slice_with_the_last_value(given_rows):
    slice_of_event, rows = given_rows
    slices, values = _native.rows_by_slice(
        np.array([event for event, _ in rows], np.uint32),
        np.array([value for _, value in rows], np.uint64),
        np.array(slice_of_event, np.uint32),
    )
    expected = {slice_of_event[event]: value for event, value in rows}
    assert dict(zip(slices.tolist(), values.tolist(), strict=True)) == expected
    assert slices.tolist() == sorted(expected)


def test_an_attribute_of_an_unknown_event_is_refused():
    one = np.ones(1, np.uint32)
    with pytest.raises(ValueError, match="event out of range"):
        _native.rows_by_slice(one, one, np.zeros(1, np.uint32))
