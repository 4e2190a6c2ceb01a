"""Starts the Explorer's server on a profile and asks it, over HTTP as a browser does."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from trnscope.opened import OpenedProfile
from trnscope.server.app import make_app
from trnscope.server.guard import Proxy
from trnscope.server.serve import Listening, listen

PAGE_TEXT = "<!doctype html><title>page</title>"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """The message of an error."""
        return str(self.document["error"]["message"])


@dataclass(frozen=True)
class Client:
    """Asks one server, with its token unless the headers say otherwise."""

    listening: Listening

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """One request; an empty header is left out."""
        given = {"Authorization": f"Bearer {self.listening.access.token}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.listening.port, timeout=30)
        try:
            connection.request(method, path, headers={k: v for k, v in given.items() if v})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


@contextmanager
def serving(profile: OpenedProfile, page: Path, proxy: Proxy | None = None) -> Iterator[Client]:
    """A running server; ``page`` becomes a folder with a small page where there is none."""
    page.mkdir(exist_ok=True)
    if not (page / "index.html").exists():
        (page / "index.html").write_text(PAGE_TEXT)
    listening = listen(0, proxy)
    app = make_app(profile, listening.access, page)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening.socket]})
    thread.start()
    try:
        yield Client(listening)
    finally:
        server.should_exit = True
        thread.join()
