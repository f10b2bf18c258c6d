"""Clients that send or read slowly, or not at all, keep nobody else waiting."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from bullpen.core.access.keys import Scope
from bullpen.core.company import add_agent
from bullpen.core.roster.agents import HTTP, Agent
from tests.api.served import LIMIT, Served, serving
from tests.api.wire import MOST_MILLISECONDS, answer_of, crowd_of, dial, head, health_milliseconds
from tests.stores import Stores

MANY = int(os.environ.get("CROWD", "300"))
"""More than the threads of the API under test. `make crowd` has more."""

MOST_CLAIM_SECONDS = 1.0

TEXT = "x" * 900_000
EVENTS = 60
EVENT_TEXT = "y" * 20_000
"""As long as a text with an event can be; together more than a client's buffers hold."""


@pytest.fixture(scope="module")
def small(stores: Stores) -> Iterator[Served]:
    """An API of one process with few threads, whose patience is short."""
    settings = stores.settings("sqlite")
    with stores.opened(settings) as store, store.write() as tx:
        add_agent(tx, Agent(id="w", provider=HTTP))
    with serving(
        settings,
        BULLPEN_API_PROCESSES="1",
        BULLPEN_API_THREADS="16",
        BULLPEN_API_REQUEST_SECONDS="2",
        BULLPEN_API_STALL_SECONDS="2",
        BULLPEN_PAGE_BYTES=str(1 << 24),
    ) as served:
        for _ in range(8):
            served.post("/api/message", {"message": TEXT, "agent": "w"})
        for _ in range(EVENTS):
            served.post("/api/responses", {"message": EVENT_TEXT, "channel": "web", "sender": "a"})
        yield served


def test_connections_that_send_no_whole_request_keep_nobody_waiting(small: Served) -> None:
    body = head(small, "POST", "/api/message", "Content-Length: 50", token="")
    long = head(small, "POST", "/api/message", "Content-Length: 900000", token="")
    mine = head(small, "POST", "/api/message", "Content-Length: 50")
    for what, sent in {
        "nothing": b"",
        "one byte": b"G",
        "half a head": b"GET /api/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a",
        "no body": body + b"{",
        "no long body": long + b"{",
        "no body, with a token": mine + b"{",
    }.items():
        with crowd_of(small, MANY, sent):
            assert health_milliseconds(small) < MOST_MILLISECONDS, what


def test_who_drips_a_head_or_a_body_is_told_and_closed(small: Served) -> None:
    start = head(small, "POST", "/api/message", "Content-Type: application/json", "X-Drip: a")
    for sent in (
        start[:-4],
        start[:-4] + b"\r\nContent-Length: 50\r\n\r\n",
        start[:-4] + b"\r\nContent-Length: 900000\r\n\r\n",
        start[:-4] + b"\r\nTransfer-Encoding: chunked\r\n\r\nFF\r\n",
    ):
        with dial(small) as peer:
            began = time.monotonic()
            peer.sendall(sent)
            peer.setblocking(False)
            while time.monotonic() - began < LIMIT:
                try:
                    peer.send(b"a")
                    if peer.recv(1, socket.MSG_PEEK):
                        break
                except BlockingIOError:
                    time.sleep(0.1)
                except OSError:
                    break
            peer.settimeout(LIMIT)
            status, error = answer_of(peer)
            assert (status, error["code"]) == (408, "too_slow"), sent
            assert time.monotonic() - began < 20


def test_a_connection_that_sends_nothing_is_closed(small: Served) -> None:
    with dial(small) as peer:
        assert peer.recv(1) == b""


def test_who_does_not_read_an_answer_keeps_nobody_waiting_and_is_closed(small: Served) -> None:
    wanted = head(small, "GET", "/api/messages?limit=500")
    (worker,) = small.workers
    with crowd_of(small, 50, wanted, receive_buffer=4096) as peers:
        for peer in peers:
            assert peer.recv(12) == b"HTTP/1.1 200"
        ports = {peer.getsockname()[1] for peer in peers}
        assert health_milliseconds(small) < MOST_MILLISECONDS
        assert _open(worker, ports)  # as many as may hold unsent answers together
        deadline = time.monotonic() + LIMIT
        while _open(worker, ports) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not _open(worker, ports)


