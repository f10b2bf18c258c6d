"""One subscriber of the hub: its socket, its buffer, and SSE or WebSocket framing."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from bullpen.api.streams.encode import ALIASES, EncodedEvent, EventNames, StreamProtocol
from bullpen.core.access.keys import Key
from bullpen.core.events.log import EventFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What an event must be; None is anything."""

    types: frozenset[str] | None = None
    """Its own name, or that which the reference has for it."""
    agent: str | None = None
    conversation_id: str | None = None
    team: str | None = None
    reach: frozenset[str] | None = None
    """The agents of the key; what belongs to no agent is for keys that reach all."""

    def part(self, shown: EncodedEvent) -> EventNames | None:
        """Under which names this client gets the event; None if it does not."""
        event = shown.event
        if self.reach is not None and event.agent not in self.reach:
            return None
        if self.agent is not None and event.agent != self.agent:
            return None
        if self.conversation_id is not None and event.conversation_id != self.conversation_id:
            return None
        if self.team is not None and shown.team != self.team:
            return None
        if self.types is None:
            return EventNames.BOTH
        own, alias = event.type in self.types, shown.alias in self.types
        if own and alias:
            return EventNames.BOTH
        return EventNames.OWN if own else EventNames.ALIAS if alias else None

    def frames(self, wire: StreamProtocol, shown: Iterable[EncodedEvent]) -> list[bytes]:
        """What a client is given of these events."""
        parts = ((each, self.part(each)) for each in shown)
        return [each.frame(wire, part) for each, part in parts if part is not None]

    @property
    def wanted(self) -> EventFilter:
        """The same for the store, as far as the store can tell: never less."""
        agents = self.reach
        if self.agent is not None:
            mine = frozenset({self.agent})
            agents = mine if agents is None else agents & mine
        types = None if self.types is None else add_own_names(self.types)
        return EventFilter(types=types, agents=agents, conversation_id=self.conversation_id)


def add_own_names(types: frozenset[str]) -> frozenset[str]:
    """Also our names of what the reference has others for."""
    return types | {own for own, alias in ALIASES.items() if alias in types}


# One who follows the events: the socket, and what it has not taken yet.
#
# All of it is the hub's, under its lock; only the hub's thread writes to the socket.

MAX_PENDING_BYTES = 1 << 20
"""So many bytes may wait for a client; then it is dropped, and can come back."""

LOW_PENDING_BYTES = 1 << 16
"""With so few waiting it can be given the next page of what happened before."""

SEND_BUFFER = 1 << 17
"""What the system keeps for a client besides; by itself it would let that grow to megabytes."""

DEAD_MILLISECONDS = 120_000
"""A peer that takes nothing for so long is gone, or as good as."""

AT_ONCE = 64
"""So many frames go out in one call."""

FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Client:
    """A connection, from the first byte that the hub writes to its end."""

    def __init__(
        self, connection: socket.socket, wire: StreamProtocol, key: Key, wanted: Filter
    ) -> None:
        self.socket = connection
        self.wire = wire
        self.key = key
        self.filter = wanted
        self.reads = wire.one_way
        """Whether the hub reads from the socket; a WebSocket has a thread of its own for that."""
        self.position = 0
        """The id up to which it was given everything that it wants."""
        self.following = False
        self.begun = False
        """Something was written to it: before the head of the answer nothing else may be."""
        self.over = False
        """Nothing more is written to it: what waits is sent, and then it is closed."""
        self.shut = False
        """The other side was told that nothing more comes."""
        self.gone = False
        """Nothing more can be written to it."""
        self.deadline = float("inf")
        """When the socket is closed, whatever the other side does."""
        self.drained = threading.Event()
        """Set while little waits, and when it is over."""
        self.drained.set()
        self.pending = 0
        """The bytes that wait."""
        self._frames: deque[bytes] = deque()
        self._sent = 0
        """Of the first frame."""
        _prepare(connection)

    def fileno(self) -> int:
        """For the poller."""
        return self.socket.fileno()

    def push(self, frames: Sequence[bytes]) -> bool:
        """Let these wait for the socket; false if so much waits already that it must be dropped."""
        if self.over or self.gone:
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
        """As `push`, but at once where nothing waits; `whole` is these frames in one piece."""
        if self.pending or self.over or self.gone:
            return self.push(frames)
        taken = self._write([whole])
        if taken < len(whole):
            at = 0
            while taken >= len(frames[at]):
                taken -= len(frames[at])
                at += 1
            self.push(frames[at:])
            if not self.gone:
                self._sent = taken
                self.pending -= taken
        return True

    def flush(self) -> None:
        """Send what the socket takes."""
        while self._frames and not self.gone:
            batch: list[bytes | memoryview] = list(islice(self._frames, AT_ONCE))
            batch[0] = memoryview(self._frames[0])[self._sent :]
            taken = self._write(batch)
            if taken == 0:
                break
            self._advance(taken)
        if self.pending <= LOW_PENDING_BYTES:
            self.drained.set()

    def end(self, goodbye: bytes, seconds: float, *, at_once: bool) -> None:
        """Write this as the last, and close. `at_once`: what waits is not sent any more.

        But a frame of which a part was sent is sent whole: what comes after it must be readable.
        """
        if self.over or self.gone:
            return
        if not self.begun:
            self.leave()
            return
        if at_once:
            begun = [self._frames[0]] if self._sent else []
            self._frames = deque(begun)
            self.pending = sum(map(len, begun)) - self._sent
        if goodbye:
            self._frames.append(goodbye)
            self.pending += len(goodbye)
        self.following = False
        self.over = True
        self.deadline = time.monotonic() + seconds
        self.drained.set()

    def finish(self, seconds: float) -> None:
        """Tell the other side that nothing more comes, once everything was sent."""
        if self.over and not self.shut and not self._frames and not self.gone:
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
        """Read and forget: who only listens has nothing to say, but that he is gone."""
        try:
            if not self.socket.recv(1 << 16, socket.MSG_DONTWAIT):
                self.leave()
        except BlockingIOError:
            return
        except OSError:
            self.leave()

    def leave(self) -> None:
        """Write nothing more."""
        self.gone = True
        self.following = False
        self._frames.clear()
        self.pending = self._sent = 0
        self.drained.set()

    def close(self) -> None:
        """Give the socket back to the system."""
        self.leave()
        self.socket.close()

    def _advance(self, taken: int) -> None:
        self.pending -= taken
        taken += self._sent
        while self._frames and taken >= len(self._frames[0]):
            taken -= len(self._frames.popleft())
        self._sent = taken

    def _write(self, buffers: Sequence[bytes | memoryview]) -> int:
        """How many bytes the socket took."""
        try:
            return self.socket.sendmsg(buffers, [], FLAGS)
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
