"""What a fake of a platform is told to do wrong, and how it does it."""

from __future__ import annotations

import asyncio
import fnmatch
import socket
import struct
import threading
from dataclasses import dataclass
from enum import StrEnum

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
SIGN_IN_PAGE = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>…</body></html>"
PIECES = 10


class Fault(StrEnum):
    """What a fake does in place of its answer, or to an event that it pushes."""

    CLOSE = "close"
    """It reads the request and closes the connection."""
    RESET = "reset"
    HALF = "half"
    """It breaks off in the body of its answer."""
    HANG = "hang"
    """It never answers."""
    ERROR = "error"
    """It answers 500, or the `status` given."""
    HTML = "html"
    """It answers 200 with a sign-in page."""
    SLOW = "slow"
    """It sends its answer in ten pieces, in `seconds`."""
    LIMIT = "limit"
    """It answers 429 with a Retry-After of `seconds`."""
    DUPLICATE = "duplicate"
    """It pushes an event twice."""
    SILENT = "silent"
    """It does not push an event, and stays connected."""


EVENT_FAULTS = frozenset({Fault.DUPLICATE, Fault.SILENT})
REQUEST_FAULTS = frozenset(Fault) - EVENT_FAULTS


@dataclass(slots=True)
class Ordered:
    """A fault that is switched on."""

    fault: Fault
    on: str
    """A pattern of the method and path (`POST */chat.postMessage`), or of an event's name."""
    times: int | None
    """For how many requests; None is until `heal`."""
    after: int
    """How many requests are answered properly first."""
    taken: bool
    """Whether the request is handled first, so that only its answer is lost."""
    seconds: float
    status: int


class Faults:
    """The faults that are switched on, in the order of being so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ordered: list[Ordered] = []
        self.released = asyncio.Event()
        """Set when the fake ends, so that what hangs ends."""

    def add(self, ordered: Ordered) -> None:
        """Switch one on."""
        with self._lock:
            self._ordered.append(ordered)

    def clear(self) -> None:
        """Switch all off; what hangs goes on hanging."""
        with self._lock:
            self._ordered.clear()

    def take(self, text: str, kinds: frozenset[Fault]) -> Ordered | None:
        """The first one for this request or event, counted."""
        with self._lock:
            for each in self._ordered:
                if each.fault not in kinds or not fnmatch.fnmatchcase(text, each.on):
                    continue
                if each.after > 0:
                    each.after -= 1
                    continue
                if each.times is not None:
                    each.times -= 1
                    if each.times == 0:
                        self._ordered.remove(each)
                return each
        return None

    async def misbehave(
        self, request: web.Request, ordered: Ordered, answer: web.StreamResponse
    ) -> web.StreamResponse:
        """Spoil the answer to a request; the platform itself forms its 429 and 500."""
        match ordered.fault:
            case Fault.HTML:
                return web.Response(text=SIGN_IN_PAGE, content_type="text/html")
            case Fault.HANG:
                await self.released.wait()
            case Fault.CLOSE if request.transport is not None:
                request.transport.close()
            case Fault.RESET:
                cut(request.protocol)
            case Fault.SLOW | Fault.HALF:
                return await _send_pieces(request, ordered, answer)
        return web.Response()


async def _send_pieces(
    request: web.Request, ordered: Ordered, answer: web.StreamResponse
) -> web.StreamResponse:
    assert isinstance(answer, web.Response)
    body = answer.body if isinstance(answer.body, bytes) else b""
    stream = web.StreamResponse(status=answer.status, headers=answer.headers)
    stream.content_length = len(body)
    await stream.prepare(request)
    if ordered.fault is Fault.HALF:
        await stream.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return stream
    step = max(1, -(-len(body) // PIECES))
    for at in range(0, len(body), step):
        await stream.write(body[at : at + step])
        await asyncio.sleep(ordered.seconds / PIECES)
    return stream


def cut(connection: RequestHandler) -> None:
    """Reset a connection."""
    if connection.transport is not None:
        raw = connection.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        connection.transport.abort()
