"""Begin and end events: pairs, open begins and ends without a begin."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trnscope.ingest.pairing import Pairs, pair_brackets


def pair(events: list[tuple[int, int, str]]) -> Pairs:
    group, ts, phase = zip(*events, strict=True) if events else ((), (), ())
    return pair_brackets(
        np.array(group, np.int64),
        np.array(ts, np.int64),
        np.array([p == "B" for p in phase], np.bool_),
    )


def as_sets(pairs: Pairs) -> tuple[set[tuple[int, int]], list[int], list[int]]:
    closed = set(zip(pairs.begins.tolist(), pairs.ends.tolist(), strict=True))
    return closed, pairs.open_begins.tolist(), pairs.unmatched_ends.tolist()


def by_stack(
    events: list[tuple[int, int, str]],
) -> tuple[set[tuple[int, int]], list[int], list[int]]:
    """The definition, row by row."""
    stacks: dict[int, list[int]] = defaultdict(list)
    closed, unmatched = set(), []
    for row in sorted(range(len(events)), key=lambda i: (events[i][0], events[i][1], i)):
        group, _, phase = events[row]
        if phase == "B":
            stacks[group].append(row)
        elif stacks[group]:
            closed.add((stacks[group].pop(), row))
        else:
            unmatched.append(row)
    return closed, sorted(row for stack in stacks.values() for row in stack), sorted(unmatched)


def test_nested_and_unmatched_events_of_two_threads() -> None:
    events = [
        (1, 0, "B"),
        (1, 10, "B"),
        (1, 40, "E"),
        (1, 50, "B"),
        (1, 90, "E"),
        (1, 100, "E"),
        (1, 105, "E"),
        (1, 110, "B"),
        (2, 20, "B"),
        (2, 30, "E"),
    ]
    assert as_sets(pair(events)) == ({(1, 2), (3, 4), (0, 5), (8, 9)}, [7], [6])


def test_nothing_gives_nothing() -> None:
    assert as_sets(pair([])) == (set(), [], [])


def test_an_open_begin_below_closed_ones_stays_open() -> None:
    events = [(1, 0, "B"), (1, 1, "B"), (1, 2, "E"), (1, 3, "B"), (1, 4, "E")]
    assert as_sets(pair(events)) == ({(1, 2), (3, 4)}, [0], [])


_EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 12), st.sampled_from("BE")), max_size=60
)


@given(_EVENTS)
def test_any_input_matches_a_stack(events: list[tuple[int, int, str]]) -> None:
    assert as_sets(pair(events)) == by_stack(events)
