"""Webhooks are checked from the outside in, and answered when what they brought is committed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import hmac
import inspect
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec

import pytest

from bullpen.channels.connection_gate import MAX_CONNECTIONS
from bullpen.channels.files.capabilities import MAX_OFFERS, OFFER_MS
from bullpen.channels.listener import (
    MAX_BODY_BYTES,
    MAX_UNSIGNED,
    Hook,
    Listener,
    WebhookAnswer,
    WebhookRequest,
    check_public_url,
)
from bullpen.core.answers.attachments import OpenFile
from bullpen.core.clock import MINUTE
from bullpen.core.errors import AddressTaken, BadSetting, StoreBusy
from tests.ports import free_port
from tests.stores import FakeClock

SECRET = "shared-secret"
TRIALS = 20
CONNECTIONS = 50
PUBLIC = "https://bots.example.test/sms"
Parameters = ParamSpec("Parameters")
log = logging.getLogger("bullpen.test")


@dataclass
class Site:
    """A listener with one hook, and what the hook was given."""

    clock: FakeClock = field(default_factory=FakeClock)
    port: int = field(default_factory=free_port)
    public_url: str = PUBLIC
    secret: str = SECRET
    base: str = "/sms"
    answer_seconds: float = 10.0
    receive_seconds: float = 10.0
    max_connections: int = 64
    stored: list[WebhookRequest] = field(default_factory=list)
    verified: list[WebhookRequest] = field(default_factory=list)
    handle: Callable[[WebhookRequest], Awaitable[WebhookAnswer]] | None = None

    def verify(self, request: WebhookRequest) -> bool:
        self.verified.append(request)
        given = request.headers["X-Signature"]
        if given == "raise":
            raise OverflowError("a hostile header")
        return hmac.compare_digest(given, sign(request.url, request.body))

    async def _store(self, request: WebhookRequest) -> WebhookAnswer:
        if self.handle is not None:
            return await self.handle(request)
        self.stored.append(request)
        return WebhookAnswer(b"<Response/>", "text/xml")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Listener]:
        hook = Hook(
            path="/in",
            signature="X-Signature",
            setting="auth_token",
            secret=self.secret,
            verify=self.verify,
            handle=self._store,
        )
        status = Hook(
            path="/status/",
            signature="X-Signature",
            setting="auth_token",
            secret=self.secret,
            verify=self.verify,
            handle=self._store,
        )
        async with Listener(
            "sms",
            self.port,
            self.public_url,
            (hook, status),
            clock=self.clock,
            log=log,
            answer_seconds=self.answer_seconds,
            receive_seconds=self.receive_seconds,
            max_connections=self.max_connections,
        ) as listener:
            yield listener

    async def raw(self, data: bytes) -> bytes:
        """Send these bytes, and read until the connection ends, in whatever way."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            await writer.drain()
            return await asyncio.wait_for(reader.read(), 20)
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()  # a close would wait until the other side has read everything
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def post(
        self,
        body: bytes = b"Body=hello",
        path: str = "/in",
        signature: str | None = None,
        method: str = "POST",
        **headers: str,
    ) -> tuple[int, bytes]:
        """Post, signed unless a signature is given; the status and the body of the answer."""
        given = sign(self.public_url + path, body) if signature is None else signature
        lines = {
            "Host": "attacker.example",
            "X-Forwarded-Host": "attacker.example",
            "X-Forwarded-Proto": "http",
            "Content-Type": "application/x-www-form-urlencoded",
            "Content-Length": str(len(body)),
            "X-Signature": given,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
        data = f"{method} {self.base}{path} HTTP/1.1\r\n{head}\r\n".encode() + body
        return split(await self.raw(data))


def sign(url: str, body: bytes) -> str:
    return hmac.new(SECRET.encode(), url.encode() + body, hashlib.sha256).hexdigest()


def split(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]), body) if head else (0, b"")


