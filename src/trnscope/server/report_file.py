"""The Explorer's page as one file that opens from disk: its documents lie inside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.opened import OpenedProfile
from trnscope.report.bounded import Json, bounded
from trnscope.report.document import to_json_text
from trnscope.report.redact import names_of_this_machine, redacted
from trnscope.server.answers import Answers
from trnscope.server.serve import require_page

MAX_BYTES = 5_000_000
_FOR_DOCUMENTS = 4_600_000
"""Bytes of them in the file; the rest is the page itself."""
_MOST_ROWS = 20_000
_DOCUMENTS = (
    ("about", "about", ""),
    ("sentence", "sentence", ""),
    ("explain", "explain", ""),
    ("summary", "summary", ""),
    ("breakdown", "breakdown", ""),
    ("ops?by=name", "ops", "name"),
    ("kernels?by=name", "kernels", "name"),
    ("memory", "memory", ""),
    ("roofline", "roofline", ""),
)
"""Address on the page, question, grouping."""
_SCRIPT = re.compile(r'<script [^>]*src="\./(?P<file>[^"]+)"[^>]*></script>')
_STYLE = re.compile(r'<link rel="stylesheet"[^>]*href="\./(?P<file>[^"]+)"[^>]*>')
_ICON = re.compile(r'<link rel="icon"[^>]*>')
_PICTURE = re.compile(r"""url\(["']?(?:\.\.?/)*(?P<file>[\w.-]+\.svg)["']?\)""")


def report_html(profile: OpenedProfile, *, redact: bool = False) -> str:
    """The file's text, at most 5 MB of it.

    Raises :class:`UsageError` where the page was not built, or where not even one row of each
    list would fit.
    """
    documents = _fitting(_documents(profile, redact=redact))
    blocks = [
        f'<script type="application/json" data-document="{path}">{text}</script>'
        for path, text in documents.items()
    ]
    return _page(require_page(), "\n".join(blocks))


def _documents(profile: OpenedProfile, *, redact: bool) -> dict[str, Json]:
    answers = Answers(profile)
    found = {path: _answer(answers, question, by) for path, question, by in _DOCUMENTS}
    found["about"]["redacted"] = redact
    if redact:
        names = names_of_this_machine()
        folders = [str(Path(trace.source.path).parent) for trace in profile.traces]
        found = {path: redacted(document, names, folders) for path, document in found.items()}
    return found


def _answer(answers: Answers, question: str, by: str) -> Json:
    """The document, or why the profile has none."""
    try:
        document: Json = json.loads(answers.text(question, by))
    except UsageError as error:
        return {"error": {"message": error.message, "hint": error.hint}}
    return document


def _fitting(documents: dict[str, Json]) -> dict[str, str]:
    """The documents as they stand in the file, lists cut until all of them fit together."""
    rows = _MOST_ROWS
    while True:
        cut = {path: bounded(document, rows) for path, document in documents.items()}
        left_out = {path: one["left_out"] for path, one in cut.items() if "left_out" in one}
        cut["about"] = {**documents["about"], "left_out": _total(left_out)}
        texts = {path: _harmless(to_json_text(one, indent=None)) for path, one in cut.items()}
        if sum(map(len, texts.values())) <= _FOR_DOCUMENTS:
            return texts
        if rows == 1:
            raise UsageError("the report would be larger than 5 MB even with one row of each list")
        rows //= 2


def _total(left_out: dict[str, dict[str, int]]) -> dict[str, int]:
    """Rows that are missing, by document."""
    return {path.split("?")[0]: sum(rows.values()) for path, rows in left_out.items()}


def _harmless(text: str) -> str:
    """ASCII JSON that ends no script and opens no comment."""
    return text.replace("<", "\\u003c")


def _page(folder: Path, blocks: str) -> str:
    """The built page with its script, its style and the documents inside."""
    html = (folder / "index.html").read_text("utf-8")
    script = _read(folder, _SCRIPT, html).replace("</script", "<\\/script")
    style = _PICTURE.sub(
        lambda found: f'url("{_data_address(folder / found["file"])}")',
        _read(folder, _STYLE, html),
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    html = _ICON.sub(
        f'<meta http-equiv="Content-Security-Policy" content="{policy}" />\n'
        '    <link rel="icon" href="data:," />',
        html,
    )
    html = _STYLE.sub(lambda _: f"<style>{style}</style>", html)
    html = _SCRIPT.sub("", html)
    # Last in the body: a script of a type that modules have would have to wait for the documents.
    tail = f'{blocks}\n<script type="module">{script}</script>\n</body>'
    return html.replace("</body>", tail)


def _data_address(picture: Path) -> str:
    """An SVG file as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _read(folder: Path, link: re.Pattern[str], html: str) -> str:
    found = link.search(html)
    if found is None:
        raise UsageError("the Explorer's page is not as it was built", "run make install again")
    return (folder / found["file"]).read_text("utf-8")
