"""Outside workers that wait for work."""

from __future__ import annotations

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import requests

from bullpen.core.queue.lane import lock_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.api.claiming import EMPTY, claim, hire, ids, own_agent, send
from tests.api.served import LIMIT, Served, serving
from tests.stores import Stores


@pytest.fixture
def agent(inside: Store) -> str:
    """An agent of this test alone, left to outside workers."""
    return own_agent(inside)


def test_who_waits_is_woken_by_a_message(served: Served, agent: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(claim, served, agent, wait=30)
        time.sleep(0.5)
        assert not waiting.done()
        began = time.monotonic()
        sent = send(served, agent, "wake up")
        assert ids(waiting.result(LIMIT)) == [sent]
        assert time.monotonic() - began < 1


def test_who_waits_in_vain_is_given_nothing_in_the_end(served: Served, agent: str) -> None:
    began = time.monotonic()
    assert claim(served, agent, wait=1.5) == EMPTY
    assert 1.4 < time.monotonic() - began < 10


def test_who_waits_keeps_nobody_from_writing(served: Served, inside: Store, agent: str) -> None:
    with inside.write() as tx:
        lock_lane(tx, agent)
        began = time.monotonic()
        assert claim(served, agent, wait=1.5) == EMPTY
        assert time.monotonic() - began < 10


def test_a_delayed_message_wakes_when_it_is_due(served: Served, agent: str) -> None:
    sent = send(served, agent, "in a while", delay=1500)
    began = time.monotonic()
    assert ids(claim(served, agent, wait=30)) == [sent]
    assert 1 < time.monotonic() - began < 10


def test_who_dies_while_he_waits_takes_no_message_along(served: Served, agent: str) -> None:
    body = json.dumps({"agent": agent, "worker": "doomed", "wait": 60}).encode()
    head = (
        "POST /api/queue/claim HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {served.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", urlsplit(served.url).port or 0)) as doomed:
        doomed.sendall(head.encode() + body)
        time.sleep(2)  # he waits by then, on a busy machine as well
    sent = send(served, agent, "who is there?")
    time.sleep(1.5)  # he would have looked again by now
    assert served.get(f"/api/messages/{sent}")["status"] == "pending"
    found = claim(served, agent, worker="alive")
    assert ids(found) == [sent]


def test_who_waits_goes_at_once_when_the_api_stops(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with serving(settings) as served, ThreadPoolExecutor(1) as pool:
        hire_in(stores, settings, "w")
        waiting = pool.submit(claim, served, "w", wait=60, timeout=60)
        time.sleep(1)
        assert not waiting.done()
        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        assert waiting.result(LIMIT) == EMPTY
        assert served.process.wait(LIMIT) == 0
        assert time.monotonic() - began < 5


def test_when_too_many_wait_the_next_is_told_so(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with (
        serving(settings, BULLPEN_API_PROCESSES="1", BULLPEN_API_THREADS="8") as served,
        ThreadPoolExecutor(4) as pool,
    ):
        hire_in(stores, settings, "w")
        waiting = [pool.submit(_patiently, served, "w", 8) for _ in range(4)]
        response = _until(503, served, "w", 7)
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "overloaded"
        assert response.headers["Retry-After"]
        assert claim(served, "w") == EMPTY  # who does not wait is served
        assert [each.result(LIMIT).json() for each in waiting] == [EMPTY] * 4


def _patiently(served: Served, agent: str, wait: float) -> requests.Response:
    """Wait for work, as soon as there is a place to wait in."""
    return _until(200, served, agent, LIMIT, wait=wait)


def _until(
    status: int, served: Served, agent: str, seconds: float, wait: float = 0.01
) -> requests.Response:
    """Ask until this is the status."""
    deadline = time.monotonic() + seconds
    body = {"agent": agent, "wait": wait}
    while True:
        response = served.ask("POST", "/api/queue/claim", body)
        if response.status_code == status or time.monotonic() > deadline:
            return response


def hire_in(stores: Stores, settings: Settings, name: str) -> None:
    """Take on an agent in another home."""
    with stores.opened(settings) as store:
        hire(store, name)
