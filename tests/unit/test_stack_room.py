"""Recording with stacks ends before its end would fill the memory."""

from __future__ import annotations

from collections.abc import Iterator

from trnscope.capture.stack_room import StackRoom, available_bytes, resident_bytes

MB, GB = 10**6, 10**9


def room(used_mb: list[int], free: int | None) -> list[bool]:
    used: Iterator[int] = iter(used_mb)
    asked = StackRoom(lambda: next(used) * MB, lambda: free)
    return [asked.is_left() for _ in used_mb]


def test_steps_end_where_the_next_one_would_not_fit() -> None:
    # 50 MB a step become 4 GB each: half of 22 GB holds two steps, not three.
    assert room([500, 550, 600], 22 * GB) == [True, False, False]
    assert room([500, 550, 600, 650], 32 * GB) == [True, True, True, False]


def test_a_first_step_that_brings_much_does_not_count() -> None:
    assert room([5000, 5000, 5001], 10 * GB) == [True, True, True]


def test_memory_that_shrinks_or_is_not_known_stops_nothing() -> None:
    assert room([500, 400, 300], GB) == [True, True, True]
    assert room([500, 900, 1300], None) == [True, True, True]


def test_what_the_system_tells() -> None:
    used, free = resident_bytes(), available_bytes()
    assert used is not None and free is not None
    assert 10 * MB < used < 100 * GB and free > 0
