"""The figures of the device's overhead, and when a goal counts as missed."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.device_overhead import Overhead, Section, Times, figures, table


def row(name: str, cpu: Times, device: Times) -> Overhead:
    return Overhead(name, cpu, device)


def test_the_wall_gives_its_lower_quartile_and_the_thread_its_median() -> None:
    # Two of seven batches were interrupted.
    walls = [2.0, 2.0, 3.0, 3.0, 4.0, 90.0, 400.0]
    threads = [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
    found = figures([Times(*pair) for pair in zip(walls, threads, strict=True)])
    assert found == Times(2.0, 2.5)


def test_the_worst_op_decides_on_each_clock() -> None:
    rows = (
        row("a", Times(2.0, 1.0), Times(6.5, 2.0)),
        row("b", Times(9.0, 8.0), Times(9.5, 12.0)),
    )
    section = Section("without a profiler", rows, 5.0)
    assert section.worst == Times(4.5, 4.0)
    assert section.is_met
    assert "4.50 us on the wall, 4.00 us of the thread; goal: at most 5 us: met" in table(section)


@pytest.mark.parametrize("device", [Times(7.5, 2.0), Times(3.0, 6.5)])
def test_a_goal_missed_on_either_clock_is_missed(device: Times) -> None:
    section = Section("without a profiler", (row("a", Times(2.0, 1.0), device),), 5.0)
    assert not section.is_met
    assert table(section).rstrip().endswith("MISSED")
