"""What the server says when it cannot answer: a page for people, a document for the program."""

from __future__ import annotations

from html import escape

from starlette.responses import HTMLResponse, Response

from trnscope.report.document import to_json_text

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>trnscope</title>
<h1>{title}</h1><p>{hint}</p></html>
"""


def json_response(document: object, status: int = 200) -> Response:
    """A document as the command line prints it, never kept by the browser."""
    return json_text(to_json_text(document, indent=None), status)


def json_text(text: str, status: int = 200) -> Response:
    """A document that is text already."""
    headers = {"Cache-Control": "no-store"}
    return Response(text, status, headers, media_type="application/json")


def problem(path: str, status: int, message: str, hint: str | None) -> Response:
    """Why there is no answer, and what to do."""
    if path.startswith("/api/"):
        return json_response({"error": {"message": message, "hint": hint}}, status)
    page = _PAGE.format(title=escape(message), hint=escape(hint or ""))
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


def refusal(path: str, message: str, hint: str) -> Response:
    """A request that may not be answered."""
    return problem(path, 403, message, hint)
