"""Who may talk to the server: this machine's browser, with the token, and nobody else.

The rules are those of Jupyter: the address that is printed holds a token; the first request
swaps it for a cookie that scripts cannot read and other sites cannot send. Its value is a random
one of this run of the server and does not tell the token. Requests under a host name that is not
this machine's are refused, which stops DNS rebinding.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trnscope.errors import UsageError
from trnscope.server.pages import refusal

LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class Proxy:
    """The address under which a proxy, such as a notebook hub's, hands requests to the server."""

    origin: str
    """Scheme, host and port: ``https://hub.example.org``."""
    host: str
    prefix: str
    """The path before the page's own, without a slash at its end; empty: none."""


def parse_proxy(address: str) -> Proxy:
    """The parts of the address; raises :class:`UsageError` for one that is none."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise UsageError(
            f"{address}: is not the address of a proxy",
            "such as https://hub.example.org/user/me/proxy/8417/",
        )
    named = f"[{host}]" if ":" in host else host
    return Proxy(f"{parts.scheme}://{parts.netloc}", named, parts.path.rstrip("/"))


@dataclass(frozen=True)
class Access:
    """What a request must show."""

    token: str
    cookie: str
    """Name of the cookie; it holds the port, so that two servers do not overwrite each other."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """What the cookie holds for those who showed the token."""
    proxy: Proxy | None = None
    """Whose requests are answered as well."""

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that a request may name."""
        return LOCAL_HOSTS if self.proxy is None else LOCAL_HOSTS | {self.proxy.host}

    def allows(self, given: str | None) -> bool:
        """Whether this is the token; takes equally long for every wrong one."""
        return _is_same(given, self.token)

    def knows(self, cookie: str | None) -> bool:
        """Whether this is the cookie of one who showed the token."""
        return _is_same(cookie, self.session)


class Guard:
    """Middleware: lets through only requests that show the token, and marks every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        scope = self._without_prefix(scope)
        answer = self._check(scope)
        await (answer or self._app)(scope, receive, send_marked)

    def _without_prefix(self, scope: Scope) -> Scope:
        """The request as the page's own; some proxies take their path off, some leave it on."""
        prefix = self._access.proxy.prefix if self._access.proxy is not None else ""
        path = scope["path"]
        if not prefix or not (path == prefix or path.startswith(f"{prefix}/")):
            return scope
        return {**scope, "path": path[len(prefix) :] or "/", "raw_path": None}

    def _check(self, scope: Scope) -> Response | None:
        """The answer that ends the request here; null lets it through."""
        headers = Headers(scope=scope)
        if _host_of(headers.get("host", "")) not in self._access.hosts:
            return refusal(
                scope["path"],
                "This host name is not this machine's.",
                "Open the address that trnscope printed; through a tunnel, use localhost; behind "
                "a proxy, start it with --proxy.",
            )
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if self._access.allows(query.pop("token", None)):
            return self._swap_token(scope["path"], query)
        cookies = cookie_parser(headers.get("cookie", ""))
        if self._access.knows(cookies.get(self._access.cookie)):
            return None
        if self._access.allows(_bearer_of(headers)):
            return None
        return refusal(
            scope["path"],
            "This page needs the token of the server that is running now.",
            "Copy the whole address that trnscope open printed, or start it again.",
        )

    def _swap_token(self, path: str, query: dict[str, str]) -> Response:
        """Send the browser to the same page without the token in its address."""
        rest = f"?{urlencode(query)}" if query else ""
        # Relative, so that a path such as //elsewhere cannot lead to another host.
        answer = RedirectResponse(f"./{path.rsplit('/', 1)[-1]}{rest}", status_code=303)
        access, proxy = self._access, self._access.proxy
        answer.set_cookie(
            access.cookie,
            access.session,
            path=f"{proxy.prefix}/" if proxy is not None else "/",
            secure=proxy is not None and proxy.origin.startswith("https:"),
            httponly=True,
            samesite="strict",
        )
        return answer


def _host_of(header: str) -> str:
    """A Host header without its port: through a tunnel the port is another one."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdigit() else header).lower()


def _bearer_of(headers: Headers) -> str | None:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer if scheme.lower() == "bearer" else None


def _is_same(given: str | None, secret: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode(), secret.encode())
