"""The gate in front of the webhook listener: bounds the number and the duration of connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

MAX_CONNECTIONS = 400
"""Twice a burst of 200 requests, each of which has a connection of its own."""
RECEIVE_SECONDS = 5.0
"""The time in which a request must arrive completely, from the connection on."""
ROUNDS_TO_ACCEPT = 5
"""Rounds of the event loop in which an accepted connection reaches its protocol."""


class Gate:
    """Lets connections in to an HTTP server, each for one request.

    When it is full, the connection is cut that has been sending its request for the longest time.
    """

    def __init__(
        self,
        serve: Callable[[], asyncio.Protocol],
        *,
        max_connections: int = MAX_CONNECTIONS,
        receive_seconds: float = RECEIVE_SECONDS,
    ) -> None:
        self._serve = serve
        self._most = max_connections
        self._seconds = receive_seconds
        self._open: set[_Connection] = set()
        self._receiving: dict[asyncio.BaseTransport, _Connection] = {}

    def __call__(self) -> asyncio.Protocol:
        """The protocol of a new connection."""
        return _Connection(self, self._serve())

    def received(self, transport: asyncio.BaseTransport | None, seconds: float) -> None:
        """The request of this connection is complete; its answer may take this long."""
        connection = None if transport is None else self._receiving.pop(transport, None)
        if connection is not None:
            connection.limit(seconds)

    def _enter(self, connection: _Connection, transport: asyncio.Transport) -> bool:
        """Whether this connection may stay."""
        if len(self._open) >= self._most:
            if not self._receiving:
                return False
            oldest, slow = next(iter(self._receiving.items()))
            del self._receiving[oldest]
            slow.abort()
            self._open.discard(slow)
        self._open.add(connection)
        self._receiving[transport] = connection
        connection.limit(self._seconds)
        return True

    def _leave(self, connection: _Connection, transport: asyncio.BaseTransport) -> None:
        self._open.discard(connection)
        self._receiving.pop(transport, None)


async def stop_accepting(descriptors: Iterable[int]) -> None:
    """Accept no more connections at these listening sockets, before their server is closed.

    A server that is closed while it accepts a connection leaves it open (CPython gh-109564).
    """
    for each in descriptors:
        asyncio.get_running_loop().remove_reader(each)
    for _ in range(ROUNDS_TO_ACCEPT):
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """A connection that ends at a certain time; everything else is left to the HTTP server."""

    def __init__(self, gate: Gate, inner: asyncio.Protocol) -> None:
        self._gate = gate
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, seconds: float) -> None:
        """Cut it after this time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def abort(self) -> None:
        """Cut it."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, or cut it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # A refused connection is also given to the server, which expects `connection_lost`.
        entered = self._gate._enter(self, transport)
        self._inner.connection_made(transport)
        if not entered:
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Make room for another one."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._gate._leave(self, self._transport)
        self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()
