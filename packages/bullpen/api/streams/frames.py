"""Streams of events as frames, in SSE and WebSocket."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum

from wsproto.frame_protocol import CloseReason

from bullpen.api.streams.documents import (
    Document,
    alias_documents,
    encode,
    event_document,
    event_team,
)
from bullpen.core.events.log import EventRecord
from bullpen.core.inspect.event_details import event_details
from bullpen.core.store.base import Store

RETRY_MILLISECONDS = 2000
"""The time after which a disconnected browser reconnects."""

MAX_REASON_BYTES = 120
"""The last frame of a WebSocket holds up to 123 bytes."""

_TEXT, _CLOSE = 0x81, 0x88
"""The first byte of a frame that is a whole message."""


class EndReason(Enum):
    """Why a stream ends, with the name in SSE and the code in a WebSocket."""

    DROPPED = ("dropped", CloseReason.TRY_AGAIN_LATER)
    """The client read too slowly."""
    CLOSED = ("closed", CloseReason.POLICY_VIOLATION)
    """The key was revoked or has expired."""
    CLOSING = ("closing", CloseReason.GOING_AWAY)
    """The process stops."""
    FAILED = ("failed", CloseReason.INTERNAL_ERROR)
    """The store cannot be read."""

    @property
    def patient(self) -> bool:
        """Whether queued frames are still sent."""
        return self in (EndReason.CLOSING, EndReason.FAILED)

    @property
    def event(self) -> str:
        """Its name in SSE."""
        return self.value[0]

    @property
    def code(self) -> int:
        """Its number in a WebSocket."""
        return int(self.value[1])


class StreamProtocol(ABC):
    """The framing of a stream: SSE or WebSocket."""

    one_way: bool
    """Whether the client cannot send anything."""
    keep_alive: bytes
    """A frame without content that keeps proxies from closing the connection; may be empty."""

    @abstractmethod
    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """Frame one JSON document under this name, with the id that the client keeps."""

    def alone(self, name: str, document: bytes, number: int) -> bytes:
        """Frame TinyAGI's document if Bullpen's does not follow it."""
        return self.frame(name, document, number)

    def hello(self, position: int, timestamp: int) -> bytes:
        """The first frame; its id lets a client that disconnects at once resume without loss."""
        document: Document = {"type": "connected", "timestamp": timestamp, "position": position}
        return self.frame("connected", encode(document), position)

    @abstractmethod
    def goodbye(self, ending: EndReason, reason: str, timestamp: int) -> bytes:
        """The last frame."""

    def note(self, document: Document) -> bytes:
        """A frame that is not an event, named by its type."""
        return self.frame(str(document["type"]), encode(document))


class ServerSentEvents(StreamProtocol):
    """Frames as `EventSource` reads them."""

    one_way = True
    keep_alive = b": keep-alive\n\n"

    def hello(self, position: int, timestamp: int) -> bytes:
        """The first frame, with the reconnection time."""
        return b"retry: %d\n" % RETRY_MILLISECONDS + super().hello(position, timestamp)

    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """The client keeps the id once the frame is complete."""
        head = b"" if number is None else b"id: %d\n" % number
        return head + b"event: " + name.encode() + b"\ndata: " + document + b"\n\n"

    def goodbye(self, ending: EndReason, reason: str, timestamp: int) -> bytes:
        """An event without an id."""
        return self.note({"type": ending.event, "timestamp": timestamp, "reason": reason})


class WebSocketFrames(StreamProtocol):
    """Unmasked text frames, as a server sends them. Its pings are flask-sock's."""

    one_way = False
    keep_alive = b""

    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """Frame the document, which has the name and the id."""
        return _head(_TEXT, len(document)) + document

    def alone(self, name: str, document: bytes, number: int) -> bytes:
        """Frame TinyAGI's document with the id in it."""
        return self.frame(name, b'{"id":%d,' % number + document[1:])

    def goodbye(self, ending: EndReason, reason: str, timestamp: int) -> bytes:
        """A frame that closes."""
        text = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
        return _head(_CLOSE, len(text) + 2) + struct.pack(">H", ending.code) + text


SSE = ServerSentEvents()
WEBSOCKET = WebSocketFrames()


def _head(first: int, length: int) -> bytes:
    if length < 126:
        return struct.pack(">BB", first, length)
    if length < 1 << 16:
        return struct.pack(">BBH", first, 126, length)
    return struct.pack(">BBQ", first, 127, length)


class EncodedEvent:
    """One event with its documents and cached frames."""

    __slots__ = ("_aliases", "_frames", "_own", "names", "record", "team")

    def __init__(
        self,
        record: EventRecord,
        own: bytes,
        team: str | None,
        aliases: Sequence[tuple[str, bytes]],
    ) -> None:
        self.record = record
        self.team = team
        """The team of the event, or of its message."""
        self.names = frozenset({record.type, *(name for name, _ in aliases)})
        """Its names in Bullpen and in TinyAGI."""
        self._own = own
        self._aliases = aliases
        self._frames: dict[tuple[StreamProtocol, frozenset[str]], bytes] = {}

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return 2 * (len(self._own) + sum(len(document) for _, document in self._aliases))

    def frame(self, wire: StreamProtocol, names: frozenset[str]) -> bytes:
        """Return its bytes in this protocol, under these names."""
        frame = self._frames.get((wire, names))
        if frame is None:
            frame = self._frames[wire, names] = self._make_frame(wire, names)
        return frame

    def _make_frame(self, wire: StreamProtocol, names: frozenset[str]) -> bytes:
        """Give the id to the last document only: a client that misses it gets all of them again."""
        aliases = [each for each in self._aliases if each[0] in names]
        if self.record.type in names:
            last = wire.frame(self.record.type, self._own, self.record.id)
        else:
            last = wire.alone(*aliases.pop(), self.record.id)
        return b"".join([*(wire.frame(*each) for each in aliases), last])


def encode_events(store: Store, records: Sequence[EventRecord]) -> list[EncodedEvent]:
    """Encode events with details of their agents and messages, in one transaction."""
    with store.read() as tx:
        all_details = event_details(tx, records)
    encoded = []
    for record, details in zip(records, all_details, strict=True):
        own = encode(event_document(record, details))
        documents = alias_documents(record, details)
        aliases = [(str(document["type"]), encode(document)) for document in documents]
        encoded.append(EncodedEvent(record, own, event_team(record, details), aliases))
    return encoded
