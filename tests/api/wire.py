"""Bytes to and from the API, as a client sends them that keeps to no rule."""

from __future__ import annotations

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from tests.api.served import LIMIT, Served

MOST_MILLISECONDS = 100.0
ATTEMPTS = 12


def dial(served: Served, receive_buffer: int | None = None) -> socket.socket:
    """A new connection; with a small receive buffer, to read slowly from."""
    peer = socket.socket()
    peer.settimeout(LIMIT)
    if receive_buffer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    peer.connect(("127.0.0.1", urlsplit(served.url).port or 0))
    return peer


@contextmanager
def crowd_of(
    served: Served, count: int, sent: bytes = b"", receive_buffer: int | None = None
) -> Iterator[list[socket.socket]]:
    """Many connections, each of which has sent the same."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        peers = []
        for _ in range(count):
            peer = stack.enter_context(dial(served, receive_buffer))
            if sent:
                peer.sendall(sent)
            peers.append(peer)
        yield peers


def head(served: Served, method: str, path: str, *lines: str, token: str | None = None) -> bytes:
    """The head of a request; `token=""` sends none."""
    secret = served.token if token is None else token
    given = (f"Authorization: Bearer {secret}",) if secret else ()
    whole = (f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *given, *lines, "", "")
    return "\r\n".join(whole).encode()


def answer_of(peer: socket.socket) -> tuple[int, dict[str, object]]:
    """The status and document of all that comes until the server closes."""
    text = b"".join(iter(lambda: peer.recv(65536), b""))
    status, _, document = text.partition(b"\r\n\r\n")
    assert status.startswith(b"HTTP/1.1 "), text[:200]
    return int(status[9:12]), json.loads(document)


def health_milliseconds(served: Served) -> float:
    """How long a new connection takes to be told that the API lives: of several, the median."""
    took = []
    for _ in range(ATTEMPTS):
        began = time.monotonic()
        with dial(served) as peer:
            peer.settimeout(10)
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda peer=peer: peer.recv(65536), b""))  # type: ignore[misc]
        assert answer.startswith(b"HTTP/1.1 200"), answer
        took.append(1000 * (time.monotonic() - began))
    return sorted(took)[len(took) // 2]