def _open(worker: psutil.Process, ports: set[int]) -> int:
    """How many connections to these ports the worker holds."""
    return sum(bool(each.raddr) and each.raddr.port in ports for each in worker.net_connections())


def test_streams_that_read_what_happened_slowly_keep_nobody_waiting(small: Served) -> None:
    wanted = head(small, "GET", "/api/events/stream?since_id=0")
    with crowd_of(small, 50, wanted, receive_buffer=4096) as peers:
        for peer in peers:
            assert peer.recv(12) == b"HTTP/1.1 200"
        assert health_milliseconds(small) < MOST_MILLISECONDS
        found = b""
        while found.count(b"event: response_ready") < EVENTS:
            chunk = peers[-1].recv(1 << 20)
            assert chunk, found[-1000:]
            found += chunk


def test_a_slow_reader_that_goes_on_reading_gets_all(small: Served) -> None:
    with dial(small, receive_buffer=4096) as peer:
        peer.sendall(head(small, "GET", "/api/messages?limit=1", "Connection: close"))
        got = b""
        began = time.monotonic()
        while chunk := peer.recv(20_000):
            got += chunk
            if time.monotonic() - began < 4:
                time.sleep(0.1)
    assert got.partition(b"\r\n\r\n")[2].endswith(b"]")
    assert len(got) > 900_000


def test_a_slow_sender_that_goes_on_sending_is_served(small: Served) -> None:
    body = b'{"agent": "w", "message": "' + b"y" * 400_000 + b'"}'
    lines = (f"Content-Length: {len(body)}", "Content-Type: application/json", "Connection: close")
    with dial(small) as peer:
        peer.sendall(head(small, "POST", "/api/message", *lines))
        for at in range(0, len(body), 10_000):
            peer.sendall(body[at : at + 10_000])
            time.sleep(0.1)
        assert answer_of(peer)[0] == 200


def test_all_of_them_at_once_keep_nobody_waiting(stores: Stores) -> None:
    """Idle and half-sent connections, slow readers, and waiting claims of one key."""
    settings = stores.settings("sqlite")
    with stores.opened(settings) as store, store.write() as tx:
        for name in ("v", "w"):
            add_agent(tx, Agent(id=name, provider=HTTP))
    with serving(settings) as served:
        greedy, other = served.key(Scope.CLAIM), served.key(Scope.CLAIM)
        for _ in range(4):
            served.post("/api/message", {"message": TEXT, "agent": "v"})
        body = b'{"agent": "w", "wait": 60}'
        lines = (f"Content-Length: {len(body)}", "Content-Type: application/json")
        claim = head(served, "POST", "/api/queue/claim", *lines, token=greedy) + body
        page = head(served, "GET", "/api/messages?limit=500")
        with (
            crowd_of(served, MANY // 2),
            crowd_of(served, MANY - MANY // 2, b"GET /api/me HTTP/1.1\r\nX: a"),
            crowd_of(served, 50, page, receive_buffer=4096),
            crowd_of(served, 100, claim),
        ):
            assert health_milliseconds(served) < MOST_MILLISECONDS
            asked = {"agent": "v", "worker": "me", "limit": 1}
            took = []
            for _ in range(4):
                began = time.monotonic()
                work = served.post("/api/queue/claim", asked, token=other)
                took.append(time.monotonic() - began)
                assert len(work["messages"]) == 1
                served.post("/api/queue/release", {"token": work["token"]}, token=other)
            assert sorted(took)[1] < MOST_CLAIM_SECONDS


def test_when_too_many_half_sent_requests_wait_the_oldest_is_closed(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with (
        serving(
            settings, BULLPEN_API_PROCESSES="1", BULLPEN_API_ADDRESS_CONNECTIONS="20"
        ) as served,
        dial(served) as idle,
    ):
        idle.sendall(head(served, "GET", "/healthz"))
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
        with crowd_of(served, 30, b"GET") as peers:
            assert health_milliseconds(served) < MOST_MILLISECONDS
            assert [peer.recv(1) for peer in peers[:10]] == [b""] * 10
            peers[-1].sendall(b" /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert peers[-1].recv(65536).startswith(b"HTTP/1.1 200")
        idle.sendall(head(served, "GET", "/healthz"))
        assert idle.recv(65536).startswith(b"HTTP/1.1 200")
