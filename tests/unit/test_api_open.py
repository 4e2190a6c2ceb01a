"""``trnscope.open``: every way to name files gives the same profile; what is no path is refused."""

from __future__ import annotations

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
