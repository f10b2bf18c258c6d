"""Somebody who follows the events over SSE, and reads as slowly as a test wants."""

from __future__ import annotations

import json
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from bullpen.api.streams.client import Client, Filter
from bullpen.api.streams.frames import SSE
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.replay import catch_up
from bullpen.core.access.keys import OWNER_KEY, Key
from bullpen.core.store.base import Store

LIMIT_SECONDS = 90.0
KEEP_ALIVE_SECONDS = 0.2


@dataclass
class Frame:
    """What stands between two empty lines."""

    id: int | None = None
    event: str = ""
    data: Any = None
    comment: str = ""


@dataclass
class Listener:
    """One end of a connection. `last` is what it would come back with."""

    socket: socket.socket
    last: int | None = None
    head: str = ""
    _data: bytes = field(default=b"", repr=False)

    def read_head(self) -> str:
        """The head of the answer."""
        self.head = self._until(b"\r\n\r\n").decode()
        return self.head

    def next(self) -> Frame | None:
        """The next frame, whatever it is; None when the other side has closed."""
        block = self._until(b"\n\n").decode()
        if not block:
            assert not self._data, f"it was cut off within {self._data!r}"
            return None
        frame = Frame()
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            if name == "id":
                frame.id = self.last = int(value)
            elif name == "event":
                frame.event = value
            elif name == "data":
                frame.data = json.loads(value)
            elif line.startswith(":"):
                frame.comment = line[2:]
        return frame

    def event(self) -> Frame:
        """The next that is no comment."""
        while True:
            frame = self.next()
            assert frame is not None, "the stream has ended"
            if not frame.comment:
                return frame

    def until(self, name: str) -> list[Frame]:
        """The frames up to the next of this name."""
        found = [self.event()]
        while found[-1].event != name:
            found.append(self.event())
        return found

    def upto(self, number: int) -> list[Frame]:
        """The frames up to the one that has this id."""
        found = [self.event()]
        while found[-1].id != number:
            found.append(self.event())
        return found

    def rest(self) -> list[Frame]:
        """The frames up to the end that are no comments."""
        found = []
        deadline = time.monotonic() + LIMIT_SECONDS  # a keep-alive would go on for ever
        while (frame := self.next()) is not None:
            assert time.monotonic() < deadline, "the stream does not end"
            if not frame.comment:
                found.append(frame)
        return found

    def close(self) -> None:
        """Go."""
        self.socket.close()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._data:
            more = self.socket.recv(1 << 16)
            if not more:
                return b""
            self._data += more
        found, _, self._data = self._data.partition(mark)
        return found


def listen(url: str, token: str, **headers: str) -> Listener:
    """Ask for this and read the head of the answer."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    connection = socket.create_connection((place.hostname, place.port), timeout=LIMIT_SECONDS)
    lines = [
        f"GET {place.path}?{place.query} HTTP/1.1",
        f"Host: {place.netloc}",
        f"Authorization: Bearer {token}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    found = Listener(connection)
    found.read_head()
    return found


class Audience:
    """Those who follow hubs of this process itself."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def join(
        self,
        hub: Hub,
        store: Store,
        wanted: Filter | None = None,
        since: int | None = None,
        key: Key = OWNER_KEY,
    ) -> tuple[Listener, Client]:
        """One more; without an id from now on. What happened before comes while it reads."""
        ours, theirs = socket.socketpair()
        self._sockets += (ours, theirs)
        ours.settimeout(LIMIT_SECONDS)
        client = hub.admit(theirs, SSE, key, wanted or Filter())
        hub.write_to(client, [b": hello\n\n"])
        position = hub.position if since is None else since
        thread = threading.Thread(target=catch_up, args=(hub, store, client, position))
        self._threads.append(thread)
        thread.start()
        listener = Listener(ours)
        assert listener.next() == Frame(comment="hello")
        return listener, client

    def close(self) -> None:
        """All go."""
        for each in self._sockets:
            each.close()
        for thread in self._threads:
            thread.join()
