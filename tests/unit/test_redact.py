"""Redacting: folders and names go, everything else stays."""

from __future__ import annotations

import pytest

from trnscope.report.redact import redacted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ada/project/train.py:12", "…/train.py:12"),
        ("C:\\Users\\ada\\train.py", "…/train.py"),
        ("/data/run 1/x.json: is cut off", "…/x.json: is cut off"),
        ("see /data/run 1/x.json", "see …/run 1/x.json"),
        ("read of /mnt/ada/a.json, then /mnt/b.json", "read of …/a.json, then …/b.json"),
        ("train.py:12", "train.py:12"),
        ("aten::add / aten::mul", "aten::add / aten::mul"),
        ("steps 2/3/4 of moca/library/x/model.py", "steps 2/3/4 of moca/library/x/model.py"),
        ("ada_runs/x.py by ada2", "…_runs/x.py by ada2"),
        ("ada-box: adamw of ada", "…-box: adamw of …"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert redacted(text, ["ada"]) == expected


def test_documents_keep_their_form() -> None:
    document = {"paths": ["/a/b.json"], "n": 3, "none": None, "rows": [{"file": "/x/y/z.py"}]}
    assert redacted(document) == {
        "paths": ["…/b.json"],
        "n": 3,
        "none": None,
        "rows": [{"file": "…/z.py"}],
    }


def test_a_name_too_short_to_tell_from_words_stays() -> None:
    assert redacted("op of me", ["me"]) == "op of me"


def test_a_known_folder_goes_wherever_it_stands() -> None:
    folders = ["/data/run 1", "my runs"]
    assert redacted("see /data/run 1/x.json", (), folders) == "see …/x.json"
    assert redacted("my runs/y.json", (), folders) == "…/y.json"
    assert redacted("a/b.json", (), ["."]) == "a/b.json"
