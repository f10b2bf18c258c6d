"""Many who follow the events at once, in a process of their own that costs as little as it can."""

from __future__ import annotations

import multiprocessing
import re
import select
import socket
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

SSE_REQUEST = "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
WS_REQUEST = SSE_REQUEST[:-2] + (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
IDS = {
    "/api/events/stream": re.compile(rb"\nid: (\d+)\nevent: (?!connected)"),
    "/api/ws": re.compile(rb'"id":(\d+),"type":"'),
}
"""Where the ids of events stand; neither goes over the end of a frame."""

TAIL = 64
"""So many bytes of what came last may be the beginning of an id."""

LIMIT_SECONDS = 120.0


@dataclass
class Heard:
    """What one of them heard: ids, in the order in which they came, and when."""

    kind: str
    ids: array[int]
    times: array[int]


class Follower:
    """One connection."""

    def __init__(self, kind: str, address: tuple[str, int], token: str) -> None:
        self.heard = Heard(kind, array("q"), array("q"))
        self.ready = False
        self._tail = b""
        self._ids = IDS[kind]
        self.socket = socket.create_connection(address)
        request = WS_REQUEST if kind == "/api/ws" else SSE_REQUEST
        host = f"{address[0]}:{address[1]}"
        self.socket.sendall(request.format(path=kind, host=host, token=token).encode())

    def read(self) -> None:
        """Take what has come, and note the ids."""
        data = self.socket.recv(1 << 18)
        now = time.monotonic_ns()
        if not data:
            raise RuntimeError(f"a stream has ended: {self._tail!r}")
        text = self._tail + data
        if not self.ready:
            self.ready = b'"type":"connected"' in text
        end = 0
        for found in self._ids.finditer(text):
            self.heard.ids.append(int(found[1]))
            self.heard.times.append(now)
            end = found.end()
        self._tail = text[max(end, len(text) - TAIL) :]


def follow(pipe: Connection, url: str, token: str, kinds: list[str]) -> None:
    """Connect, say when all are there, and hand over what was heard when that is asked for."""
    place = urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    followers = [Follower(kind, (place.hostname, place.port), token) for kind in kinds]
    poll = select.epoll()
    by_number = {each.socket.fileno(): each for each in followers}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    poll.register(pipe.fileno(), select.EPOLLIN)
    told = False
    asked: int | None = None
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        for number, _ in poll.poll(0.5):
            if number == pipe.fileno():
                asked = pipe.recv()
                deadline = time.monotonic() + LIMIT_SECONDS
            else:
                by_number[number].read()
        if not told and all(each.ready for each in followers):
            pipe.send(time.process_time())
            told = True
        heard = [each.heard for each in followers]
        through = asked is not None and all(asked in each.ids[-1:] for each in heard)
        if through or (time.monotonic() > deadline and (asked is not None or not told)):
            pipe.send((heard, time.process_time()))
            return


@dataclass
class Crowd:
    """The process in which they are."""

    process: multiprocessing.process.BaseProcess
    pipe: Connection

    def hear(self, last: int) -> list[Heard]:
        """What each of them heard, when all have heard this id, or two minutes have passed."""
        self.pipe.send(last)
        heard, _ = self.pipe.recv()
        self.process.join()
        assert isinstance(heard, list)
        return heard


@contextmanager
def crowd(url: str, token: str, *, sse: int, ws: int) -> Iterator[Crowd]:
    """So many, who are all connected."""
    kinds = ["/api/events/stream"] * sse + ["/api/ws"] * ws
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=follow, args=(there, url, token, kinds), daemon=True)
    process.start()
    there.close()
    try:
        here.recv()
        yield Crowd(process, here)
    finally:
        here.close()
        if process.is_alive():
            process.terminate()
        process.join()
