"""The addresses that the page asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from trnscope.analysis.kernels import KernelsBy
from trnscope.analysis.op_groups import GroupBy
from trnscope.analysis.time_axis import time_axis
from trnscope.errors import TrnscopeError, UsageError
from trnscope.opened import OpenedProfile
from trnscope.server.answers import Answers
from trnscope.server.guard import Access, Guard
from trnscope.server.pages import json_response, json_text, problem
from trnscope.server.query import first_rows
from trnscope.server.search import Searcher
from trnscope.server.slices import SliceFinder
from trnscope.server.tracks import tracks
from trnscope.server.viewport import MAX_LANES, Viewports

MAX_TIME_NS = (1 << 62) - 1
"""Times in an address; what a trace holds is smaller."""
ARROW = "application/vnd.apache.arrow.stream"
WINDOW_ROWS = 500
SQL_ROWS = 1000
MAX_QUERY = 20_000
MAX_EVIDENCE = 500
"""Slices of one finding that are drawn; the longest come first."""
_GROUPINGS = {
    "ops": [each.value for each in GroupBy],
    "kernels": [each.value for each in KernelsBy],
}


def make_app(profile: OpenedProfile, access: Access, page: Path) -> ASGIApp:
    """The application that shows one profile; ``page`` is the folder of the built page."""
    handlers = _Handlers(profile)
    questions = (
        "about",
        "sentence",
        "explain",
        "summary",
        "breakdown",
        "steps",
        "health",
        "ops",
        "kernels",
        "memory",
        "roofline",
    )
    routes = [Route(f"/api/{name}", handlers.answer(name)) for name in questions]
    routes += [
        Route("/api/tracks", handlers.tracks),
        Route("/api/evidence", handlers.evidence),
        Route("/api/timeline", handlers.timeline),
        Route("/api/search", handlers.search),
        Route("/api/slice/{source:int}/{slice:int}", handlers.slice),
        Route("/api/window", handlers.window),
        Route("/api/sql", handlers.sql),
    ]
    app = Starlette(
        routes=[*routes, Mount("/", StaticFiles(directory=page, html=True))],
        exception_handlers={
            TrnscopeError: _user_error,
            HTTPException: _http_error,
            Exception: _fault,
        },
    )
    # Around the application, not as a middleware of it: faults are answered outside of those.
    return Guard(app, access)


class _Handlers:
    """One method an address. They run in threads, so a long one keeps nobody waiting."""

    def __init__(self, profile: OpenedProfile) -> None:
        self._profile = profile
        self._axis = time_axis(profile)
        self._answers = Answers(profile)
        self._viewports = Viewports(profile, self._axis)
        self._finder = SliceFinder(profile, self._axis)
        self._searcher = Searcher(profile, self._axis, self._finder)

    def answer(self, question: str) -> Callable[[Request], Response]:
        """The handler of one question of the command line."""
        allowed = _GROUPINGS.get(question, [])

        def handle(request: Request) -> Response:
            by = request.query_params.get("by", "")
            if by and by not in allowed:
                raise UsageError(f"{question} cannot be grouped by {by}")
            answer = json_text(self._answers.text(question, by))
            self._release_pages()
            return answer

        return handle

    def tracks(self, _request: Request) -> Response:
        """The frame of the timeline."""
        return json_response(tracks(self._profile, self._axis).to_json())

    def timeline(self, request: Request) -> Response:
        """What to draw, as an Arrow stream."""
        start_ns, end_ns = _ints(request, "start", "end")
        (num_px,) = _ints(request, "px")
        lanes = _lanes(request.query_params.get("lanes", ""))
        body = self._viewports.query(lanes, start_ns, end_ns, num_px)
        return Response(body, headers={"Cache-Control": "no-store"}, media_type=ARROW)

    def evidence(self, _request: Request) -> Response:
        """Where the evidence of each finding is, in the order of the findings."""
        self._answers.text("explain")
        findings = [
            [
                self._finder.ref(finding.trace, slice_id).to_json()
                for slice_id in finding.evidence[:MAX_EVIDENCE]
            ]
            for finding in self._answers.explanation.findings
        ]
        return json_response({"schema": 1, "findings": findings})

    def search(self, request: Request) -> Response:
        """Slices by name."""
        found = self._searcher.search(request.query_params.get("q", ""))
        self._release_pages()
        return json_response(found.to_json())

    def slice(self, request: Request) -> Response:
        """All about one slice."""
        at = request.path_params
        return json_response(self._finder.details(at["source"], at["slice"]).to_json())

    def window(self, request: Request) -> Response:
        """Statistics of a range."""
        start_ns, end_ns = _ints(request, "start", "end")
        if end_ns <= start_ns:
            raise UsageError("a range ends after it starts")
        found = self._profile.window(start_ns, end_ns)
        self._release_pages()
        return json_response(found.to_json(WINDOW_ROWS))

    def sql(self, request: Request) -> Response:
        """The rows of one query."""
        text = request.query_params.get("q", "")
        if len(text) > MAX_QUERY:
            raise UsageError(f"a query has up to {MAX_QUERY:,} characters")
        found = first_rows(self._profile, text, SQL_ROWS)
        self._release_pages()
        return json_response(found.to_json())

    def _release_pages(self) -> None:
        """Keep the server small after it read many slices."""
        for trace in self._profile.traces:
            trace.release_pages()


def _ints(request: Request, *names: str) -> list[int]:
    try:
        numbers = [int(request.query_params[name]) for name in names]
    except (KeyError, ValueError):
        raise UsageError(f"the address needs whole numbers for {' and '.join(names)}") from None
    if any(abs(number) > MAX_TIME_NS for number in numbers):
        raise UsageError(f"a number in the address is too large: up to {MAX_TIME_NS} is a time")
    return numbers


def _lanes(text: str) -> list[int]:
    """``0-20,45`` as numbers."""
    lanes: list[int] = []
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            low, high = int(first), int(last or first)
            if high - low >= MAX_LANES or len(lanes) > MAX_LANES:
                raise UsageError(f"a viewport has up to {MAX_LANES} lanes")
            lanes += range(low, high + 1)
    except ValueError:
        raise UsageError("lanes are numbers and ranges, such as 0-20,45") from None
    return lanes


def _user_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, TrnscopeError)
    return problem(request.url.path, 400, error.message, error.hint)


def _fault(request: Request, _error: Exception) -> Response:
    message = "trnscope itself failed to answer this; the terminal that it runs in says how."
    return problem(request.url.path, 500, message, "Go back, or ask for something else.")


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    texts = {404: "There is nothing under this address.", 405: "This server only answers GET."}
    message = texts.get(error.status_code, error.detail)
    return problem(request.url.path, error.status_code, message, "Go back to the first page.")
