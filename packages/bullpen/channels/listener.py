"""The webhook listener of one account: an HTTP server on loopback, behind a proxy with TLS.

A request is checked from the outside in: path, method, headers, size, then its signature, and only
then is it parsed. It is answered when what it brought is committed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from aiohttp import web
from yarl import URL

from bullpen.channels.connection_gate import (
    MAX_CONNECTIONS,
    RECEIVE_SECONDS,
    Gate,
    stop_accepting,
)
from bullpen.channels.files.capabilities import FILES_PATH, Capabilities
from bullpen.channels.files.reachable import is_loopback_url
from bullpen.core.clock import MINUTE, Clock
from bullpen.core.errors import AddressTaken, BadSetting, Overloaded, StoreError

LISTEN_HOST = "127.0.0.1"
MAX_BODY_BYTES = 64 << 10
LONG_BODY_BYTES = 256 << 10
"""For platforms that send long texts twice, and each letter of most scripts as six bytes."""
ANSWER_SECONDS = 15.0
"""The time in which a request must be committed; after it the platform is to send it again."""
FILE_SECONDS = 120.0
LINGER_SECONDS = 0.2
"""How long the rest of a refused request is read, so that its sender sees the answer."""
RETRY_SECONDS = 5
MAX_UNSIGNED = 60
"""Unsigned requests of one address in a minute, before they are refused without a look."""
MAX_ADDRESSES = 1000
HEALTH_PATH = "/healthz"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A request as the signature covers it."""

    url: str
    """The public URL of the account with the path and query of the request."""
    path: str
    """The path below the public URL, such as `/status/17/0`."""
    query: str
    headers: Mapping[str, str]
    """Names are compared without case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The answer to a request that was accepted."""

    body: bytes = b""
    type: str = "text/plain"
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A path to which the platform posts."""

    path: str
    """Below the public URL. With a `/` at its end it means every path that begins with it."""
    signature: str
    """The header with the signature or secret; a request without it is not read."""
    setting: str
    """The setting with the secret that `verify` uses, such as `signing_secret`."""
    secret: str = field(repr=False)
    """Its value. A listener with a blank one does not start."""
    verify: Callable[[WebhookRequest], bool]
    """Whether the signature is valid; an exception means no."""
    handle: Callable[[WebhookRequest], Awaitable[WebhookAnswer]]
    """Parses and stores a verified request. A `ValueError` means that it cannot be parsed."""
    types: tuple[str, ...] = (FORM, JSON)
    body_bytes: int = MAX_BODY_BYTES
    """A longer body is refused."""
    signs_body: bool = True
    """Whether the signature covers the body. If not, it is verified before the body is read."""


class _Refused(Exception):
    """The request is answered with a status and nothing else."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Listener:
    """Accepts the webhooks of one account. It is used as an async context manager."""

    def __init__(
        self,
        account: str,
        port: int,
        public_url: str,
        hooks: Sequence[Hook],
        *,
        clock: Clock,
        log: logging.Logger,
        max_connections: int = MAX_CONNECTIONS,
        receive_seconds: float = RECEIVE_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._account, self._port, self._log = account, port, log
        self._url = check_public_url(account, public_url)
        self._base = self._url.raw_path.rstrip("/")
        self._hooks = tuple(hooks)
        for each in self._hooks:
            check_secret(account, each.setting, each.secret)
        self._most, self._receive_seconds = max_connections, receive_seconds
        self._answer_seconds = answer_seconds
        self._unsigned = UnsignedCount(clock)
        self._handling: set[asyncio.Future[WebhookAnswer]] = set()
        self.capabilities = Capabilities(str(self._url), clock)

    async def __aenter__(self) -> Self:
        # One request for each connection: the gate bounds connections.
        self._http = web.Server(
            self._serve,
            access_log=None,
            # Anybody can send malformed requests: aiohttp would log each with a traceback.
            logger=logging.Logger("http", logging.CRITICAL),
            auto_decompress=False,
            lingering_time=LINGER_SECONDS,
        )
        self._gate = Gate(
            self._http,
            max_connections=self._most,
            receive_seconds=self._receive_seconds,
        )
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._gate, LISTEN_HOST, self._port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise AddressTaken(
                f"port {self._port} on {LISTEN_HOST} is in use by another program",
                hint=f"Stop it, or choose another port: "
                f"`bullpen config set {self._account}.port PORT`.",
            ) from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await stop_accepting(each.fileno() for each in self._server.sockets)
        self._server.close()
        self._http.pre_shutdown()
        await self._http.shutdown(LINGER_SECONDS)
        await self._server.wait_closed()
        for task in self._handling:
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        self.capabilities.close()

    def url_of(self, path: str) -> str:
        """The public URL of a path of this listener."""
        return f"{str(self._url).rstrip('/')}{path}"

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; an error never leaves here, and its text never leaves the machine."""
        try:
            answer = await self._answer(request)
        except _Refused as refused:
            answer = web.Response(status=refused.status, headers=refused.headers)
        except asyncio.CancelledError:
            raise
        except ConnectionError:
            answer = web.Response(status=400)
        except Exception:
            self._log.exception("the webhook listener of %s failed", self._account)
            answer = web.Response(status=500)
        answer.force_close()
        if not answer.prepared:
            answer.headers["Server"] = "bullpen"
        return answer

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == HEALTH_PATH and request.method in ("GET", "HEAD"):
            return web.Response(text="ok\n")
        path, _, query = request.raw_path.partition("?")
        if not path.startswith(f"{self._base}/"):
            raise _Refused(404)
        path = path.removeprefix(self._base)
        if path.startswith(FILES_PATH):
            return await self._send_file(request, path)
        hook = self._find_hook(path)
        self._check_headers(request, hook)
        url = self.url_of(f"{path}?{query}" if query else path)
        received = WebhookRequest(
            url=url, path=path, query=query, headers=request.headers, body=b""
        )
        if not hook.signs_body and not self._is_signed(hook, received):
            self._refuse_unsigned(request)
        received = replace(received, body=await _read_body(request, hook.body_bytes))
        if hook.signs_body and not self._is_signed(hook, received):
            self._refuse_unsigned(request)
        self._gate.received(request.transport, self._answer_seconds + LINGER_SECONDS)
        return await self._handle(hook, received)

    def _find_hook(self, path: str) -> Hook:
        for hook in self._hooks:
            if path == hook.path or (hook.path.endswith("/") and path.startswith(hook.path)):
                return hook
        raise _Refused(404)

    def _check_headers(self, request: web.BaseRequest, hook: Hook) -> None:
        """Refuse a request by its head, before its body is read."""
        if request.method != "POST":
            raise _Refused(405, Allow="POST")
        if not request.headers.get(hook.signature, "").strip():
            self._refuse_unsigned(request)
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise _Refused(415)
        if request.content_type not in hook.types:
            raise _Refused(415)
        if (request.content_length or 0) > hook.body_bytes:
            raise _Refused(413)

    def _is_signed(self, hook: Hook, request: WebhookRequest) -> bool:
        try:
            return hook.verify(request) is True
        except Exception as error:
            # A hostile header makes SDKs fail, for example a timestamp of letters.
            self._log.debug("the signature cannot be checked: %s", type(error).__name__)
            return False

    def _refuse_unsigned(self, request: web.BaseRequest) -> None:
        """Refuse a request without a valid signature; these, and only these, are limited."""
        count = self._unsigned.add(request.remote or "")
        if count == 1:
            self._log.warning(
                "a request without a valid signature was refused", extra={"path": request.path}
            )
        raise _Refused(403) if count <= MAX_UNSIGNED else _Refused(429, Retry_After="60")

    async def _handle(self, hook: Hook, request: WebhookRequest) -> web.StreamResponse:
        """Have a verified request parsed and stored."""
        # It is not cancelled after its time: the commit may be on its way.
        task = asyncio.ensure_future(hook.handle(request))
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        await asyncio.wait((task,), timeout=self._answer_seconds)
        if not task.done():
            self._log.warning("a webhook was not stored in %g s", self._answer_seconds)
            raise _Refused(503, Retry_After=str(RETRY_SECONDS))
        try:
            answer = task.result()
        except (StoreError, Overloaded) as error:
            self._log.warning("a webhook was not stored: %s", error)
            raise _Refused(503, Retry_After=str(RETRY_SECONDS)) from None
        except ValueError as error:
            self._log.warning("a signed webhook cannot be parsed: %s", error)
            raise _Refused(400) from None
        return web.Response(
            status=answer.status, body=answer.body, headers={"Content-Type": answer.type}
        )

    async def _send_file(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        """Send a file that was offered to the platform."""
        if request.method != "GET":
            raise _Refused(405, Allow="GET")
        offered = self.capabilities.find(path)
        if offered is None:
            raise _Refused(404)
        self._gate.received(request.transport, FILE_SECONDS)
        answer = web.StreamResponse(headers=offered.headers)
        answer.force_close()
        answer.headers["Server"] = "bullpen"
        await answer.prepare(request)
        async with aclosing(offered.read()) as pieces:
            async for piece in pieces:
                await answer.write(piece)
        return answer


class UnsignedCount:
    """Counts the unsigned requests of each address in the present minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minute = 0
        self._counts: dict[str, int] = {}

    def add(self, address: str) -> int:
        """Count one; returns their number."""
        minute = self._clock.monotonic() // MINUTE
        if minute != self._minute or len(self._counts) >= MAX_ADDRESSES:
            self._minute = minute
            self._counts.clear()
        self._counts[address] = self._counts.get(address, 0) + 1
        return self._counts[address]


async def _read_body(request: web.BaseRequest, most: int) -> bytes:
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > most:
            raise _Refused(413)
    return bytes(body)


def check_public_url(account: str, public_url: str) -> URL:
    """The public URL of an account: https, or http on loopback."""
    hint = (
        f"Set the address that the platform calls: "
        f"`bullpen config set {account}.public_url https://bots.example.org/{account}`."
    )
    try:
        url = URL(public_url.strip())
    except ValueError:
        raise BadSetting(f"the setting `{account}.public_url` is not a URL", hint=hint) from None
    if not url.host or not (url.scheme == "https" or is_loopback_url(url)):
        raise BadSetting(f"the setting `{account}.public_url` is not an https URL", hint=hint)
    if url.raw_query_string or url.raw_fragment or url.user is not None:
        raise BadSetting(
            f"the setting `{account}.public_url` has more than a host and a path", hint=hint
        )
    return url


def check_secret(account: str, setting: str, value: str) -> str:
    """The secret that signs webhooks; a blank one would let everybody in."""
    if not value.strip():
        raise BadSetting(
            f"the setting `{account}.{setting}` is blank: webhooks could not be verified",
            hint=f"Run `bullpen config set {account}.{setting}` and enter the platform's secret.",
        )
    return value
