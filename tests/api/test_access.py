"""Who is let in, and who is not: each way that others' gateways were opened."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest
import requests

from bullpen.core.access.audit import list_audit_entries
from bullpen.core.access.keys import Scope, add_key, revoke_key
from bullpen.core.access.owner import ensure_token
from bullpen.core.errors import UnsafeSecret
from bullpen.core.network import listen_addresses
from bullpen.core.store.base import Store
from tests.api.served import LIMIT, Served, serving
from tests.cli.command import Bullpen
from tests.ports import free_port
from tests.stores import Stores

MESSAGE = {"message": "hello"}
PAGE = "http://evil.example"


def test_without_a_token_nothing_is_answered(served: Served) -> None:
    assert served.refused("GET", "/api/messages", token="") == (401, "no_access")
    response = served.ask("GET", "/api/messages", token="")
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "given",
    ["Bearer wrong", "Bearer ", "Basic YTpi", "Bearer " + "x" * 5000, "bp_x", "Bearer \xe9\xff"],
)
def test_a_wrong_token_opens_nothing(served: Served, given: str) -> None:
    response = served.ask(
        "GET", "/api/messages", token="", headers={"Authorization": given.encode("latin-1")}
    )
    assert response.status_code in (401, 429)
    assert "wrong" not in response.text


def test_a_revoked_key_is_refused_on_the_very_next_request(served: Served, inside: Store) -> None:
    secret = served.key(Scope.READ)
    served.get("/api/messages", token=secret)
    key = served.get("/api/me", token=secret)["id"]
    with inside.write() as tx:
        revoke_key(tx, key)
    assert served.ask("GET", "/api/messages", token=secret).status_code in (401, 429)


def test_a_key_that_expired_is_refused(served: Served, inside: Store) -> None:
    with inside.write() as tx:
        _, secret = add_key(tx, "short", [Scope.READ], expires_at=tx.now + 1)
    while inside.clock.now() < tx.now + 2:
        time.sleep(0.001)
    assert served.ask("GET", "/api/messages", token=secret).status_code in (401, 429)


def test_a_replaced_token_is_refused_on_the_very_next_request(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with serving(settings) as served:
        served.get("/api/me")
        settings.token_file.unlink()
        new = ensure_token(settings)
        assert served.refused("GET", "/api/me") == (401, "no_access")
        assert served.get("/api/me", token=new)["id"] == "owner"


@pytest.mark.parametrize(
    ("scope", "method", "path", "body"),
    [
        (Scope.READ, "POST", "/api/message", MESSAGE),
        (Scope.PUBLISH, "GET", "/api/messages", None),
        (Scope.CLAIM, "POST", "/api/message", MESSAGE),
        (Scope.PUBLISH, "POST", "/api/messages/x/cancel", {}),
        (Scope.APPROVE, "POST", "/api/login-links", None),
    ],
)
def test_a_scope_too_small_is_refused(
    served: Served, scope: Scope, method: str, path: str, body: object
) -> None:
    refused = served.refused(method, path, body, token=served.key(scope))
    assert refused == (403, "scope_too_small")


def test_scopes_are_not_declared_by_who_asks(served: Served) -> None:
    headers = {"X-Scopes": "admin", "X-Forwarded-User": "owner", "X-Forwarded-For": "127.0.0.1"}
    key = served.key(Scope.READ)
    refused = served.refused("POST", "/api/message", MESSAGE, token=key, headers=headers)
    assert refused == (403, "scope_too_small")


def test_a_key_reaches_its_own_agents_only(served: Served) -> None:
    mine = served.key(Scope.ADMIN, agents=("coder",))
    sent = served.post("/api/message", {"message": "@coder hello"}, token=mine)
    other = served.post("/api/message", {"message": "@worker hello"})["messageId"]
    served.get(f"/api/messages/{sent['messageId']}", token=mine)
    out = (403, "out_of_reach")
    assert served.refused("GET", f"/api/messages/{other}", token=mine) == out
    assert served.refused("POST", f"/api/messages/{other}/cancel", {}, token=mine) == out
    assert served.get(f"/api/messages/{other}")["status"] == "pending"
    for text in ("@worker hi", "[@coder: a] [@worker: b]", "[#dev: all]", "to the default"):
        assert served.refused("POST", "/api/message", {"message": text}, token=mine) == out
    assert [each["message"] for each in served.get("/api/messages?agent=worker")] == ["hello"]


@pytest.mark.parametrize("origin", [PAGE, "null", "http://127.0.0.1:1", "http://localhost.evil"])
@pytest.mark.parametrize("path", ["/api/message", "/api/messages", "/healthz", "/login?code=x"])
def test_a_page_of_another_site_is_refused(served: Served, origin: str, path: str) -> None:
    method = "POST" if path == "/api/message" else "GET"
    body = MESSAGE if method == "POST" else None
    headers = {"Origin": origin}
    assert served.refused(method, path, body, headers=headers) == (403, "foreign_page")
    asked = served.ask("OPTIONS", path, headers={**headers, "Access-Control-Request-Method": "PUT"})
    assert asked.status_code == 403
    assert "Access-Control-Allow-Origin" not in asked.headers


def test_a_page_that_sends_no_origin_is_told_by_the_browser(served: Served) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert served.refused("GET", "/api/messages", headers=headers) == (403, "foreign_page")


def test_a_page_on_another_port_of_this_machine_is_refused(served: Served) -> None:
    for mode in ("no-cors", "cors", "websocket", "same-origin"):
        headers = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": mode}
        assert served.refused("GET", "/api/messages", headers=headers) == (403, "foreign_page")
    navigates = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}
    refused = served.refused("POST", "/api/message", MESSAGE, headers=navigates)
    assert refused == (403, "foreign_page")


def test_the_page_of_its_own_may_ask(served: Served) -> None:
    headers = {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}
    assert served.ok("POST", "/api/message", MESSAGE, headers=headers)["ok"]


def test_a_page_that_the_owner_names_may_ask(stores: Stores) -> None:
    mine = "https://office.example.org"
    with serving(stores.settings("sqlite"), BULLPEN_API_ORIGINS=mine) as served:
        asked = served.ask("OPTIONS", "/api/message", token="", headers={"Origin": mine})
        assert asked.status_code == 204
        assert asked.headers["Access-Control-Allow-Origin"] == mine
        assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
        assert served.ask("GET", "/api/me", headers={"Origin": mine}).status_code == 200
        assert served.ask("GET", "/api/me", headers={"Origin": PAGE}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:3777", "127.0.0.1.evil", "", "a@b"])
def test_a_name_that_is_not_ours_is_refused(served: Served, host: str) -> None:
    for path in ("/api/messages", "/healthz", "/login?code=x", "/openapi/swagger"):
        assert _raw(served, path, host) in (400, 403), path


def test_a_name_that_the_owner_gives_is_ours(stores: Stores) -> None:
    with serving(stores.settings("sqlite"), BULLPEN_API_NAMES="office, b.example.org") as served:
        assert _raw(served, "/healthz", "b.example.org") == 200
        assert _raw(served, "/healthz", "OFFICE:80") == 200
        assert _raw(served, "/healthz", "c.example.org") == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_a_form_of_another_site_posts_nothing(served: Served, kind: str) -> None:
    browser = served.browser()
    for headers in ({}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        response = served.ask(
            "POST",
            "/api/message",
            token="",
            data=b'{"message": "forged"}',
            headers={**headers, **browser, "Content-Type": kind},
        )
        assert response.status_code in (403, 415)
    assert all(each["message"] != "forged" for each in served.get("/api/messages"))


def test_a_browser_comes_in_by_a_link_once(served: Served) -> None:
    url = served.post("/api/login-links")["url"]
    came = served.follow(url)
    assert (came.status_code, came.headers["Location"]) == (302, "/reports")
    cookie = came.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert served.follow(url).status_code in (401, 429)
    browser = {"Host": urlsplit(url).netloc, "Cookie": cookie.partition(";")[0]}
    assert served.get("/api/me", token="", headers=browser)["kind"] == "browser"
    served.post("/api/logout", token="", headers=browser)
    assert served.get("/api/audit?limit=1")[0]["action"] == "login leave"
    gone = served.ask("GET", "/api/me", token="", headers=browser)
    assert gone.status_code in (401, 429)


def test_bullpen_open_lets_a_browser_in(stores: Stores) -> None:
    with serving(stores.settings("sqlite")) as served:
        bullpen = Bullpen(served.settings.home)
        port = served.url.rpartition(":")[2]
        link = bullpen.ok("open", "--print", BULLPEN_API_PORT=port).out.strip()
        assert re.match(rf"http://bullpen-[a-z2-7]{{12}}\.localhost:{port}/login\?code=bp_", link)
        came = served.follow(link)
        assert came.status_code == 302
        browser = {"Host": urlsplit(link).netloc, "Cookie": came.headers["Set-Cookie"]}
        assert served.get("/api/me", token="", headers=browser)["kind"] == "browser"
        told = bullpen.ok("open", "--json", "--print", BULLPEN_API_PORT=port).json
        assert told["url"] != link
        assert told["minutes"] == 5


def test_a_login_is_under_a_name_that_other_servers_on_this_machine_do_not_have(
    served: Served,
) -> None:
    link = served.post("/api/login-links")["url"]
    path = link.partition("/login")[2]
    for host in ("127.0.0.1", "localhost", "[::1]"):
        own = {"Host": f"{host}:8080"}
        went = served.ask("GET", f"/login{path}", token="", headers=own, allow_redirects=False)
        name = urlsplit(went.headers["Location"])
        assert went.status_code == 302
        assert "Set-Cookie" not in went.headers
        assert (name.hostname, name.port) == (urlsplit(link).hostname, 8080)
        wrong = served.ask("GET", "/login?code=bp_x", headers=own, allow_redirects=False)
        assert wrong.status_code in (401, 429)
        assert str(urlsplit(link).hostname) not in wrong.text + str(wrong.headers)
    browser = served.browser()
    assert served.get("/api/me", token="", headers=browser)["kind"] == "browser"
    there = {**browser, "Host": urlsplit(served.url).netloc}
    assert served.refused("GET", "/api/me", token="", headers=there) == (401, "no_access")
    other = {**browser, "Host": "bullpen-aaaaaaaaaaaa.localhost"}
    assert served.refused("GET", "/api/me", token="", headers=other) == (403, "foreign_host")


def test_behind_a_proxy_with_tls_links_and_cookies_are_for_tls_alone(stores: Stores) -> None:
    url = "https://office.example.org"
    with serving(stores.settings("sqlite"), BULLPEN_PUBLIC_URL=f"{url}/") as served:
        port = served.url.rpartition(":")[2]
        bullpen = Bullpen(served.settings.home)
        for link in (
            served.post("/api/login-links")["url"],
            bullpen.ok(
                "open", "--print", BULLPEN_API_PORT=port, BULLPEN_PUBLIC_URL=url
            ).out.strip(),
        ):
            assert link.startswith(f"{url}/login?code=")
            cookie = served.follow(link).headers["Set-Cookie"]
            assert cookie.startswith("__Host-bullpen=")
            for part in ("Secure", "HttpOnly", "Path=/", "SameSite=Lax"):
                assert part in cookie.split("; ")
            browser = {"Host": "office.example.org", "Cookie": cookie, "Origin": url}
            assert served.post("/api/logout", token="", headers=browser)["ok"]
            assert served.ask("GET", "/api/me", token="", headers=browser).status_code == 401


def test_a_look_at_a_link_does_not_use_it_up(served: Served) -> None:
    link = urlsplit(served.post("/api/login-links")["url"])
    for host in (link.netloc, "127.0.0.1"):
        path, headers = f"{link.path}?{link.query}", {"Host": host}
        looked = served.ask("HEAD", path, token="", headers=headers, allow_redirects=False)
        assert "Set-Cookie" not in looked.headers
    assert "Set-Cookie" in served.follow(link.geturl()).headers


def test_bullpen_open_sends_no_link_to_another_program(
    stores: Stores, subtests: pytest.Subtests
) -> None:
    settings = stores.settings("sqlite")
    bullpen = Bullpen(settings.home)
    with serving(settings) as served, serving(stores.settings("sqlite")) as other:
        relay = f"{served.url}/api/proof"
        wrong = {
            "nothing": lambda _: "HTTP/1.1 200 OK\r\n\r\n",
            "made up": lambda _: f"HTTP/1.1 200 OK\r\n\r\n{json.dumps({'proof': '0' * 64})}",
            "passed on": lambda query: (
                "HTTP/1.1 200 OK\r\n\r\n" + requests.get(f"{relay}?{query}", timeout=LIMIT).text
            ),
        }
        for name, answer in wrong.items():
            with subtests.test(name), _squatter(answer) as port:
                refused = bullpen("open", "--print", BULLPEN_API_PORT=str(port))
                assert (refused.status, refused.out) == (1, "")
                assert "is not the API of this home" in refused.err
        with subtests.test("another home's API"):
            port = int(other.url.rpartition(":")[2])
            assert bullpen("open", "--print", BULLPEN_API_PORT=str(port)).status == 1
        with subtests.test("nobody"):
            refused = bullpen("open", "--print", BULLPEN_API_PORT=str(free_port()))
            assert (refused.status, refused.out) == (1, "")
            assert "bullpen up" in refused.err


def test_both_loopback_addresses_are_the_apis(served: Served) -> None:
    port = int(served.url.rpartition(":")[2])
    if len(listen_addresses(served.settings)) == 1:
        pytest.skip("there is no ::1 on this machine")
    with socket.create_connection(("::1", port), timeout=LIMIT) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n")
        assert peer.recv(12) == b"HTTP/1.1 200"
    with socket.socket(socket.AF_INET6) as squatter, pytest.raises(OSError, match="in use"):
        squatter.bind(("::1", port))


def test_a_link_itself_opens_nothing_else(served: Served) -> None:
    code = served.post("/api/login-links")["url"].partition("code=")[2]
    assert served.ask("GET", "/api/me", token=code).status_code in (401, 429)


def test_a_link_gives_no_more_than_who_made_it_has(served: Served) -> None:
    limited = served.key(Scope.ADMIN, agents=("coder",))
    me = served.get("/api/me", token="", headers=served.browser(token=limited))
    assert me["agents"] == ["coder"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/messages/../../etc/passwd",
        "/api/messages/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/api/messages/%00",
        "/api/messages/" + "9" * 400,
        "/api/messages/%ff%fe",
        "/openapi/swagger/../../../../etc/passwd",
        "/openapi/swagger/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/openapi/swagger/..%2f..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_a_path_leads_nowhere_else(served: Served, path: str) -> None:
    status, text = _raw_text(served, path)
    assert status in (400, 404), text
    assert "root:" not in text


def test_what_is_refused_to_somebody_known_is_in_the_audit_log(
    served: Served, inside: Store
) -> None:
    key = served.key(Scope.READ)
    served.refused("POST", "/api/messages/x/cancel", {}, token=key)
    with inside.read() as tx:
        deeds = list_audit_entries(tx, None, 10)
    assert (deeds[0].action, deeds[0].outcome) == ("messages cancel_message", "scope_too_small")
    assert deeds[0].target == "/api/messages/x/cancel"


def test_what_was_done_is_in_the_audit_log(served: Served, inside: Store) -> None:
    sent = served.post("/api/message", {"message": "@coder hello"})["messageId"]
    asked = served.ask("POST", f"/api/messages/{sent}/cancel", {}, headers={"X-Request-Id": "r-1"})
    assert asked.headers["X-Request-Id"] == "r-1"
    with inside.read() as tx:
        deed = list_audit_entries(tx, None, 1)[0]
    assert (deed.key_id, deed.outcome, deed.request_id) == ("owner", "done", "r-1")
    assert deed.address == "127.0.0.1"


def test_a_body_over_the_limit_is_refused(served: Served) -> None:
    response = served.ask("POST", "/api/message", {"message": "x" * (1 << 20)})
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    headers = {"Content-Type": "application/json"}
    chunks = served.ask("POST", "/api/message", headers=headers, data=iter([b"x" * 70_000] * 20))
    assert chunks.status_code == 413


def test_ten_thousand_wrong_tokens_do_not_slow_the_right_one(stores: Stores) -> None:
    with serving(stores.settings("sqlite")) as served:
        quiet = _median(served, 40)
        began = time.monotonic()
        statuses: list[int] = []
        threads = [
            threading.Thread(target=lambda: statuses.extend(_flood(served, 2500))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        busy = _median(served, 40)
        for thread in threads:
            thread.join()
        minutes = 2 + int((time.monotonic() - began) / 60)
        # How soon is the machine's affair as well, which does other things: of several, the best.
        after = min(_median(served, 40) for _ in range(3))
        assert len(statuses) == 10_000
        assert set(statuses) == {401, 429}
        # Each process looks at ten in a minute, and says then that it looks at no more.
        most = minutes * len(served.workers)
        assert statuses.count(401) <= 10 * most
        assert after <= max(3 * quiet, 0.05), (quiet, busy, after)
        assert busy <= 0.5, (quiet, busy, after)
        lines = served.log.read_text().count("too many wrong tokens from")
        assert 1 <= lines <= most


@pytest.mark.parametrize("text", ["", " \n", "short"])
def test_a_blank_token_stops_the_start(stores: Stores, text: str) -> None:
    settings = stores.settings("sqlite")
    settings.token_file.write_text(text)
    settings.token_file.chmod(0o600)
    result = Bullpen(settings.home)("run", "api")
    assert result.status == 1
    assert "has fewer than 24 characters" in result.err


def test_a_token_that_others_can_read_stops_the_start(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    ensure_token(settings)
    assert settings.token_file.stat().st_mode & 0o777 == 0o600
    settings.token_file.chmod(0o644)
    result = Bullpen(settings.home)("run", "api")
    assert result.status == 1
    assert "readable by other users" in result.err
    with pytest.raises(UnsafeSecret):
        ensure_token(settings)


def test_beyond_this_machine_it_is_served_only_with_a_key(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    result = Bullpen(settings.home)("run", "api", BULLPEN_API_HOST="0.0.0.0")
    assert result.status == 2
    assert "there is no API key" in result.err


@contextmanager
def _squatter(answer: Callable[[str], str]) -> Iterator[int]:
    """A program on a port where the API should be, which gets the query that it is asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    with peer:
                        query = peer.recv(65536).split()[1].decode().partition("?")[2]
                        peer.sendall(answer(query).encode())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT)