def in_loop(
    test: Callable[Concatenate[Site, Parameters], Awaitable[None]],
) -> Callable[Parameters, None]:
    """Run a test in a loop of its own, with a site."""

    @wraps(test)
    def run(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        async def whole() -> None:
            await test(Site(), *arguments, **named)

        asyncio.run(whole())

    # pytest asks for what the test has after the site.
    signature = inspect.signature(test)
    parameters = list(signature.parameters.values())[1:]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


@in_loop
async def test_a_signed_request_is_stored_and_answered(site: Site) -> None:
    async with site.running():
        assert await site.post() == (200, b"<Response/>")
        assert await site.post(path="/status/17/0?a=1") == (200, b"<Response/>")
    first, second = site.stored
    assert (first.url, first.path, first.body) == (f"{PUBLIC}/in", "/in", b"Body=hello")
    assert second.url == f"{PUBLIC}/status/17/0?a=1"
    assert (second.path, second.query) == ("/status/17/0", "a=1")
    assert first.headers["content-TYPE"] == "application/x-www-form-urlencoded"


@in_loop
async def test_cve_2026_28465_signatures_are_checked_against_the_configured_url(site: Site) -> None:
    """Neither Host nor X-Forwarded-* count: `post` sends both with the name of an attacker."""
    async with site.running():
        assert (await site.post())[0] == 200
        for url in ("https://attacker.example/sms/in", "http://127.0.0.1/sms/in"):
            assert (await site.post(signature=sign(url, b"Body=hello")))[0] == 403
    assert len(site.stored) == 1


@in_loop
async def test_a_public_url_without_a_path_works_too(site: Site) -> None:
    site.public_url, site.base = "https://bots.example.test", ""
    async with site.running() as listener:
        assert (await site.post())[0] == 200
        assert listener.url_of("/in") == "https://bots.example.test/in"
    assert site.stored[0].url == "https://bots.example.test/in"


@pytest.mark.parametrize(
    "secret",
    [pytest.param("", id="CVE-2026-26319"), pytest.param("  \n", id="GHSA-xh72-v6v9-mwhc")],
)
def test_cve_2026_26319_a_blank_secret_stops_the_start(secret: str) -> None:
    async def start() -> None:
        async with Site(secret=secret).running():
            pass

    with pytest.raises(BadSetting, match="auth_token` is blank") as raised:
        asyncio.run(start())
    assert "bullpen config set sms.auth_token" in raised.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "",
        "bots.example.test",
        "http://bots.example.test",
        "ftp://x",
        "https://",
        "https://x/?a=1",
        "https://x/#a",
        "https://user:password@x/",
        "http://localhost:1/",
        "https://[",
    ],
)
def test_a_public_url_is_https_and_nothing_but_a_place(url: str) -> None:
    with pytest.raises(BadSetting) as raised:
        check_public_url("slack-sage", url)
    assert "bullpen config set slack-sage.public_url" in raised.value.hint
    assert "password" not in str(raised.value)


@in_loop
async def test_a_request_with_a_wrong_signature_is_refused_without_a_detail(site: Site) -> None:
    async with site.running():
        for signature in ("wrong", "raise", "é".encode().decode("latin-1")):
            assert await site.post(signature=signature) == (403, b""), signature
        other = await site.raw(b"GARBAGE\r\n\r\n")
        assert b"Traceback" not in other
        assert (await site.post())[0] == 200  # it still runs
    assert len(site.stored) == 1


MALFORMED = (
    b"GARBAGE\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://a/sms/in HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST //sms/in HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /sms/../sms/in HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /sms/%ff%00in?%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /sms/in HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /sms/in HTTP/1.1\r\n\r\n",
    b"POST /sms/in HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /sms/in HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    b"POST /sms/in HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /sms/in HTTP/1.1\r\nHost: x\r\nX-Signature: \0\r\n\r\n",
    b"POST /sms/in HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
)


@in_loop
async def test_malformed_requests_are_refused_and_fill_no_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with site.running():
        for data in MALFORMED:
            status, body = split(await site.raw(data))
            assert 400 <= status < 500, data[:60]
            assert b"Traceback" not in body
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []
    assert site.verified == []


@in_loop
async def test_cve_2026_32980_headers_are_checked_before_the_body_is_read(site: Site) -> None:
    """None of these sends its body, and all are answered."""
    async with site.running():
        length = {"Content_Length": "100"}
        assert (await site.post(b"", signature="", **length))[0] == 403
        assert (await site.post(b"", path="/other", **length))[0] == 404
        assert (await site.post(b"", Content_Length=str(MAX_BODY_BYTES + 1)))[0] == 413
        assert (await site.post(b"", Content_Encoding="gzip", **length))[0] == 415
        assert (await site.post(b"", Content_Type="multipart/form-data", **length))[0] == 415
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert (await site.post(b"", method=method, **length))[0] == 405, method
    assert site.verified == []


