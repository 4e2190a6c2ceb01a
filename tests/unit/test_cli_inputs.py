"""Which files an argument names, and when a progress line is shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from trnscope.cli import inputs
from trnscope.cli.inputs import expand, open_profile, progress_line
from trnscope.errors import UsageError


def test_a_file_that_exists_is_taken_literally(tmp_path: Path) -> None:
    odd = tmp_path / "a[b]*.json"
    odd.touch()
    (tmp_path / "ab.json").touch()
    assert expand([odd]) == [odd]


def test_patterns_give_sorted_files(tmp_path: Path) -> None:
    for name in ("r2.json", "r10.json", "r1.json", "other.txt"):
        (tmp_path / name).touch()
    found = expand([tmp_path / "r*.json", tmp_path / "other.txt"])
    assert [path.name for path in found] == ["r1.json", "r10.json", "r2.json", "other.txt"]


def test_records_beside_traces_are_left_out(tmp_path: Path) -> None:
    trace, record = tmp_path / "rank0.1.pt.trace.json", tmp_path / "rank0.1.capture.json"
    trace.touch()
    record.touch()
    assert expand([tmp_path / "*.json"]) == expand([trace, record]) == [trace]
    assert expand([record]) == [record]


def test_a_path_without_a_pattern_is_left_to_the_reader(tmp_path: Path) -> None:
    assert expand([tmp_path / "absent.json"]) == [tmp_path / "absent.json"]


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file matches"):
        expand([tmp_path / "*.json"])


def test_a_folder_of_files_that_no_run_recorded_is_told_the_pattern(tmp_path: Path) -> None:
    (tmp_path / "rank0.json").touch()
    with pytest.raises(UsageError, match=f"write '{tmp_path}/rank0.json'"):
        open_profile([tmp_path])
    (tmp_path / "rank1.json.gz").touch()
    with pytest.raises(UsageError, match=r"holds 2 \.json files .* write '.*/\*\.json\*' "):
        open_profile([tmp_path])
    with pytest.raises(UsageError, match="is a directory"):
        open_profile([_empty(tmp_path)])


def _empty(folder: Path) -> Path:
    """Of traces: a run that goes on has a record alone."""
    (folder / "empty").mkdir()
    (folder / "empty" / "root.1.capture.json").touch()
    return folder / "empty"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the progress line sees; a test moves the last one on."""
    now = [0.0]
    monkeypatch.setattr(inputs.time, "monotonic", lambda: now[0])
    return now


def test_progress_is_shown_after_half_a_second_and_erased(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(inputs.sys, "stderr", terminal)
    with progress_line("reading") as report:
        report(10_000_000, 80_000_000)
        assert terminal.getvalue() == ""
        clock[0] = 0.6
        report(20_000_000, 80_000_000)
        report(30_000_000, 80_000_000)
    assert terminal.getvalue() == "\r\x1b[Kreading 25 % of 80 MB\r\x1b[K"


def test_no_progress_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(inputs.sys, "stderr", pipe)
    with progress_line("reading") as report:
        clock[0] = 100.0
        report(1, 2)
    assert pipe.getvalue() == ""
