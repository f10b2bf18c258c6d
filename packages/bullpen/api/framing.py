"""The boundaries of a request: its head and body, parsed as strictly as RFC 9112 allows.

If a proxy and this server parsed a request differently, the bytes of one person could become the
request of another. So an ambiguous request is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bullpen.core.errors import BadRequest

MAX_REQUEST_LINE = 8190
MAX_HEAD_BYTES = 32 << 10
MAX_CHUNK_LINE = 1024
"""The longest line with a chunk's size and extensions."""

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
    """The head of a request, and the framing of its body."""

    text: bytes
    """The whole head with the blank line at the end."""
    length: int | None
    """The length of the body; None if it is chunked."""
    waits: bool
    """Whether the client waits for `100 Continue` before it sends the body."""


def take_head(received: bytearray) -> Head | None:
    """Take the head from the received bytes; None if it is incomplete."""
    end = received.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
    if end < 0:
        line = received.find(b"\r\n", 0, MAX_REQUEST_LINE + 2)
        if line < 0 and len(received) > MAX_REQUEST_LINE + 2:
            raise BadRequest("the request line is too long")
        if len(received) >= MAX_HEAD_BYTES:
            raise BadRequest("the request headers are too long")
        return None
    text = bytes(received[: end + 4])
    if text.find(b"\r\n") > MAX_REQUEST_LINE:
        raise BadRequest("the request line is too long")
    found = _HEAD.fullmatch(text)
    if found is None:
        raise BadRequest("malformed request line or headers")
    del received[: end + 4]
    return _read_framing(text, later=found[1] == b"1")


def _read_framing(text: bytes, *, later: bool) -> Head:
    """Return the framing of the body; `later` means later than HTTP/1.0."""
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
        raise BadRequest("the request must have exactly one Host header")
    if codings:
        if not later or lengths or [each.lower() for each in codings] != [b"chunked"]:
            raise BadRequest("malformed Transfer-Encoding, or Content-Length beside it")
        return Head(text, None, waits)
    if not lengths:
        return Head(text, 0, False)
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise BadRequest("malformed Content-Length, or more than one")
    return Head(text, int(lengths[0]), waits)


class Body:
    """Takes a body from the received bytes, piece by piece."""

    def __init__(self, length: int | None) -> None:
        self._chunked = length is None
        self.left = length or 0
        """The remaining bytes of the body, or of the chunk."""
        self._in_chunk = False
        self._in_trailers = False
        self._trailers = 0
        self.done = length == 0

    def take(self, received: bytearray, limit: int) -> bytes:
        """Take the next available bytes of the body, up to a limit."""
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
        """Skip the framing between chunks; return whether the next byte belongs to the body."""
        while not self.left and not self.done:
            if self._in_trailers:
                if not self._skip_trailer(received):
                    return False
            elif self._in_chunk:
                if len(received) < 2:
                    return False
                if received[:2] != b"\r\n":
                    raise BadRequest("a chunk of the body does not match its size")
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
            raise BadRequest("malformed size of a chunk of the body")
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
            raise BadRequest("malformed trailer of the body")
        self._trailers += len(line) + 2
        return True


def _take_line(received: bytearray, limit: int) -> bytes | None:
    """Take a line from the received bytes, without its end; None if it is incomplete."""
    end = received.find(b"\r\n", 0, max(0, limit))
    if end < 0:
        if len(received) >= limit:
            raise BadRequest("a line in the body is too long")
        return None
    line = bytes(received[:end])
    del received[: end + 2]
    return line
