"""Runs the server: finds a port, says where it is, and stops when told to."""

from __future__ import annotations

import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.opened import OpenedProfile
from trnscope.server.guard import Access, Proxy

USUAL_PORT = 8417
PAGE = Path(__file__).parent / "static"
_ADDRESS = "127.0.0.1"
_PATIENCE_SECONDS = 1
"""How long Ctrl+C waits for answers that are being computed."""


@dataclass(frozen=True)
class Listening:
    """A bound socket, and who may talk to it."""

    socket: socket.socket
    access: Access

    @property
    def port(self) -> int:
        """The port that was found."""
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The address of the page, token included."""
        proxy = self.access.proxy
        base = f"http://{_ADDRESS}:{self.port}" if proxy is None else proxy.origin + proxy.prefix
        return f"{base}/?token={self.access.token}"


def require_page(page: Path = PAGE) -> Path:
    """The folder of the built page; raises :class:`UsageError` where it was not built."""
    if not (page / "index.html").is_file():
        raise UsageError(
            "the Explorer's page was not built",
            "install Node.js 20.19 or newer and run make install in trnscope's sources",
        )
    return page


def listen(port: int | None = None, proxy: Proxy | None = None) -> Listening:
    """Bind ``port``, or the usual one, or if that is taken any; on this machine only.

    A ``proxy`` on this machine may hand requests on.
    """
    wanted = [port] if port is not None else [USUAL_PORT, 0]
    for candidate in wanted:
        bound = _bind(candidate)
        if bound is not None:
            cookie = f"trnscope-{bound.getsockname()[1]}"
            return Listening(bound, Access(secrets.token_urlsafe(32), cookie, proxy=proxy))
    raise UsageError(f"port {port} is taken", "name another one, or leave --port away")


def serve(profile: OpenedProfile, listening: Listening, ready: Callable[[], None]) -> None:
    """Serve until interrupted; ``ready`` is called once requests will be answered.

    A thread may still be computing an answer when this returns; nobody waits for it.
    """
    import uvicorn

    from trnscope.server.app import make_app

    app = make_app(profile, listening.access, require_page())
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_PATIENCE_SECONDS,
    )
    server = uvicorn.Server(config)
    # What is given up on the way out is no error.
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
    ready()
    try:
        server.run(sockets=[listening.socket])
    except KeyboardInterrupt:
        # The usual way to stop it; not a failure.
        return


def _bind(port: int) -> socket.socket | None:
    """A listening socket; null where the port is taken or not allowed."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((_ADDRESS, port))
        bound.listen()
    except OSError:
        bound.close()
        return None
    return bound