@in_loop
async def test_cve_2026_32980_a_body_over_64_kib_is_refused_whatever_it_announces(
    site: Site,
) -> None:
    big = b"a" * (MAX_BODY_BYTES + 1)
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(big), big)
    async with site.running():
        # Each read of a body that is not wanted ends after a second.
        assert (await site.post(big))[0] == 413
        answer = await site.post(
            chunked, Content_Length="", Transfer_Encoding="chunked", signature="x"
        )
        assert answer[0] == 413
        exact = b"a" * MAX_BODY_BYTES
        assert (await site.post(exact))[0] == 200
    assert [len(each.body) for each in site.verified] == [MAX_BODY_BYTES]


@in_loop
async def test_cve_2026_32980_a_request_that_does_not_arrive_in_time_is_cut(site: Site) -> None:
    site.receive_seconds = 0.3
    head = (
        b"POST /sms/in HTTP/1.1\r\nHost: x\r\nX-Signature: x\r\nContent-Type: application/json\r\n"
    )
    slow = (b"", b"P", head, head + b"Content-Length: 100\r\n\r\nhalf of the body")
    async with site.running():
        began = time.monotonic()
        assert await asyncio.gather(*(site.raw(each) for each in slow)) == [b""] * 4
        assert time.monotonic() - began < 5
    assert site.verified == []


@in_loop
async def test_slow_connections_do_not_keep_a_request_out(site: Site) -> None:
    """The oldest one that has not sent its request makes room."""
    site.max_connections = 4
    site.receive_seconds = 60
    async with asyncio.timeout(20), site.running():
        slow = [asyncio.create_task(site.raw(b"POST /sms/in HTTP/1.1\r\n")) for _ in range(12)]
        while sum(each.done() for each in slow) < 8:
            await asyncio.sleep(0.01)
        assert (await site.post())[0] == 200
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


@in_loop
async def test_a_burst_of_200_requests_is_answered_in_time(site: Site) -> None:
    """The limits on connections are no limits for a platform, which waits 3 s at most."""
    site.max_connections = MAX_CONNECTIONS
    async with site.running():
        began = time.monotonic()
        got = await asyncio.gather(*(site.post() for _ in range(200)))
        assert time.monotonic() - began < 3
    assert {status for status, _ in got} == {200}


@in_loop
async def test_requests_that_are_being_stored_are_never_cut_for_others(site: Site) -> None:
    site.max_connections = 2
    stored = asyncio.Event()

    async def handle(request: WebhookRequest) -> WebhookAnswer:
        site.stored.append(request)
        await stored.wait()
        return WebhookAnswer()

    site.handle = handle
    async with site.running():
        first = [asyncio.create_task(site.post()) for _ in range(2)]
        while len(site.stored) < 2:
            await asyncio.sleep(0.01)
        assert await site.raw(b"GET /") == b""
        stored.set()
        assert [status for status, _ in await asyncio.gather(*first)] == [200, 200]


@in_loop
async def test_the_platform_is_answered_after_the_commit(site: Site) -> None:
    committed = asyncio.Event()

    async def handle(request: WebhookRequest) -> WebhookAnswer:
        site.stored.append(request)
        await committed.wait()
        return WebhookAnswer()

    site.handle = handle
    async with site.running():
        asked = asyncio.create_task(site.post())
        while not site.stored:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert not asked.done()
        committed.set()
        assert await asked == (200, b"")


