"""The commands explain and rule: what they print, and how they fail."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from trnscope.advisor.registry import RULES
from trnscope.cli.main import run
from trnscope.report.explain import EVIDENCE_NOTE

SMALL = str(Path(__file__).resolve().parents[2] / "docs" / "examples" / "small.json")
CUT = str(Path(SMALL).with_name("cut.json"))


def test_explain_prints_the_contracts_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", SMALL, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1 and document["abstained"] is False and document["reason"] is None
    first = document["findings"][0]
    assert (first["code"], first["rule"]) == ("IN02", "single-process-loading")
    assert first["recoverable_ns_per_step"] == [3_200_000, 4_000_000, 4_000_000]
    assert first["share_of_step"] == 0.4
    assert first["source"] is None


def test_a_cut_file_abstains_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", CUT, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["abstained"] is True
    assert document["reason"].startswith("the file is cut off")


def test_top_limits_the_findings_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", SMALL, "--top", "1"]) == 0
    out = capsys.readouterr().out
    assert "[IN02 single-process-loading]" in out
    assert "... and 1 more finding (--top 0 shows all)" in out
    assert "[HO03 python-overhead]" not in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["explain", SMALL, "--step", "99"], "no step 99 in the trace; trnscope steps lists them"),
        (["rule", "IN99"], "no rule IN99; trnscope rule lists them all"),
    ],
)
def test_a_users_error_is_one_line(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"trnscope: error: {message}\n"


def test_the_manual_lists_every_rule_and_shows_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{rule.code} {rule.name}" in listed for rule in RULES)
    assert run(["rule", "loader-bound"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("IN01 loader-bound\nThe program waits for its data loader.\n")
    assert "\nWhen it is wrong\n" in page


def test_the_manual_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert [rule["code"] for rule in rules] == [rule.code for rule in RULES]
    assert all(len(rule["sections"]) == 7 for rule in rules)


def test_evidence_can_be_looked_up_as_the_note_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", SMALL]) == 0
    out = capsys.readouterr().out
    assert EVIDENCE_NOTE in out
    first = re.search(r"longest slices: (\d+)", out)
    assert first is not None
    query = f"SELECT name, dur_ns FROM slices WHERE id = {first[1]}"
    assert run(["sql", SMALL, query, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows == [["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 4_000_000]]
