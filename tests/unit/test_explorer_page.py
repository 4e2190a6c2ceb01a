"""What the Explorer's page is made of: pinned packages, a small bundle, no address of others."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from trnscope.server.serve import PAGE

EXPLORER = Path(__file__).resolve().parents[2] / "explorer"
BUDGET_BYTES = 100_000


def test_packages_are_pinned_and_the_lock_names_no_registry():
    package = json.loads((EXPLORER / "package.json").read_text())
    lock = json.loads((EXPLORER / "package-lock.json").read_text())
    wanted = package["dependencies"] | package["devDependencies"]
    for name, version in wanted.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert not any("resolved" in entry for entry in lock["packages"].values())
    assert wanted["@uwdata/flechette"] == "2.3.0"


@pytest.fixture
def built() -> Path:
    if not (PAGE / "index.html").is_file():
        pytest.skip("needs the Explorer's page, which make install builds where Node.js is")
    return PAGE


def test_the_scripts_keep_their_budget(built):
    scripts = list(built.rglob("*.js"))
    assert scripts
    assert sum(len(gzip.compress(path.read_bytes())) for path in scripts) <= BUDGET_BYTES


def test_the_page_asks_nobody_else(built):
    page = (built / "index.html").read_text()
    assert re.findall(r'(?:src|href)="(?!\./)[^"]*"', page) == []
    assert "<script>" not in page and "style=" not in page
    for style in built.rglob("*.css"):
        assert re.findall(r"url\((?!\.\./|\./|data:)[^)]*\)", style.read_text()) == []
