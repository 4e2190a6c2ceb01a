"""``trnscope.open``: every way to name files gives the same profile; what is no path is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import trnscope
from tools.make_example_trace import small_trace
from trnscope.errors import UsageError


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}.json" for name in ("a", "b")]
    for path in paths:
        path.write_text(small_trace(), encoding="utf-8")
    return paths


def opened(*paths: Any) -> list[str]:
    return [trace.source.path for trace in trnscope.open(*paths).traces]


def test_paths_and_lists_of_paths_are_one(files: list[Path]) -> None:
    a, b = files
    both = [str(a), str(b)]
    assert opened(a) == opened(str(a)) == opened([a]) == [str(a)]
    assert opened(a, b) == opened([a, b]) == opened((str(a), b)) == opened([a], b) == both
    assert opened(path for path in files) == both


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [(7, "int"), (None, "NoneType"), (b"a.json", "bytes"), ([1], "int"), ({"a": 1}, "dict"),
     ([["a.json"]], "list")],
)  # fmt: skip
def test_what_is_no_path_is_refused_in_one_line(wrong: Any, kind: str) -> None:
    with pytest.raises(UsageError) as refused:
        trnscope.open(wrong)
    assert str(refused.value) == (
        f"trnscope.open takes paths (str or Path), or lists of them, not {kind}; "
        'write trnscope.open("trace.json")'
    )


@pytest.mark.parametrize("nothing", [(), ([],), ([], ())])
def test_no_path_at_all(nothing: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="no trace given"):
        trnscope.open(*nothing)


def recorded(folder: Path, *ranks: int) -> Path:
    folder.mkdir(parents=True)
    for rank in ranks:
        (folder / f"rank{rank}.1.pt.trace.json").write_text(small_trace(), encoding="utf-8")
        (folder / f"rank{rank}.1.capture.json").write_text("{}")
    return folder


def test_a_recorded_run_is_opened_by_its_folder(tmp_path: Path) -> None:
    run = recorded(tmp_path / "out" / "train-1", 0, 1)
    (run / "notes.pt.trace.json").write_text("no trace of ours")
    assert opened(run) == [str(run / f"rank{rank}.1.pt.trace.json") for rank in (0, 1)]


def test_a_folder_of_runs_names_the_latest(tmp_path: Path) -> None:
    first = recorded(tmp_path / "train-1", 0)
    with pytest.raises(UsageError, match=f"holds a recorded run; name it: {first}"):
        trnscope.open(tmp_path)
    later = recorded(tmp_path / "train-2", 0)
    os.utime(first, (1, 1))
    with pytest.raises(UsageError, match=f"holds 2 recorded runs; name one: {later}"):
        trnscope.open(tmp_path)
