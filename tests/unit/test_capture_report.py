"""The lines that a run prints about what its recording cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.capture.record import CaptureRecord, Overhead, record_path
from trnscope.capture.run import RunResult
from trnscope.cli.capture_report import (
    _argument,
    _cost,
    _worth_telling,
    failure_lines,
    next_lines,
)

MS = 1_000_000


def line(overhead: Overhead) -> str:
    (text,) = _cost(overhead)
    return text.plain


@pytest.mark.parametrize(
    ("profiled", "recorded", "plain", "change"),
    [
        (12 * MS, (11 * MS, 13 * MS), (9 * MS, 10 * MS), "20.0 % more"),
        (9 * MS, (8 * MS, 13 * MS), (7 * MS, 14 * MS), "10.0 % less, within what steps vary by"),
    ],
)
def test_a_slowdown_is_stated_and_noise_is_called_noise(
    profiled: int, recorded: tuple[int, int], plain: tuple[int, int], change: str
) -> None:
    cost = Overhead(
        profiled_step_ns=profiled,
        unprofiled_step_ns=10 * MS,
        num_profiled_steps=8,
        num_unprofiled_steps=5,
        profiled_range_ns=recorded,
        unprofiled_range_ns=plain,
        start_ns=MS,
        stop_ns=2 * MS,
        export_ns=3 * MS,
    )
    text = line(cost)
    assert f"({change}" in text
    assert "medians of 8 and 5 steps" in text
    assert text.endswith("Starting, stopping and writing took 6.000 ms besides.")
    assert ("within what steps vary" in text) == (not cost.slowdown_is_clear)


def test_what_was_not_measured_is_not_stated_as_zero() -> None:
    assert line(Overhead()) == (
        "Cost of recording: per step not measured, no step ran without it to compare with."
    )


def recorded(folder: Path, run: int) -> tuple[Path, ...]:
    """Two ranks' traces with their records."""
    names = tuple(folder / f"rank{rank}.{run}.pt.trace.json" for rank in (0, 1))
    for name in names:
        name.touch()
        record_path(name).touch()
    return names


def test_the_next_command_names_this_run_only(tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    assert _argument(recorded(folder, 1)) == f"'{folder}'"
    later = recorded(folder, 2)
    assert _argument(later) == f"'{later[0]}' '{later[1]}'"
    assert _argument((tmp_path / "a.trace.json",)) == f"{tmp_path}/a.trace.json"


def test_a_launcher_that_did_not_train_is_not_told_of() -> None:
    launcher = CaptureRecord(pid=1, reason="no step")
    rank = CaptureRecord(pid=2, rank=0, trace=Path("t.json"))
    assert _worth_telling((launcher, rank)) == (rank,)
    assert _worth_telling((launcher,)) == (launcher,)


@pytest.mark.parametrize(("with_stack", "last"), [(True, "ops --by stack"), (False, "--stack")])
def test_the_report_ends_with_what_to_run_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_stack: bool, last: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = list(next_lines((tmp_path / "out" / "a.trace.json",), with_stack=with_stack))
    assert lines[0].plain == "Trace: out/a.trace.json"
    assert lines[2].plain.endswith(" explain out/a.trace.json")
    assert lines[2].no_wrap
    assert last in lines[-1].plain


def test_a_report_on_a_script_that_failed_begins_with_its_end() -> None:
    failed = RunResult(3, None, Path("out"), (), 0)
    assert [text.plain for text in failure_lines(failed)][-1].startswith(
        "The script ended with exit code 3."
    )
    assert list(failure_lines(RunResult(0, None, Path("out"), (), 0))) == []
