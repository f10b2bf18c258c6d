"""Somebody at a WebSocket, frame by frame: so that a test sees what stands on the line."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

LIMIT_SECONDS = 90.0
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="

Document = dict[str, Any]


class Talker:
    """A connection. `last` is the id of the last event."""

    def __init__(self, url: str, token: str, query: str = "", **headers: str) -> None:
        place = urlsplit(url)
        assert place.hostname is not None
        assert place.port is not None
        self.socket = socket.create_connection((place.hostname, place.port), LIMIT_SECONDS)
        self.last: int | None = None
        self._data = b""
        fields = {
            "Host": place.netloc,
            "Authorization": f"Bearer {token}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": KEY,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"GET /api/ws?{query} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in fields.items() if value]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.head = self._until(b"\r\n\r\n").decode()

    @property
    def status(self) -> int:
        """What the handshake was answered with."""
        return int(self.head.split()[1])

    def send(self, opcode: int, payload: bytes) -> None:
        """One whole frame, masked as a client must."""
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        covered = int.from_bytes(payload, "big") ^ int.from_bytes(
            (mask * (size // 4 + 1))[:size], "big"
        )
        self.socket.sendall(head + mask + covered.to_bytes(size, "big"))

    def say(self, **command: object) -> None:
        """A command."""
        self.send(TEXT, json.dumps(command).encode())

    def ask(self, **command: object) -> Document:
        """A command, and what comes back; events in between are passed over."""
        self.say(ref="asked", **command)
        while (found := self.next()).get("ref") != "asked":
            pass
        return found

    def next(self) -> Document:
        """The next text."""
        opcode, payload = self.frame()
        assert opcode == TEXT, (opcode, payload)
        found: Document = json.loads(payload)
        if "id" in found and "timestamp" in found:
            self.last = found["id"]
        return found

    def upto(self, number: int) -> list[Document]:
        """The events up to the one that has this id."""
        found = [self.next()]
        while found[-1].get("id") != number:
            found.append(self.next())
        return found

    def until(self, name: str) -> list[Document]:
        """The texts up to the next of this type."""
        found = [self.next()]
        while found[-1]["type"] != name:
            found.append(self.next())
        return found

    def end(self) -> tuple[int, str, list[Document]]:
        """How it is closed, why, and what came before."""
        found: list[Document] = []
        while True:
            opcode, payload = self.frame()
            if opcode == CLOSE:
                return struct.unpack(">H", payload[:2])[0], payload[2:].decode(), found
            if opcode == TEXT:
                found.append(json.loads(payload))

    def frame(self) -> tuple[int, bytes]:
        """The next frame that is no question whether we are still there."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            assert time.monotonic() < deadline, "it asks, and says nothing else"
            opcode, payload = self._frame()
            if opcode != PING:
                return opcode, payload
            with suppress(OSError):  # it may have closed since
                self.send(PONG, payload)

    def _frame(self) -> tuple[int, bytes]:
        """The next frame; it must be whole, and not masked."""
        first, second = self._exactly(2)
        assert first & 0x70 == 0
        assert first & 0x80
        assert second < 128
        size = second
        if size == 126:
            (size,) = struct.unpack(">H", self._exactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._exactly(8))
        return first & 0x0F, self._exactly(size)

    def closed(self) -> bool:
        """Whether the other side has closed, without a word."""
        return self._data == b"" and self.socket.recv(1) == b""

    def close(self) -> None:
        """Go."""
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            more = self.socket.recv(1 << 16)
            assert more, f"it was closed within {self._data!r}"
            self._data += more
        found, self._data = self._data[:size], self._data[size:]
        return found

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._data:
            more = self.socket.recv(1 << 16)
            assert more, f"it was closed within {self._data!r}"
            self._data += more
        found, _, self._data = self._data.partition(mark)
        return found


def refused(url: str, token: str, query: str = "", **headers: str) -> int:
    """The status of a handshake; 101 is none that was refused."""
    talker = Talker(url, token, query, **headers)
    talker.close()
    return talker.status
