"""The base of the fakes of platforms: an HTTP server on loopback with a journal, told to misbehave.

A fake is a subclass with routes. It runs in a thread of its own with a loop of its own, or as a
process (`process.py`). `fail` switches a fault on; `gone` closes the port and opens it again.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from ssl import SSLContext
from types import TracebackType
from typing import Self, TypedDict, TypeVar
from urllib.parse import parse_qsl

from aiohttp import web

from bullpen.channels.connection_gate import stop_accepting
from tests.channels.fakes.faults import EVENT_FAULTS, REQUEST_FAULTS, Fault, Faults, Ordered, cut
from tests.ports import free_port

Result = TypeVar("Result")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HOST = "127.0.0.1"
MAX_BODY_BYTES = 64 << 20
WAIT_SECONDS = 20.0
ROUNDS_TO_SETTLE = 5
"""Rounds of the loop after which a connection is accepted, or closed."""
CONTROL = "/_fake/"


@dataclass(frozen=True, slots=True)
class Journaled:
    """A request that came in, or a frame of a WebSocket (its method is then `WS`)."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """With names in lower case."""
    body: bytes

    def json(self) -> dict[str, object]:
        """The body, a JSON object."""
        found = json.loads(self.body)
        assert isinstance(found, dict), found
        return found

    def form(self) -> dict[str, str]:
        """The body, a URL-encoded form."""
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))


class Options(TypedDict, total=False):
    """What any fake can be made with, besides its port."""

    state: Path | None
    """The file for what `remember` keeps."""
    tls: SSLContext | None


class FakePlatform:
    """A platform on loopback. A subclass adds its routes, and its state as attributes."""

    controls: frozenset[str] = frozenset({"fail", "heal", "vanish", "paths"})
    """The methods that a test may call by HTTP while the fake is a process: `POST /_fake/NAME`."""

    def __init__(
        self, port: int = 0, *, state: Path | None = None, tls: SSLContext | None = None
    ) -> None:
        self.port = port or free_port()
        self.url = f"{'http' if tls is None else 'https'}://{HOST}:{self.port}"
        self.journal: list[Journaled] = []
        self.errors: list[BaseException] = []
        """What the fake's own handlers raised; the end of the `with` block raises it again."""
        self.faults = Faults()
        self._state, self._tls = state, tls
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=type(self).__name__)
        self._reserved: socket.socket | None = None
        self._site: web.SockSite | None = None
        self._return: asyncio.TimerHandle | None = None
        self._returning: asyncio.Task[None] | None = None
        self._controlling: set[object] = set()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Add the platform's endpoints."""

    def recall(self, record: dict[str, object]) -> None:
        """Take in what `remember` kept in an earlier life of the process."""

    def limited(self, request: web.Request, seconds: float) -> web.Response:
        """The platform's form of a 429."""
        headers = {"Retry-After": f"{seconds:g}"}
        return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)

    def failed(self, request: web.Request, status: int) -> web.Response:
        """The platform's form of a 5xx."""
        return web.Response(status=status, text="Internal Server Error")

    def __enter__(self) -> Self:
        if self._state is not None and self._state.exists():
            for line in self._state.read_text().splitlines():
                self.recall(json.loads(line))
        self._thread.start()
        try:
            self.run(self._start())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        if self.errors and error is None:
            raise AssertionError("a handler of the fake failed") from self.errors[0]

    def _end(self) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, work: Coroutine[object, object, Result]) -> Result:
        """Run a coroutine in the fake's loop; never called from that loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)

    def fail(
        self,
        fault: Fault | str,
        on: str = "*",
        *,
        times: int | None = 1,
        after: int = 0,
        taken: bool = False,
        seconds: float = 1.0,
        status: int = 500,
    ) -> None:
        """Misbehave on the next requests, or events, that match the pattern."""
        self.faults.add(Ordered(Fault(fault), on, times, after, taken, seconds, status))

    def heal(self) -> None:
        """Switch all faults off; what hangs goes on hanging."""
        self.faults.clear()

    @contextmanager
    def gone(self) -> Iterator[None]:
        """Refuse connections, and cut the open ones; on the same port again when the block ends."""
        self.run(self._close_port())
        try:
            yield
        finally:
            self.run(self._open_port())

    def vanish(self, seconds: float) -> None:
        """Be gone for so long; returns at once."""
        self.run(self._vanish(seconds))

    def paths(self) -> list[str]:
        """The methods and paths of all requests."""
        return [f"{each.method} {each.path}" for each in self.requests()]

    def requests(self, on: str = "*") -> list[Journaled]:
        """The requests whose method and path match the pattern."""
        with self._changed:
            journal = list(self.journal)
        return [each for each in journal if fnmatch.fnmatchcase(f"{each.method} {each.path}", on)]

    def wait_for(self, promise: Callable[[], Result], seconds: float = WAIT_SECONDS) -> Result:
        """Wait until this is true, looked at after each request and change."""
        end = time.monotonic() + seconds
        while not (found := promise()):
            if time.monotonic() > end:
                raise AssertionError(f"not in {seconds:g} s; the fake was asked {self.paths()}")
            with self._changed:
                self._changed.wait(0.02)  # it may be about more than the fake
        return found

    def wait_for_request(self, on: str, count: int = 1) -> Journaled:
        """Wait until so many requests have matched the pattern; returns the last of them."""
        return self.wait_for(lambda: self.requests(on)[count - 1 :])[-1]

    def note(self, path: str, body: bytes | str, method: str = "WS") -> None:
        """Journal what is no request, such as a frame of a WebSocket."""
        data = body.encode() if isinstance(body, str) else body
        self._add(Journaled(time.time(), method, path, {}, {}, data))

    def changed(self) -> None:
        """Wake `wait_for`; what a handler of a request changed needs no such call."""
        with self._changed:
            self._changed.notify_all()

    def copies(self, event: str) -> int:
        """How often an event of this name is to be pushed now: 0, 1 or 2."""
        ordered = self.faults.take(event, EVENT_FAULTS)
        if ordered is None:
            return 1
        return 0 if ordered.fault is Fault.SILENT else 2

    def remember(self, record: dict[str, object]) -> None:
        """Keep a record for the next life of the process, as the platform would."""
        if self._state is not None:
            with self._state.open("a") as file:
                file.write(f"{json.dumps(record)}\n")

    def _add(self, entry: Journaled) -> None:
        with self._changed:
            self.journal.append(entry)
            self._changed.notify_all()

    async def _start(self) -> None:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._answer])
        app.router.add_post(f"{CONTROL}{{name}}", self._control)
        self.add_routes(app.router)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._open_port()

    async def _stop(self) -> None:
        self.faults.released.set()
        if self._return is not None:
            self._return.cancel()
        if self._returning is not None:
            await self._returning
        await self._close_listener()
        self._cut()
        await self._runner.cleanup()
        if self._reserved is not None:
            self._reserved.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await _settled()

    def _reserve(self) -> socket.socket:
        """The port without a listener: connections are refused, and nobody else can have it."""
        reserved = socket.socket()
        try:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((HOST, self.port))
        except OSError:
            reserved.close()
            raise
        return reserved

    async def _open_port(self) -> None:
        self._listener = self._reserved or self._reserve()
        self._reserved = None
        self._site = web.SockSite(self._runner, self._listener, ssl_context=self._tls)
        await self._site.start()

    async def _close_port(self) -> None:
        assert self._site is not None, "it is gone already"
        await self._close_listener()
        self._reserved = self._reserve()
        self._cut()

    async def _close_listener(self) -> None:
        if self._site is None:
            return
        await stop_accepting([self._listener.fileno()])
        site, self._site = self._site, None
        await site.stop()

    async def _vanish(self, seconds: float) -> None:
        await self._close_port()
        self._return = self._loop.call_later(seconds, self._come_back)

    def _come_back(self) -> None:
        self._returning = self._loop.create_task(self._open_port())

    def _cut(self) -> None:
        """Reset all connections but those of `_control`."""
        server = self._runner.server
        for connection in [] if server is None else server.connections:
            if connection not in self._controlling:
                cut(connection)

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Journal a request, and answer it as the faults say."""
        if request.path.startswith(CONTROL):
            return await handler(request)
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        ordered = self.faults.take(f"{request.method} {request.path}", REQUEST_FAULTS)
        query = dict(request.query)
        self._add(Journaled(time.time(), request.method, request.path, query, headers, body))
        if ordered is None:
            return await self._handle(request, handler)
        answer: web.StreamResponse = web.Response()
        if ordered.taken or ordered.fault in (Fault.SLOW, Fault.HALF):
            answer = await self._handle(request, handler)
        if ordered.fault is Fault.LIMIT:
            return self.limited(request, ordered.seconds)
        if ordered.fault is Fault.ERROR:
            return self.failed(request, ordered.status)
        return await self.faults.misbehave(request, ordered, answer)

    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except (web.HTTPException, ConnectionError):
            raise
        except Exception as error:
            self.errors.append(error)
            raise
        finally:
            self.changed()

    async def _control(self, request: web.Request) -> web.Response:
        """Call a method for a test that runs in another process."""
        name = request.match_info["name"]
        if name not in self.controls:
            raise web.HTTPNotFound
        call = partial(getattr(self, name), **await request.json())
        self._controlling.add(request.protocol)
        return web.json_response({"value": await self._loop.run_in_executor(None, call)})


async def _settled() -> None:
    for _ in range(ROUNDS_TO_SETTLE):
        await asyncio.sleep(0)
