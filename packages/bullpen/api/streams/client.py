"""One client of the hub: its filter, its socket, and its queued frames."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from bullpen.api.streams.documents import ALIASES
from bullpen.api.streams.frames import EncodedEvent, StreamProtocol
from bullpen.core.access.keys import Key
from bullpen.core.events.log import EventFilter

MAX_PENDING_BYTES = 1 << 20
"""A client with more queued bytes is dropped; it can reconnect."""

LOW_PENDING_BYTES = 1 << 16
"""A client with at most this many queued bytes gets the next page of its backlog."""

SEND_BUFFER = 1 << 17
"""The kernel's buffer for a client, which would otherwise grow to megabytes."""

DEAD_MILLISECONDS = 120_000
"""A peer that acknowledges nothing for this time is dropped."""

FRAMES_PER_CALL = 64

NO_NAMES: frozenset[str] = frozenset()

FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filter of a client; None matches everything."""

    types: frozenset[str] | None = None
    """Bullpen's or TinyAGI's names of events."""
    agent: str | None = None
    conversation_id: str | None = None
    team: str | None = None
    reach: frozenset[str] | None = None
    """The agents of the key; events without an agent require a key that reaches all agents."""

    def names_for(self, event: EncodedEvent) -> frozenset[str]:
        """Return the names under which the client gets the event; none if it does not match."""
        record = event.record
        if self.reach is not None and record.agent not in self.reach:
            return NO_NAMES
        if self.agent is not None and record.agent != self.agent:
            return NO_NAMES
        if self.conversation_id is not None and record.conversation_id != self.conversation_id:
            return NO_NAMES
        if self.team is not None and event.team != self.team:
            return NO_NAMES
        return event.names if self.types is None else event.names & self.types

    def frames(self, wire: StreamProtocol, events: Iterable[EncodedEvent]) -> list[bytes]:
        """Return the frames of the matching events."""
        named = ((each, self.names_for(each)) for each in events)
        return [each.frame(wire, names) for each, names in named if names]

    @property
    def store_filter(self) -> EventFilter:
        """The same for a query; it may match more, and never less."""
        agents = self.reach
        if self.agent is not None:
            mine = frozenset({self.agent})
            agents = mine if agents is None else agents & mine
        types = None if self.types is None else add_own_names(self.types)
        return EventFilter(types=types, agents=agents, conversation_id=self.conversation_id)


def add_own_names(types: frozenset[str]) -> frozenset[str]:
    """Add Bullpen's names for events that are given by TinyAGI's names."""
    return types | {own for own, aliases in ALIASES.items() if types.intersection(aliases)}


class Client:
    """A connection that follows the events, and the frames that its socket has not taken yet.

    It belongs to the hub and is guarded by the hub's lock; only the hub's thread writes to the
    socket.
    """

    def __init__(
        self, connection: socket.socket, wire: StreamProtocol, key: Key, wanted: Filter
    ) -> None:
        self.socket = connection
        self.wire = wire
        self.key = key
        self.filter = wanted
        self.reads = wire.one_way
        """Whether the hub reads from the socket; a WebSocket has its own thread for that."""
        self.position = 0
        """The id up to which it has every event that it wants."""
        self.following = False
        self.begun = False
        """Something was written to it; the head of the answer must come first."""
        self.closing = False
        """It gets no new frames: those that wait are sent, and then it is closed."""
        self.shut = False
        """The sending direction is shut down."""
        self.disconnected = False
        """Nothing more can be written to it."""
        self.deadline = float("inf")
        """When the socket is closed at the latest."""
        self.drained = threading.Event()
        """Set while few bytes wait, and at the end."""
        self.drained.set()
        self.on_drained: Callable[[Client], None] | None = None
        """Called whenever few bytes wait; it must not wait for anything."""
        self.pending = 0
        """The bytes that wait."""
        self._frames: deque[bytes] = deque()
        self._sent = 0
        """How much of the first frame was sent."""
        self._head_sent = False
        """The head of the answer, the first frame of all, was sent, or begun."""
        _prepare(connection)

    def fileno(self) -> int:
        """For the poller."""
        return self.socket.fileno()

    def push(self, frames: Sequence[bytes]) -> bool:
        """Queue frames; false if so much waits already that the client must be dropped."""
        if self.closing or self.disconnected:
            return True
        if self.pending > MAX_PENDING_BYTES:
            return False
        self.begun = True
        self._frames.extend(frames)
        self.pending += sum(map(len, frames))
        if self.pending > LOW_PENDING_BYTES:
            self.drained.clear()
        return True

    def send(self, whole: bytes, frames: Sequence[bytes]) -> bool:
        """As `push`, but send at once if nothing waits; `whole` is the frames joined."""
        if self.pending or self.closing or self.disconnected:
            return self.push(frames)
        taken = self._write([whole])
        if taken < len(whole):
            index = 0
            while taken >= len(frames[index]):
                taken -= len(frames[index])
                index += 1
            self.push(frames[index:])
            if not self.disconnected:
                self._sent = taken
                self.pending -= taken
        return True

    def flush(self) -> None:
        """Send what the socket takes."""
        while self._frames and not self.disconnected:
            batch: list[bytes | memoryview] = list(islice(self._frames, FRAMES_PER_CALL))
            batch[0] = memoryview(self._frames[0])[self._sent :]
            taken = self._write(batch)
            if taken == 0:
                break
            self._advance(taken)
        if self.pending <= LOW_PENDING_BYTES:
            self._drain()

    def end(self, goodbye: bytes, seconds: float, *, at_once: bool) -> None:
        """Write this as the last frame, and close. `at_once`: frames that wait are discarded.

        The head of the answer, and a frame that was sent in part, are completed: the last one must
        be readable.
        """
        if self.closing or self.disconnected:
            return
        if not self.begun:
            self.leave()
            return
        if at_once:
            begun = [self._frames[0]] if self._sent or not self._head_sent else []
            self._frames = deque(begun)
            self.pending = sum(map(len, begun)) - self._sent
        if goodbye:
            self._frames.append(goodbye)
            self.pending += len(goodbye)
        self.following = False
        self.closing = True
        self.deadline = time.monotonic() + seconds
        self._drain()

    def finish(self, seconds: float) -> None:
        """Shut down the sending direction once everything was sent."""
        if self.closing and not self.shut and not self._frames and not self.disconnected:
            self.shut = True
            self.deadline = min(self.deadline, time.monotonic() + seconds)
            self.shutdown(socket.SHUT_WR)

    def shutdown(self, how: int) -> None:
        """End one direction of the connection, or both."""
        try:
            self.socket.shutdown(how)
        except OSError:
            self.leave()

    def receive(self) -> None:
        """Read and discard: all that an SSE client can tell is that it disconnected."""
        try:
            if not self.socket.recv(1 << 16, socket.MSG_DONTWAIT):
                self.leave()
        except BlockingIOError:
            return
        except OSError:
            self.leave()

    def leave(self) -> None:
        """Write nothing more."""
        self.disconnected = True
        self.following = False
        self._frames.clear()
        self.pending = self._sent = 0
        self._drain()

    def close(self) -> None:
        """Give the socket back to the system."""
        self.leave()
        self.socket.close()

    def _drain(self) -> None:
        self.drained.set()
        if self.on_drained is not None:
            self.on_drained(self)

    def _advance(self, taken: int) -> None:
        self.pending -= taken
        taken += self._sent
        while self._frames and taken >= len(self._frames[0]):
            taken -= len(self._frames.popleft())
        self._sent = taken

    def _write(self, buffers: Sequence[bytes | memoryview]) -> int:
        """How many bytes the socket took."""
        try:
            taken = self.socket.sendmsg(buffers, [], FLAGS)
            self._head_sent = True
            return taken
        except BlockingIOError:
            return 0
        except OSError:
            self.leave()
            return 0


def _prepare(connection: socket.socket) -> None:
    if connection.family == socket.AF_UNIX:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_MILLISECONDS)
