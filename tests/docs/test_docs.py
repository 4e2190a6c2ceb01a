"""The documentation is complete, its links lead somewhere, and its examples run as printed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import make_docs, make_example_trace
from tools.python_reference import python_reference
from trnscope.advisor.registry import RULES
from trnscope.cli.app import app
from trnscope.cli.main import run
from trnscope.opened import OpenedProfile
from trnscope.report.rules import rules_markdown

REPO = make_docs.REPO
DOCS = make_docs.DOCS
HAND_WRITTEN = make_docs.pages()
ALL_PAGES = sorted(
    {*HAND_WRITTEN, make_docs.REFERENCE, make_docs.PYTHON, make_docs.RULES_PAGE, *REPO.glob("*.md")}
)
COMMANDS = [command.callback.__name__ for command in app.registered_commands if command.callback]

_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program_of(page: Path) -> str:
    """The Python of a page, as one program."""
    return "\n".join(_PYTHON.findall(page.read_text(encoding="utf-8")))


WITH_COMMANDS = [
    page for page in HAND_WRITTEN if make_docs.commands_in(page.read_text(encoding="utf-8"))
]
WITH_PROGRAMS = [page for page in HAND_WRITTEN if "docs/examples/" in program_of(page)]


def name_of(page: Path) -> str:
    return str(page.relative_to(REPO))


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return make_docs.example_folder(tmp_path)


def test_the_command_line_reference_is_up_to_date() -> None:
    assert make_docs.REFERENCE.read_text(encoding="utf-8") == make_docs.reference()


def test_the_python_reference_is_up_to_date_and_names_everything() -> None:
    page = make_docs.PYTHON.read_text(encoding="utf-8")
    assert page == python_reference()
    for name in vars(OpenedProfile):
        if not name.startswith("_"):
            assert f"\n### .{name}\n" in page
    assert "\n### OpRow\n" in page
    assert "| `self_device_ns` | `int \\| None` |" in page


def test_the_manual_of_the_rules_is_up_to_date() -> None:
    page = make_docs.RULES_PAGE.read_text(encoding="utf-8")
    assert page == rules_markdown(RULES)
    assert all(f"### {rule.code} {rule.name}" in page for rule in RULES)


def test_the_example_traces_are_up_to_date() -> None:
    text = make_example_trace.small_trace()
    assert (DOCS / "examples" / "small.json").read_text(encoding="utf-8") == text
    assert text.startswith((DOCS / "examples" / "cut.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "folder"), [(make_docs.CONCEPTS, "metrics"), (make_docs.INDEX, "howto")]
)
def test_lists_of_pages_are_up_to_date(page: Path, folder: str) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == make_docs.with_lists(text)
    assert text.count(f"]({folder}/") == len(list((DOCS / folder).glob("*.md")))


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_examples_print_what_the_page_says(page: Path, examples: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert make_docs.with_fresh_output(text, examples) == text
    assert "trnscope: error" not in text


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=name_of)
def test_python_examples_run(page: Path, examples: Path) -> None:
    program = program_of(page)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=examples, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{name_of(page)} links to {target}"


def test_every_setting_is_documented() -> None:
    sources = "\n".join(path.read_text() for path in (REPO / "src" / "trnscope").rglob("*.py"))
    settings = set(re.findall(r'"(TRNSCOPE_[A-Z_]+)"', sources))
    documented = set(
        re.findall(r"`(TRNSCOPE_[A-Z_]+)`", (DOCS / "reference/settings.md").read_text())
    )
    assert len(settings) >= 5
    assert documented == settings


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_shown_in_a_page(command: str) -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in HAND_WRITTEN)
    assert f"trnscope {command}" in pages


def members_of(document: Any) -> set[str]:
    """Every member's name, anywhere in a document."""
    if isinstance(document, list):
        return set().union(*map(members_of, document)) if document else set()
    if not isinstance(document, dict):
        return set()
    return set(document).union(*map(members_of, document.values()))


@pytest.mark.parametrize("trace", ["small.json", "cut.json"])
@pytest.mark.parametrize(
    "command",
    [
        "explain",
        "summary",
        "breakdown",
        "steps",
        "ops",
        "kernels",
        "overlap",
        "launch",
        "memory",
        "roofline",
        "health",
    ],
)
def test_every_member_of_a_document_is_explained(
    command: str, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, str(DOCS / "examples" / trace), "--json"]) == 0
    members = members_of(json.loads(capsys.readouterr().out))
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    assert {member for member in members if f"`{member}`" not in page} == set()
    assert f"\n## {command}\n" in page


def test_sources_name_only_pages_that_exist() -> None:
    for source in (REPO / "src").rglob("*.py"):
        for page in re.findall(r"docs/[\w/.-]+\.md", source.read_text(encoding="utf-8")):
            assert (REPO / page).is_file(), f"{name_of(source)} names {page}"


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("*.md")), ids=name_of)
def test_decisions_have_their_parts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(r"# \d{4}: \S", text)
    assert text.startswith(f"# {page.name[:4]}: ")
    for part in ("**Status**", "**Problem.**", "**Decision.**", "**Alternatives.**"):
        assert part in text
