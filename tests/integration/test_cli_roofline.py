"""``trnscope roofline`` on the real CPU recording of the documentation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trnscope
from trnscope.cli.main import run

TRACE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "cpu-ops.json"
PEAKS = ["--peak-flops", "57e9", "--peak-bandwidth", "9.8e9"]


def output(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["roofline", str(TRACE), *args]) == 0
    return capsys.readouterr().out


def ops(document: Any) -> dict[str, Any]:
    return {json.dumps(row["input_shapes"][:2]): row for row in document["ops"]}


def test_the_document_of_a_real_run(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(output(capsys, "--json", *PEAKS))
    rows = ops(document)
    square = rows["[[1024, 1024], [1024, 1024]]"]
    assert (square["name"], square["dtype"], square["calls"]) == ("aten::mm", "float32", 4)
    assert square["flops"] == 4 * 2 * 1024**3
    assert square["bytes"] == 4 * 3 * 4 * 1024**2
    rate = square["flops"] / square["time_ns"] * 1e9
    assert square["compute_ratio"] == pytest.approx(rate / 57e9, rel=1e-12)
    assert square["bound"] == "compute"
    column = rows["[[4096, 4096], [4096, 1]]"]
    assert column["bytes"] == 4 * 4 * (4096**2 + 2 * 4096)
    assert column["bound"] == rows["[[8000000], [8000000]]"]["bound"] == "memory"
    short = rows["[[64], [64]]"]
    assert (short["flops"], short["bytes"], short["bound"]) == (80 * 64, 80 * 768, "neither")
    assert document["basis"] == "host"
    assert document["simulated"] is None
    assert len(document["steps"]) == 4
    assert sum(step["flops"] for step in document["steps"]) == document["flops"]
    times = sum(row["time_ns"] for row in document["ops"])
    assert times + document["overhead_ns"] == document["sum_ns"]


def test_python_gives_the_same_result(capsys: pytest.CaptureFixture[str]) -> None:
    result = trnscope.open(TRACE).roofline(peak_flops=57e9, peak_bandwidth=9.8e9)
    assert result.to_json() == json.loads(output(capsys, "--json", *PEAKS))


def test_without_ceilings_rates_are_shown_and_shares_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = json.loads(output(capsys, "--json"))
    assert document["hardware"] is None
    assert "CPU" in document["no_hardware"]
    assert {row["bound"] for row in document["ops"]} == {None}
    assert document["mfu_step"] is None
    text = output(capsys)
    assert "is not known" in text
    assert "of peak" not in text


def test_the_text_begins_with_a_sentence_and_is_cut_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = output(capsys, "--top", "2", *PEAKS)
    title, sentence = text.splitlines()[:2]
    assert title == "Roofline"
    assert sentence.startswith("Of the 278.078 ms that ops took on the CPU, 65.4 % was limited by")
    assert text.count("\naten::") == 2
    assert "... and 2 more rows" in text


def test_another_chips_ceilings_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(output(capsys, "--json", "--hardware", "H100-SXM"))
    assert document["hardware"]["title"] == "NVIDIA H100 SXM5 80 GB"
    assert document["hardware"]["peak_bytes_per_s"]["source"]
    bfloat16 = document["hardware"]["peak_flops_per_s"]["bfloat16"]
    assert bfloat16["ridge_point"] == pytest.approx(989.5 / 3.35)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--hardware", "h100-sxn"], "did you mean h100-sxm"),
        (["--peak-flops", "0"], "give a number above 0"),
        (["--peak-bandwidth", "-3"], "give a number above 0"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], message: str
) -> None:
    assert run(["roofline", str(TRACE), *args]) == 1
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("trnscope: error: ")
    assert message in out.err
    assert out.err.count("\n") == 1