@in_loop
async def test_a_failure_of_the_store_asks_the_platform_to_send_again(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    error: Exception = StoreBusy("the database is locked")

    async def handle(request: WebhookRequest) -> WebhookAnswer:
        raise error

    site.handle = handle
    async with site.running():
        data = f"POST /sms/in HTTP/1.1\r\nHost: x\r\nX-Signature: {sign(f'{PUBLIC}/in', b'')}\r\n"
        data += "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n"
        answer = await site.raw(data.encode())
        assert b" 503 " in answer
        assert b"\r\nRetry-After: 5\r\n" in answer
        error = ValueError("it is not JSON")
        assert await site.post() == (400, b"")
        error = RuntimeError("a defect")
        assert await site.post() == (500, b"")
    assert "the webhook listener of sms failed" in caplog.text


@in_loop
async def test_a_commit_that_takes_too_long_is_not_undone(site: Site) -> None:
    """The platform sends the request again, and the receipt recognises it."""
    site.answer_seconds = 0.1
    committed = asyncio.Event()

    async def handle(request: WebhookRequest) -> WebhookAnswer:
        await committed.wait()
        site.stored.append(request)
        return WebhookAnswer()

    site.handle = handle
    async with site.running():
        assert (await site.post())[0] == 503
        committed.set()
        while not site.stored:
            await asyncio.sleep(0.01)


@in_loop
async def test_unsigned_requests_are_limited_and_signed_ones_are_not(site: Site) -> None:
    async with site.running():
        got = [(await site.post(signature="wrong"))[0] for _ in range(MAX_UNSIGNED + 2)]
        assert got == [403] * MAX_UNSIGNED + [429] * 2
        assert (await site.post(signature=""))[0] == 429
        assert (await site.post())[0] == 200
        site.clock.advance(MINUTE)
        assert (await site.post(signature="wrong"))[0] == 403


@in_loop
async def test_health_is_answered_and_says_nothing(site: Site) -> None:
    async with site.running():
        site.base = ""
        assert await site.post(b"", path="/healthz", method="GET") == (200, b"ok\n")
        assert (await site.post(b"", path="/healthz", method="HEAD"))[0] == 200
        assert (await site.post(b"", path="/", method="GET"))[0] == 404
        answer = await site.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"Python" not in answer
    assert b"aiohttp" not in answer


@in_loop
async def test_a_port_in_use_is_an_error_with_its_setting(site: Site) -> None:
    async with site.running():
        with pytest.raises(AddressTaken) as raised:
            async with site.running():
                pass
    assert "bullpen config set sms.port" in raised.value.hint


def test_a_connection_that_is_being_accepted_is_closed_with_the_listener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPython gh-109564: what is left open is a warning at a later collection."""
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: left.append(str(found.exc_value)))
    clients: list[socket.socket] = []

    def connect(port: int) -> None:
        with contextlib.suppress(OSError):
            for _ in range(CONNECTIONS):
                clients.append(socket.create_connection(("127.0.0.1", port)))

    async def serve() -> None:
        site = Site()
        async with site.running():
            connecting = asyncio.create_task(asyncio.to_thread(connect, site.port))
            # The worst time: timers run after the accepting in a round of the loop.
            await asyncio.sleep(0.002)
        await connecting

    for _ in range(TRIALS):
        asyncio.run(serve())
        for each in clients:
            each.close()
        clients.clear()
    gc.collect()
    assert not left


async def get(site: Site, url: str, method: str = "GET") -> tuple[bytes, bytes]:
    """The head and body of the answer to a request of the platform."""
    path = url.removeprefix("https://bots.example.test")
    answer = await site.raw(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@in_loop
async def test_a_file_is_served_under_its_capability_for_ten_minutes(
    site: Site, tmp_path: Path
) -> None:
    data = b"\x89PNG" + bytes(range(256)) * 3000
    async with site.running() as listener:
        path = tmp_path / "photo one.png"
        path.write_bytes(data)
        with path.open("rb") as file:
            url = listener.capabilities.offer(OpenFile(path.name, len(data), file))
        # What was opened is what is sent, whatever the path leads to by now.
        path.unlink()
        path.write_bytes(b"secret" * 200_000)
        assert url.startswith(f"{PUBLIC}/files/")
        assert url.endswith("/photo_one.png")
        head, body = await get(site, url)
        assert body == data
        for line in (
            b"Content-Type: image/png",
            b"Content-Disposition: attachment; filename*=UTF-8''photo_one.png",
            b"X-Content-Type-Options: nosniff",
            b"Cache-Control: private, no-store",
        ):
            assert line in head, head
        assert (await get(site, url))[1] == data  # a retry of the platform
        assert b" 405 " in (await get(site, url, "HEAD"))[0]
        assert b" 405 " in (await get(site, url, "POST"))[0]
        token = url.split("/")[-2]
        for guess in (token[:-1], token[::-1], "", "..", "%2e%2e"):
            other = f"{PUBLIC}/files/{guess}/photo_one.png"
            assert b" 404 " in (await get(site, other))[0], guess
        site.clock.advance(OFFER_MS)
        assert b" 404 " in (await get(site, url))[0]


@in_loop
async def test_offers_are_bounded_and_no_browser_runs_them(site: Site, tmp_path: Path) -> None:
    async with site.running() as listener:
        (tmp_path / "page.html").write_bytes(b"<script>")
        with (tmp_path / "page.html").open("rb") as file:
            urls = [
                listener.capabilities.offer(OpenFile("page.html", 8, file))
                for _ in range(MAX_OFFERS + 1)
            ]
        assert b" 404 " in (await get(site, urls[0]))[0]
        head, body = await get(site, urls[-1])
        assert body == b"<script>"
        assert b"Content-Type: application/octet-stream" in head
        assert b"sandbox" in head
