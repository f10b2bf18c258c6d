"""How things are written to a client: as server-sent events, or as frames of a WebSocket."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from enum import Enum

from wsproto.frame_protocol import CloseReason

from bullpen.api.streams.documents import Document, encode

RETRY_MILLISECONDS = 2000
"""After so long a browser comes back that was cut off."""

LONGEST_REASON = 120
"""A WebSocket's last frame has room for 123 bytes."""

_TEXT, _CLOSE = 0x81, 0x88
"""The first byte of a frame that is a whole message."""


class Ending(Enum):
    """Why a stream ends; the name that it has in SSE, and the number in a WebSocket."""

    DROPPED = ("dropped", CloseReason.TRY_AGAIN_LATER)
    """It did not read as fast as things happen."""
    CLOSED = ("closed", CloseReason.POLICY_VIOLATION)
    """Its key opens nothing any more."""
    CLOSING = ("closing", CloseReason.GOING_AWAY)
    """The process stops."""
    FAILED = ("failed", CloseReason.INTERNAL_ERROR)
    """The store cannot be read."""

    @property
    def patient(self) -> bool:
        """Whether what waits for the client is still sent."""
        return self in (Ending.CLOSING, Ending.FAILED)

    @property
    def event(self) -> str:
        """Its name in SSE."""
        return self.value[0]

    @property
    def code(self) -> int:
        """Its number in a WebSocket."""
        return int(self.value[1])


class Wire(ABC):
    """One of the two ways to write."""

    one_way: bool
    """Whether the client has nothing to say."""
    keep_alive: bytes
    """What says nothing, and keeps those between from closing the connection; may be empty."""

    @abstractmethod
    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """One JSON document under this name, and the id that it leaves with the client."""

    def alone(self, name: str, document: bytes, number: int) -> bytes:
        """The reference's document, where the event's own does not come after it."""
        return self.frame(name, document, number)

    def hello(self, position: int, timestamp: int) -> bytes:
        """The first: with an id, so that who is cut off before anything happens loses nothing."""
        document: Document = {"type": "connected", "timestamp": timestamp, "position": position}
        return self.frame("connected", encode(document), position)

    @abstractmethod
    def goodbye(self, ending: Ending, reason: str, timestamp: int) -> bytes:
        """The last that a client is told."""

    def note(self, document: Document) -> bytes:
        """Something that is no event; its type is its name."""
        return self.frame(str(document["type"]), encode(document))


class ServerSentEvents(Wire):
    """As `EventSource` reads it."""

    one_way = True
    keep_alive = b": keep-alive\n\n"

    def hello(self, position: int, timestamp: int) -> bytes:
        """With the time after which to come back."""
        return b"retry: %d\n" % RETRY_MILLISECONDS + super().hello(position, timestamp)

    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """The id is taken by the client when the frame is complete, and not before."""
        head = b"" if number is None else b"id: %d\n" % number
        return head + b"event: " + name.encode() + b"\ndata: " + document + b"\n\n"

    def goodbye(self, ending: Ending, reason: str, timestamp: int) -> bytes:
        """An event without an id."""
        return self.note({"type": ending.event, "timestamp": timestamp, "reason": reason})


class WebSocketFrames(Wire):
    """Unmasked text frames, as a server sends them. Its pings are flask-sock's."""

    one_way = False
    keep_alive = b""

    def frame(self, name: str, document: bytes, number: int | None = None) -> bytes:
        """The name and the id are in the document."""
        return _head(_TEXT, len(document)) + document

    def alone(self, name: str, document: bytes, number: int) -> bytes:
        """With the id in the document: there is nowhere else."""
        return self.frame(name, b'{"id":%d,' % number + document[1:])

    def goodbye(self, ending: Ending, reason: str, timestamp: int) -> bytes:
        """A frame that closes."""
        text = reason.encode()[:LONGEST_REASON].decode(errors="ignore").encode()
        return _head(_CLOSE, len(text) + 2) + struct.pack(">H", ending.code) + text


SSE = ServerSentEvents()
WEBSOCKET = WebSocketFrames()


def _head(first: int, length: int) -> bytes:
    if length < 126:
        return struct.pack(">BB", first, length)
    if length < 1 << 16:
        return struct.pack(">BBH", first, 126, length)
    return struct.pack(">BBQ", first, 127, length)