def _raw(served: Served, path: str, host: str) -> int:
    return _raw_text(served, path, host)[0]


def _raw_text(served: Served, path: str, host: str | None = None) -> tuple[int, str]:
    """One request, to the letter: no library tidies it up."""
    address = served.url.removeprefix("http://")
    name, port = address.split(":")
    with socket.create_connection((name, int(port)), timeout=LIMIT) as peer:
        head = f"GET {path} HTTP/1.1\r\nHost: {address if host is None else host}\r\n"
        head += f"Authorization: Bearer {served.token}\r\nConnection: close\r\n\r\n"
        peer.sendall(head.encode())
        text = b"".join(iter(lambda: peer.recv(65536), b"")).decode(errors="replace")
    found = re.match(r"HTTP/1.1 (\d+)", text)
    assert found is not None, text
    return int(found[1]), text


def _flood(served: Served, count: int) -> list[int]:
    """So many requests with wrong tokens over one connection."""
    address = served.url.removeprefix("http://")
    name, port = address.split(":")
    statuses = []
    with socket.create_connection((name, int(port)), timeout=LIMIT) as peer:
        file = peer.makefile("rb")
        for number in range(count):
            head = (
                f"GET /api/me HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer bp_{number}\r\n"
            )
            peer.sendall(f"{head}\r\n".encode())
            statuses.append(int(file.readline().split()[1]))
            length = 0
            while (line := file.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            file.read(length)
    return statuses


def _median(served: Served, count: int) -> float:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        served.get("/api/me")
        times.append(time.perf_counter() - began)
    return sorted(times)[count // 2]
