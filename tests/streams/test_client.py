"""A client's socket takes what it can; whatever it takes are whole frames in order."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bullpen.api.streams.client import MAX_PENDING_BYTES, Client, Filter
from bullpen.api.streams.frames import SSE
from bullpen.core.access.keys import OWNER_KEY
from tests.streams.listening import LIMIT_SECONDS

Pair = tuple[Client, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A client, and the other end of its socket, which holds little."""
    theirs, ours = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    ours.settimeout(LIMIT_SECONDS)
    client = Client(theirs, SSE, OWNER_KEY, Filter())
    yield client, ours
    client.close()
    ours.close()


def frames(count: int, size: int = 1000) -> list[bytes]:
    """Frames that can be told apart; no two are of one length."""
    return [b"%05d" % number + b"." * (size + number) + b"\n" for number in range(count)]


def read(client: Client, ours: socket.socket) -> bytes:
    """Everything that waits, while it is flushed."""
    found = b""
    while client.pending:
        client.flush()
        found += ours.recv(1 << 16)
    ours.setblocking(False)
    while True:
        try:
            more = ours.recv(1 << 16)
        except BlockingIOError:
            return found
        if not more:
            return found
        found += more


def test_what_the_socket_does_not_take_at_once_comes_later(pair: Pair) -> None:
    client, ours = pair
    given = frames(200)
    assert client.send(b"".join(given), given)
    assert 0 < client.pending < sum(map(len, given))
    assert client.send(b"more", [b"more"])
    assert read(client, ours) == b"".join(given) + b"more"
    assert client.pending == 0
    assert client.drained.is_set()


def test_the_head_of_the_answer_comes_first_also_if_the_client_is_dropped_at_once(
    pair: Pair,
) -> None:
    client, ours = pair
    assert client.push([b"head", *frames(200)])
    client.end(b"dropped", 1.0, at_once=True)
    assert read(client, ours) == b"headdropped"


def test_over_the_limit_nothing_more_is_taken(pair: Pair) -> None:
    client, _ = pair
    assert client.push([b"x" * (MAX_PENDING_BYTES + 1)])
    assert not client.push([b"y"])
    assert not client.drained.is_set()


def test_one_frame_however_long_is_taken(pair: Pair) -> None:
    client, ours = pair
    assert client.push([b"x" * 3 * MAX_PENDING_BYTES])
    assert len(read(client, ours)) == 3 * MAX_PENDING_BYTES
    assert client.push([b"y"])


def test_who_is_cut_off_gets_the_frame_that_was_begun_and_the_reason(pair: Pair) -> None:
    client, ours = pair
    given = frames(200)
    client.send(b"".join(given), given)
    client.end(b"why\n", 10.0, at_once=True)
    client.send(b"late", [b"late"])
    found = read(client, ours).splitlines(keepends=True)
    assert found[-1] == b"why\n"
    assert found[:-1] == given[: len(found) - 1]
    assert 0 < len(found) - 1 < len(given)


def test_who_is_asked_to_go_gets_all_that_waits_first(pair: Pair) -> None:
    client, ours = pair
    given = frames(200)
    client.send(b"".join(given), given)
    client.end(b"why\n", 10.0, at_once=False)
    client.push([b"late"])
    assert read(client, ours) == b"".join(given) + b"why\n"
    client.finish(10.0)
    ours.setblocking(True)
    assert ours.recv(10) == b""


def test_a_peer_that_went_away_is_noticed(pair: Pair) -> None:
    client, ours = pair
    client.push(frames(10))
    ours.close()
    client.flush()
    assert client.disconnected
    assert client.push([b"x"])
    assert client.pending == 0


def test_before_anything_was_written_to_it_nothing_is_when_it_ends(pair: Pair) -> None:
    client, ours = pair
    client.end(b"why\n", 10.0, at_once=False)
    assert client.disconnected
    client.close()
    assert ours.recv(10) == b""
