"""The report: one file that holds the documents of the command line and nothing that runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import trnscope
from tests.unit.chrome_json import complete, write
from trnscope.cli.main import run
from trnscope.errors import UsageError
from trnscope.server import report_file
from trnscope.server.report_file import MAX_BYTES, report_html

SMALL = Path(__file__).resolve().parents[2] / "docs" / "examples" / "small.json"
BLOCK = re.compile(r'<script type="application/json" data-document="([^"]+)">(.*?)</script>', re.S)
HTML = """<!doctype html><html><head><link rel="icon" href="./icon.svg" />
<script type="module" crossorigin src="./assets/a.js"></script>
<link rel="stylesheet" crossorigin href="./assets/a.css"></head><body></body></html>"""


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page as Node.js builds it, but for what it does."""
    page = tmp_path / "page"
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text(HTML)
    (page / "assets" / "a.js").write_text('const text = "</script>";')
    (page / "assets" / "a.css").write_text('i { background: url("../icon.svg") }')
    (page / "icon.svg").write_text("<svg/>")
    monkeypatch.setattr(report_file, "require_page", lambda: page)


def documents(html: str) -> dict[str, Any]:
    return {path: json.loads(text) for path, text in BLOCK.findall(html)}


def test_the_documents_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = documents(report_html(trnscope.open(SMALL)))
    for path, command in [("explain", ["explain"]), ("kernels?by=name", ["kernels"])]:
        assert run([*command, str(SMALL), "--json"]) == 0
        assert found[path] == json.loads(capsys.readouterr().out)
    assert found["about"]["left_out"] == {} and found["about"]["redacted"] is False


def test_only_the_script_of_the_page_may_run() -> None:
    html = report_html(trnscope.open(SMALL))
    script = re.search(r'<script type="module">(.*?)</script>', html, re.S)
    assert script is not None and script[1] == 'const text = "<\\/script>";'
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in html
    picture = base64.b64encode(b"<svg/>").decode()
    address = f"data:image/svg+xml;base64,{picture}"
    assert f'<style>i {{ background: url("{address}") }}</style>' in html
    assert "./assets" not in html and "icon.svg" not in html


def test_a_name_ends_no_script(tmp_path: Path) -> None:
    name = '</script><script>alert(1)</script><!-- "\u202e'
    trace = write(tmp_path / "bad.json", [complete(name, "cpu_op", 0, 10)])
    html = report_html(trnscope.open(trace))
    assert html.count("<script") == len(BLOCK.findall(html)) + 1
    assert documents(html)["ops?by=name"]["ops"][0]["name"] == name


@pytest.mark.parametrize("filling", ["x", "<"], ids=["plain", "six bytes a character"])
def test_a_large_profile_is_cut_and_says_so(tmp_path: Path, filling: str) -> None:
    names = [f"op {number} {filling * 900}" for number in range(12_000)]
    events = [complete(name, "cpu_op", 10 * at, 5) for at, name in enumerate(names)]
    html = report_html(trnscope.open(write(tmp_path / "large.json", events)))
    assert len(html.encode()) <= MAX_BYTES
    found = documents(html)
    kept = len(found["ops?by=name"]["ops"])
    assert 0 < kept < 12_000
    assert found["about"]["left_out"]["ops"] == 12_000 - kept


def test_a_redacted_report_names_no_folder(tmp_path: Path) -> None:
    place = tmp_path / "secret project"
    place.mkdir()
    trace = place / "small.json"
    trace.write_text(SMALL.read_text("utf-8"), "utf-8")
    assert "secret" in report_html(trnscope.open(trace))
    html = report_html(trnscope.open(trace), redact=True)
    assert "secret" not in html and str(tmp_path) not in html
    assert documents(html)["about"]["redacted"] is True


def test_a_file_is_replaced_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    assert run(["report", str(SMALL), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"Report: {out} (0.0 MB)\n"
    before = out.read_text("utf-8")
    assert run(["report", str(SMALL), "--out", str(out)]) == 1
    assert "exists" in capsys.readouterr().err
    assert run(["report", str(SMALL), "--out", str(out), "--overwrite"]) == 0
    assert out.read_text("utf-8") == before
    capsys.readouterr()
    assert run(["report", str(SMALL), "--out", str(out), "--overwrite", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"schema": 1, "path": str(out), "size_bytes": out.stat().st_size}


def test_a_page_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page" / "index.html").write_text("<html></html>")
    with pytest.raises(UsageError, match="not as it was built"):
        report_html(trnscope.open(SMALL))
