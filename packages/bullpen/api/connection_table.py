"""The connections that no thread serves: polled, timed, and closed when there are too many.

A thread gets a connection when the request is there, and gives it back with the answer: so clients
that send or read slowly cost a socket and some memory, and never a thread.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bullpen.api.connection import Connection, Received
from bullpen.core.errors import BadRequest, BullpenError, Overloaded, TooSlow

MAX_HELD_BYTES = 48 << 20
"""The maximum number of bytes that the connections in one stage hold together."""

LINGER_SECONDS = 2.0
"""How long the client may take to read the last response before its connection is reset."""

CHECK_SECONDS = 0.25


class Poller(Protocol):
    """The used part of a selector."""

    def register(
        self, fileobj: Connection, events: int, data: Callable[[Connection], None]
    ) -> object: ...

    def unregister(self, fileobj: Connection) -> object: ...


class Stage(Enum):
    """The stage of a connection: what it is waiting for."""

    RECEIVING = "receiving"
    """A request, of which a part may have arrived."""
    IDLE = "idle"
    """Its next request."""
    QUEUED = "queued"
    """A thread that may wait for its body."""
    SENDING = "sending"
    """Room for the rest of a response."""
    LINGERING = "lingering"
    """The client, to close the connection."""


class Then(Enum):
    """The step after a response."""

    KEEP = "keep"
    """The next request."""
    CLOSE = "close"
    CONTINUE = "continue"
    """More of the response, which a thread produces when the present part was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of connections."""

    connections: int
    waiting: int
    """The maximum number from one address without a complete request."""
    bodies: int
    """The maximum number of threads that wait for bodies."""
    keep_alive_seconds: float


class ConnectionTable:
    """All connections of a process; everything here runs in the thread that polls.

    If it is full, the oldest connection without a whole request is closed for a new one.
    """

    def __init__(
        self,
        poller: Poller,
        limits: Limits,
        serve: Callable[[Connection], None],
        refuse: Callable[[Connection, BullpenError], None],
        closed: Callable[[], None],
    ) -> None:
        self._poller = poller
        self._limits = limits
        self._serve = serve
        self._refuse = refuse
        self._closed = closed
        self._count = 0
        self._stages: dict[Stage, dict[Connection, Callable[[Connection], None] | None]] = {
            stage: {} for stage in Stage
        }
        self._held = dict.fromkeys(Stage, 0)
        self._sizes: dict[Connection, int] = {}
        self._waiting: Counter[str] = Counter()
        """The addresses of the connections that are receiving."""
        self._then: dict[Connection, Then] = {}
        """What follows the answers that are being sent."""
        self._bodies: set[Connection] = set()
        """Those whose threads may wait for their bodies."""
        self._next_check = 0.0
        self._stopping = False

    @property
    def busy(self) -> bool:
        """Whether a connection has a deadline that is soon."""
        stages = self._stages
        return any(stages[stage] for stage in Stage if stage is not Stage.IDLE)

    def add(self, connection: Connection) -> None:
        """Take a new connection."""
        self._count += 1
        if self._count >= self._limits.connections:
            self._close_one()
        self._receive(connection, None)

    def give_back(self, connection: Connection, then: Then) -> None:
        """Take a connection that a thread has served."""
        if connection in self._bodies:
            self._bodies.discard(connection)
            self._serve_queued()
        self._finish(connection, then)

    def check(self) -> None:
        """Close connections after their deadline, and serve requests with late bodies."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_SECONDS
        for stage, members in self._stages.items():
            for each in [each for each in members if now >= each.deadline]:
                self._expire(each, stage)
        for each in [each for each in self._stages[Stage.RECEIVING] if each.late]:
            if len(self._bodies) >= self._limits.bodies:
                break
            self._leave(each, Stage.RECEIVING)
            self._start(each)

    def stop(self) -> None:
        """Close the connections without a request; begun requests may end."""
        self._stopping = True
        for stage in (Stage.RECEIVING, Stage.IDLE):
            for each in [each for each in self._stages[stage] if each.idle]:
                self._leave(each, stage)
                self._close(each)

    def _receive(self, connection: Connection, stage: Stage | None) -> None:
        """Read the received bytes, and serve the request if it is complete."""
        try:
            received = connection.receive()
        except BadRequest as error:
            if stage is not None:
                self._leave(connection, stage)
            self._refuse(connection, error)
            self._finish(connection, Then.CLOSE)
            return
        if stage is Stage.RECEIVING and received is Received.PART and not connection.idle:
            self._weigh(connection, stage)
            return
        if stage is not None:
            self._leave(connection, stage)
        self._go_on(connection, received)

    def _go_on(self, connection: Connection, received: Received) -> None:
        match received:
            case Received.REQUEST:
                self._start(connection)
            case Received.PART:
                stage = Stage.RECEIVING
                if connection.idle and connection.requests:
                    stage = Stage.IDLE
                    connection.rest(self._limits.keep_alive_seconds)
                if self._stopping and connection.idle:
                    self._close(connection)
                else:
                    self._enter(connection, stage)
            case Received.END:
                self._close(connection)

    def _start(self, connection: Connection) -> None:
        """Pass the request to a thread."""
        if not connection.has_body:
            if len(self._bodies) >= self._limits.bodies:
                self._enter(connection, Stage.QUEUED)
                return
            self._bodies.add(connection)
        self._serve(connection)

    def _serve_queued(self) -> None:
        queued = self._stages[Stage.QUEUED]
        if queued and len(self._bodies) < self._limits.bodies:
            connection = next(iter(queued))
            self._leave(connection, Stage.QUEUED)
            self._start(connection)

    def _finish(self, connection: Connection, then: Then) -> None:
        """Send the rest of the response, then continue."""
        try:
            sent = connection.flush()
        except OSError:
            self._close(connection)
            return
        if not sent:
            self._then[connection] = then
            self._enter(connection, Stage.SENDING)
            return
        match then:
            case Then.CONTINUE:
                self._serve(connection)
            case Then.KEEP:
                connection.expect_next()
                try:
                    received = connection.advance()
                except BadRequest as error:
                    self._refuse(connection, error)
                    self._finish(connection, Then.CLOSE)
                else:
                    self._go_on(connection, received)
            case Then.CLOSE:
                self._linger(connection)

    def _linger(self, connection: Connection) -> None:
        """Close; after a while if more of a request may arrive: a reset could undo the response."""
        if connection.has_body and not connection.size:
            self._close(connection)
            return
        try:
            connection.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._close(connection)
            return
        connection.deadline = time.monotonic() + LINGER_SECONDS
        self._enter(connection, Stage.LINGERING)

    def _expire(self, connection: Connection, stage: Stage) -> None:
        self._leave(connection, stage)
        if stage is Stage.QUEUED:
            self._refuse(connection, Overloaded("too many long requests are received already"))
        elif stage is Stage.RECEIVING and not connection.answered:
            self._refuse(connection, TooSlow("the request came too slowly"))
        else:
            self._then.pop(connection, None)
            self._close(connection)
            return
        self._finish(connection, Then.CLOSE)

    def _enter(self, connection: Connection, stage: Stage) -> None:
        """Put the connection into this stage, and make room for it."""
        ready = self._on_ready(connection, stage)
        self._stages[stage][connection] = ready
        if ready is not None:
            sends = stage is Stage.SENDING
            events = selectors.EVENT_WRITE if sends else selectors.EVENT_READ
            self._poller.register(connection, events, ready)
        self._sizes[connection] = 0
        if stage is Stage.RECEIVING:
            self._waiting[connection.client[0]] += 1
            self._limit_address(connection.client[0])
        if connection in self._sizes:
            self._weigh(connection, stage)

    def _weigh(self, connection: Connection, stage: Stage) -> None:
        """Count its bytes; if all together hold too many, close the oldest that hold some."""
        size = connection.size
        self._held[stage] += size - self._sizes[connection]
        self._sizes[connection] = size
        while self._held[stage] > MAX_HELD_BYTES:
            self._drop(next(each for each in self._stages[stage] if self._sizes[each]), stage)

    def _limit_address(self, address: str) -> None:
        if self._waiting[address] > self._limits.waiting:
            members = self._stages[Stage.RECEIVING]
            oldest = next(each for each in members if each.client[0] == address)
            self._drop(oldest, Stage.RECEIVING)

    def _on_ready(
        self, connection: Connection, stage: Stage
    ) -> Callable[[Connection], None] | None:
        match stage:
            case Stage.RECEIVING | Stage.IDLE:
                return self._on_received
            case Stage.SENDING:
                return self._on_writable
            case Stage.LINGERING:
                return self._on_discarded
            case Stage.QUEUED:
                return None

    def _on_received(self, connection: Connection) -> None:
        for stage in (Stage.RECEIVING, Stage.IDLE):
            if connection in self._stages[stage]:
                self._receive(connection, stage)
                break

    def _on_writable(self, connection: Connection) -> None:
        if connection in self._stages[Stage.SENDING]:
            self._leave(connection, Stage.SENDING)
            self._finish(connection, self._then.pop(connection))

    def _on_discarded(self, connection: Connection) -> None:
        if connection in self._stages[Stage.LINGERING] and not connection.discard():
            self._drop(connection, Stage.LINGERING)

    def _leave(self, connection: Connection, stage: Stage) -> None:
        if self._stages[stage].pop(connection) is not None:
            self._poller.unregister(connection)
        self._held[stage] -= self._sizes.pop(connection)
        if stage is Stage.RECEIVING:
            address = connection.client[0]
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]

    def _close_one(self) -> None:
        """Make room: close the oldest connection without a request being served."""
        for stage in (Stage.LINGERING, Stage.RECEIVING, Stage.IDLE, Stage.QUEUED):
            if members := self._stages[stage]:
                self._drop(next(iter(members)), stage)
                break

    def _drop(self, connection: Connection, stage: Stage) -> None:
        self._leave(connection, stage)
        self._then.pop(connection, None)
        self._close(connection)

    def _close(self, connection: Connection) -> None:
        connection.close()
        self._count -= 1
        self._closed()
