"""Documents are cut to a size and say what is missing."""

from __future__ import annotations

import json

from trnscope.report.bounded import MAX_TEXT, bounded


def test_a_short_answer_is_left_alone() -> None:
    document = {"schema": 1, "rows": [[1, 2], [3, 4]], "none": None}
    assert bounded(document, 5) == document


def test_lists_are_cut_and_counted_by_path() -> None:
    document = {"rows": list(range(10)), "groups": [{"ids": [1, 2, 3, 4]}, {"ids": [1, 2, 3]}]}
    assert bounded(document, 2) == {
        "rows": [0, 1],
        "groups": [{"ids": [1, 2]}, {"ids": [1, 2]}],
        "left_out": {"rows": 8, "groups[].ids": 3},
    }


def test_a_long_answer_is_halved_until_it_is_short() -> None:
    document = {"rows": ["x" * 1000] * 400}
    answer = bounded(document, 400, 40_000)
    # 400, 200, 100, 50 rows of 1,004 characters are too long; 25 are not.
    assert answer["left_out"] == {"rows": 375}
    assert len(json.dumps(answer)) <= 40_000


def test_a_long_text_ends_with_an_ellipsis() -> None:
    text = bounded({"text": "y" * 5000}, 5)["text"]
    assert len(text) == MAX_TEXT and text.endswith("y…")
