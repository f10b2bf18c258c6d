"""Where a request begins and ends: its head and body, read as strictly as RFC 9112 allows.

A proxy in front that reads a request in another way than this server would let one person's bytes
become another person's request. So what can be read in two ways is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bullpen.core.errors import BadRequest

MAX_REQUEST_LINE = 8190
MAX_HEAD_BYTES = 32 << 10
MAX_CHUNK_LINE = 1024
"""The longest line of a chunk's size, with its extensions."""

MAX_TRAILER_BYTES = 8 << 10
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_FIELD = _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n"
_HEAD = re.compile(
    rb"[!$%&'*+\-.^_`|~0-9A-Z]{3,20} [\x21-\x7e\x80-\xff]+ HTTP/1\.([01])\r\n"
    rb"(?:" + _FIELD + rb")*\r\n"
)
_FRAMING = re.compile(
    rb"\r\n(content-length|transfer-encoding|host|expect):[\t ]*([^\r]*)", re.IGNORECASE
)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[\t ]*;[\t\x20-\x7e\x80-\xff]*)?")
_TRAILER = re.compile(_FIELD)


@dataclass(slots=True)
class Head:
    """The head of a request, and what it says of the body."""

    text: bytes
    """All of it, with the blank line at the end."""
    length: int | None
    """The length of the body; None if it comes in chunks."""
    waits: bool
    """The client sends the body once it is told to go on."""


def take_head(received: bytearray) -> Head | None:
    """Take the head off what was received; None if it is still to come."""
    end = received.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
    if end < 0:
        line = received.find(b"\r\n", 0, MAX_REQUEST_LINE + 2)
        if line < 0 and len(received) > MAX_REQUEST_LINE + 2:
            raise BadRequest("the request line is too long")
        if len(received) >= MAX_HEAD_BYTES:
            raise BadRequest("the head of the request is too long")
        return None
    text = bytes(received[: end + 4])
    if text.find(b"\r\n") > MAX_REQUEST_LINE:
        raise BadRequest("the request line is too long")
    found = _HEAD.fullmatch(text)
    if found is None:
        raise BadRequest("the head of the request is malformed")
    del received[: end + 4]
    return _read_framing(text, later=found[1] == b"1")


def _read_framing(text: bytes, *, later: bool) -> Head:
    """What the fields say of the body; `later` than HTTP/1.0."""
    lengths, codings, hosts, waits = [], [], 0, False
    for name, value in _FRAMING.findall(text):
        match name.lower():
            case b"content-length":
                lengths.append(value.strip(b"\t "))
            case b"transfer-encoding":
                codings.append(value.strip(b"\t "))
            case b"host":
                hosts += 1
            case _:
                waits = later and value.strip(b"\t ").lower() == b"100-continue"
    if hosts > 1 or (later and not hosts):
        raise BadRequest("a request names its Host once")
    if codings:
        if not later or lengths or [each.lower() for each in codings] != [b"chunked"]:
            raise BadRequest("the Transfer-Encoding is malformed, or not alone")
        return Head(text, None, waits)
    if not lengths:
        return Head(text, 0, False)
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise BadRequest("the Content-Length is malformed, or there is more than one")
    return Head(text, int(lengths[0]), waits)


class Body:
    """Takes a body off what is received, piece by piece."""

    def __init__(self, length: int | None) -> None:
        self._chunked = length is None
        self.left = length or 0
        """How much is left of the body, or of the chunk."""
        self._in_chunk = False
        self._in_trailers = False
        self._trailers = 0
        self.done = length == 0

    def take(self, received: bytearray, limit: int) -> bytes:
        """Take the next bytes of the body, as many as there are, up to a limit."""
        if not self._chunked:
            return self._take_some(received, limit)
        parts: list[bytes] = []
        while limit > 0 and not self.done and self._reach_data(received):
            part = self._take_some(received, limit)
            if not part:
                break
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)

    def _take_some(self, received: bytearray, limit: int) -> bytes:
        part = bytes(received[: min(self.left, limit)])
        del received[: len(part)]
        self.left -= len(part)
        if not self._chunked:
            self.done = not self.left
        return part

    def _reach_data(self, received: bytearray) -> bool:
        """Get past what stands between chunks; whether the next byte is one of the body."""
        while not self.left and not self.done:
            if self._in_trailers:
                if not self._skip_trailer(received):
                    return False
            elif self._in_chunk:
                if len(received) < 2:
                    return False
                if received[:2] != b"\r\n":
                    raise BadRequest("a chunk of the body does not end where it says")
                del received[:2]
                self._in_chunk = False
            elif not self._read_size(received):
                return False
        return not self.done

    def _read_size(self, received: bytearray) -> bool:
        line = _take_line(received, MAX_CHUNK_LINE)
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise BadRequest("the size of a chunk of the body is malformed")
        self.left = int(found[1], 16)
        self._in_chunk = self.left > 0
        self._in_trailers = not self.left
        return True

    def _skip_trailer(self, received: bytearray) -> bool:
        line = _take_line(received, MAX_TRAILER_BYTES - self._trailers)
        if line is None:
            return False
        if not line:
            self.done = True
        elif not _TRAILER.fullmatch(line + b"\r\n"):
            raise BadRequest("a trailer of the body is malformed")
        self._trailers += len(line) + 2
        return True


def _take_line(received: bytearray, limit: int) -> bytes | None:
    """Take a line off what was received, without its end; None if it is still to come."""
    end = received.find(b"\r\n", 0, max(0, limit))
    if end < 0:
        if len(received) >= limit:
            raise BadRequest("a line in the body is too long")
        return None
    line = bytes(received[:end])
    del received[: end + 2]
    return line
