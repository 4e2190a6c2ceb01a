"""Only this machine's browser, with the token, gets an answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

import trnscope
from tests.unit.chrome_json import complete, write
from tests.unit.explorer_server import PAGE_TEXT, Client, serving
from trnscope.errors import UsageError
from trnscope.server.guard import Access, Proxy, parse_proxy
from trnscope.server.serve import listen, require_page


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guard")
    trace = write(folder / "t.json", [complete("a", "cpu_op", 0, 10)])
    with serving(trnscope.open(trace), folder / "page") as started:
        yield started


def cookie_of(client: Client) -> str:
    answer = client.get(f"/?token={client.listening.access.token}", Authorization="")
    return answer.headers["Set-Cookie"].split(";")[0]


@pytest.mark.parametrize("path", ["/", "/api/about", "/api/timeline", "/index.html", "/none"])
def test_without_the_token_nothing_is_served(client, path):
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "", "Cookie": f"trnscope-{client.listening.port}=wrong"},
        {"Authorization": f"Basic {client.listening.access.token}"},
    ):
        answer = client.get(path, **headers)
        assert answer.status == 403
        assert b"token" in answer.body
        assert PAGE_TEXT.encode() not in answer.body
        assert answer.headers["Set-Cookie"] is None
    assert client.get(f"{path}?token=wrong", Authorization="").status == 403


def test_the_token_in_the_address_is_swapped_for_a_cookie(client):
    access = client.listening.access
    answer = client.get(f"/?token={access.token}&x=1", Authorization="")
    assert answer.status == 303
    assert answer.headers["Location"] == "./?x=1"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{access.cookie}={access.session};")
    assert access.token not in cookie and len(access.session) >= 43
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    page = client.get("/", Authorization="", Cookie=cookie.split(";")[0])
    assert (page.status, page.body.decode()) == (200, PAGE_TEXT)
    assert str(client.listening.port) in access.cookie


def test_the_cookie_and_the_token_do_not_stand_for_each_other(client):
    access = client.listening.access
    as_cookie = {"Authorization": "", "Cookie": f"{access.cookie}={access.token}"}
    assert client.get("/api/about", **as_cookie).status == 403
    assert client.get("/api/about", Authorization=f"Bearer {access.session}").status == 403
    assert client.get(f"/?token={access.session}", Authorization="").status == 403
    assert Access("token", "c").session != Access("token", "c").session


def test_a_fault_is_answered_with_every_header(client, monkeypatch):
    def fail(*_arguments):
        raise OverflowError("Python int too large")

    monkeypatch.setattr("trnscope.opened.OpenedProfile.window", fail)
    answer = client.get("/api/window?start=1&end=2")
    usual = client.get("/api/about")
    assert answer.status == 500
    assert "itself failed" in answer.problem and "Python" not in answer.problem
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
                 "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"):  # fmt: skip
        assert answer.headers[name] == usual.headers[name] is not None


@pytest.mark.parametrize("number", [10**30, -(10**30), 1 << 62])
@pytest.mark.parametrize("path", ["window?start=0&end=", "timeline?px=9&lanes=0&start=0&end=",
                                  "timeline?start=0&end=9&lanes=0&px="])  # fmt: skip
def test_a_number_that_is_no_time_is_refused(client, path, number):
    answer = client.get(f"/api/{path}{number}")
    assert answer.status == 400
    assert "too large" in answer.problem


@pytest.mark.parametrize("path", ["slice/0/" + "9" * 30, "slice/" + "9" * 30 + "/0",
                                  "timeline?start=0&end=9&px=9&lanes=" + "9" * 30,
                                  "timeline?start=0&end=9&px=9&lanes=-" + "9" * 30])  # fmt: skip
def test_a_number_that_is_no_place_is_no_fault(client, path):
    assert client.get(f"/api/{path}").status in (400, 404)


def test_the_swap_cannot_lead_to_another_host(client):
    answer = client.get(f"//evil.example/x?token={client.listening.access.token}")
    assert answer.headers["Location"] == "./x"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8417", "127.0.0.1.evil.com", ""])
def test_other_host_names_are_refused_even_with_the_token(client, host):
    connection = socket.create_connection(("127.0.0.1", client.listening.port))
    token = client.listening.access.token
    request = f"GET /api/about HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    with connection:
        connection.sendall(request.encode())
        status = connection.makefile("rb").readline()
    assert b" 403 " in status


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1:1", "[::1]:80"])
def test_this_machine_through_any_tunnel_is_answered(client, host):
    assert client.get("/api/about", Host=host, Cookie=cookie_of(client)).status == 200


def test_every_answer_forbids_what_the_page_does_not_need(client):
    for path, headers in (("/", {}), ("/api/about", {}), ("/", {"Authorization": ""})):
        answer = client.get(path, Origin="http://evil.example", **headers)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Access-Control-Allow-Origin"] is None
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(client, method):
    assert client.get("/api/about", method=method).status == 405


@pytest.mark.parametrize("path", ["/../guard.py", "/%2e%2e/t.json", "/..%2ft.json", "/etc/passwd"])
def test_only_the_page_is_served_from_disk(client, path):
    answer = client.get(path)
    assert answer.status == 404
    assert b"nothing under this address" in answer.body


def test_tokens_differ_and_are_long():
    one, other = listen(0), listen(0)
    with one.socket, other.socket:
        assert one.access.token != other.access.token
        assert len(one.access.token) >= 43
        assert one.url == f"http://127.0.0.1:{one.port}/?token={one.access.token}"


def test_a_token_that_is_no_ascii_is_only_wrong():
    assert not Access("secret", "c").allows("sécret\udcff".encode("utf-8", "replace").decode())
    assert not Access("secret", "c").allows(None)


def test_a_port_that_is_taken_is_named():
    taken = listen(0)
    with taken.socket, pytest.raises(UsageError, match=f"port {taken.port} is taken"):
        listen(taken.port)


def test_a_page_that_was_not_built_is_named_with_what_to_do(tmp_path: Path):
    with pytest.raises(UsageError, match=r"not built; install Node\.js"):
        require_page(tmp_path)


HUB = "https://hub.example.org/user/ada/proxy/8417/"


def test_a_proxy_with_and_without_its_path(tmp_path):
    trace = write(tmp_path / "t.json", [complete("a", "cpu_op", 0, 10)])
    with serving(trnscope.open(trace), tmp_path / "page", parse_proxy(HUB)) as client:
        assert client.listening.url == f"{HUB}?token={client.listening.access.token}"
        for path in ("/api/about", "/user/ada/proxy/8417/api/about"):
            answer = client.get(path, Host="hub.example.org")
            assert (answer.status, answer.document["num_events"]) == (200, 1)
        page = client.get("/user/ada/proxy/8417", Host="hub.example.org")
        assert (page.status, page.body.decode()) == (200, PAGE_TEXT)
        assert client.get("/api/about", Host="elsewhere.example.org").status == 403
        assert client.get("/user/ada/proxy/84170/api/about", Host="hub.example.org").status == 404
        token = client.listening.access.token
        answer = client.get(
            f"/user/ada/proxy/8417/?token={token}", Host="hub.example.org", Authorization=""
        )
        assert (answer.status, answer.headers["Location"]) == (303, "./")
        cookie = answer.headers["Set-Cookie"]
        assert "Path=/user/ada/proxy/8417/" in cookie and "Secure" in cookie


@pytest.mark.parametrize(
    "address",
    [
        "hub",
        "ftp://hub/x",
        "https:///x",
        "https://hub/?a=1",
        "https://hub/#a",
        "https://[::1",
        "https://hub:99999/",
    ],
)
def test_an_address_that_is_no_proxys_is_refused(address):
    with pytest.raises(UsageError, match="not the address of a proxy"):
        parse_proxy(address)


def test_the_parts_of_a_proxys_address():
    assert parse_proxy("http://Hub:8000") == Proxy("http://Hub:8000", "hub", "")
    assert parse_proxy("https://[::2]:9/x/") == Proxy("https://[::2]:9", "[::2]", "/x")
