"""Outside workers that wait for work."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from urllib.parse import urlsplit

import pytest
import requests

from bullpen.api.long_poll import POLL_SECONDS
from bullpen.core.access.keys import Scope, revoke_key
from bullpen.core.access.owner import rotate_token
from bullpen.core.queue.lanes import lock_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.api.arrival import until_it_is_read
from tests.api.claiming import EMPTY, claim, claimed_at, hire, ids, own_agent, send
from tests.api.served import LIMIT, Served, serving
from tests.api.wire import MOST_MILLISECONDS, health_milliseconds
from tests.stores import Stores

ATTEMPTS = 10


@pytest.fixture
def agent(inside: Store) -> str:
    """An agent of this test alone, left to outside workers."""
    return own_agent(inside)


def test_who_waits_is_woken_by_a_message(served: Served, agent: str) -> None:
    """How soon is the machine's affair as well, which does other things: of several, the best."""
    took: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        while len(took) < ATTEMPTS and min(took, default=POLL_SECONDS) > POLL_SECONDS / 2:
            waiting = pool.submit(claim, served, agent, wait=60)
            time.sleep(POLL_SECONDS / 5)
            assert not waiting.done()
            began = time.monotonic()
            sent = send(served, agent, "wake up")
            found = waiting.result(LIMIT)
            took.append(time.monotonic() - began)
            assert ids(found) == [sent]
            served.post("/api/queue/complete", {"token": found["token"], "response": "I am up"})
    assert min(took) <= POLL_SECONDS / 2


@pytest.mark.one_store
def test_who_waits_in_vain_is_given_nothing_in_the_end(served: Served, agent: str) -> None:
    began = time.monotonic()
    assert claim(served, agent, wait=1.5) == EMPTY
    assert 1.4 < time.monotonic() - began < 50


@pytest.mark.one_store
def test_who_waits_keeps_nobody_from_writing(served: Served, inside: Store, agent: str) -> None:
    with inside.write() as tx:
        lock_lane(tx, agent)
        began = time.monotonic()
        assert claim(served, agent, wait=1.5) == EMPTY
        assert time.monotonic() - began < 50


def test_a_delayed_message_wakes_when_it_is_due(served: Served, agent: str) -> None:
    sent = send(served, agent, "in a while", delay=1500)
    due = served.get(f"/api/messages/{sent}")["available_at"]
    began = time.monotonic()
    assert ids(claim(served, agent, wait=60)) == [sent]
    assert time.monotonic() - began < 50
    assert claimed_at(served, agent) >= due


def test_a_waiting_claim_of_a_revoked_key_takes_nothing(
    served: Served, inside: Store, agent: str
) -> None:
    secret = served.key(Scope.CLAIM)
    key = served.get("/api/me", token=secret)["id"]
    with ThreadPoolExecutor(1) as pool:
        body = {"agent": agent, "wait": 60}
        waiting = pool.submit(served.refused, "POST", "/api/queue/claim", body, token=secret)
        time.sleep(POLL_SECONDS / 2)
        with inside.write() as tx:
            revoke_key(tx, key)
        sent = send(served, agent, "for somebody else")
        assert waiting.result(LIMIT) == (401, "no_access")
    assert served.get(f"/api/messages/{sent}")["status"] == "pending"
    assert ids(claim(served, agent)) == [sent]


def test_a_waiting_claim_of_an_old_token_takes_nothing(served: Served, agent: str) -> None:
    old = served.token
    with ThreadPoolExecutor(1) as pool:
        body = {"agent": agent, "wait": 60}
        waiting = pool.submit(served.refused, "POST", "/api/queue/claim", body, token=old)
        time.sleep(POLL_SECONDS / 2)
        rotate_token(served.settings)
        served.token = served.settings.token_file.read_text().strip()
        sent = send(served, agent, "for somebody else")
        assert waiting.result(LIMIT) == (401, "no_access")
    assert ids(claim(served, agent)) == [sent]


@pytest.mark.one_store
def test_who_dies_while_he_waits_takes_no_message_along(served: Served, agent: str) -> None:
    with waiting_alone(served, agent):
        time.sleep(0.5)
    sent = send(served, agent, "who is there?")
    time.sleep(1.5 * POLL_SECONDS)  # he would have looked again by now
    assert served.get(f"/api/messages/{sent}")["status"] == "pending"
    found = claim(served, agent, worker="alive")
    assert ids(found) == [sent]


def test_who_waits_goes_at_once_when_the_api_stops(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with serving(settings) as served:
        hire_in(stores, settings, "w")
        with waiting_alone(served, "w") as peer:
            served.process.send_signal(signal.SIGTERM)
            # One that is ended by force, when its time of grace is over, is answered nothing.
            answer = b"".join(iter(lambda: peer.recv(65536), b""))
        assert json.loads(answer.partition(b"\r\n\r\n")[2]) == EMPTY
        assert served.process.wait(LIMIT) == 0


@contextmanager
def waiting_alone(served: Served, agent: str) -> Iterator[socket.socket]:
    """A worker that waits for a minute, on a connection of its own."""
    body = json.dumps({"agent": agent, "worker": "doomed", "wait": 60}).encode()
    head = (
        "POST /api/queue/claim HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {served.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    place = ("127.0.0.1", urlsplit(served.url).port or 0)
    with socket.create_connection(place, LIMIT) as peer:
        peer.sendall(head.encode() + body)
        until_it_is_read(peer)
        yield peer


def test_when_too_many_wait_the_next_is_told_so(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with (
        serving(settings, BULLPEN_API_PROCESSES="1", BULLPEN_API_THREADS="8") as served,
        ThreadPoolExecutor(4) as pool,
    ):
        hire_in(stores, settings, "w")
        waiting = [pool.submit(_patiently, served, "w", 60) for _ in range(4)]
        response = _until(503, served, "w")
        assert response.status_code == 503
        assert response.json()["code"] == "overloaded"
        assert response.headers["Retry-After"]
        assert claim(served, "w") == EMPTY  # who does not wait is served
        served.process.send_signal(signal.SIGTERM)
        assert [each.result(LIMIT).json() for each in waiting] == [EMPTY] * 4


def test_one_keys_waiting_requests_keep_no_other_key_out(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    with (
        serving(settings, BULLPEN_API_PROCESSES="1", BULLPEN_API_THREADS="32") as served,
        ThreadPoolExecutor(101) as pool,
    ):
        for agent in ("v", "w"):
            hire_in(stores, settings, agent)

        def ask(agent: str, token: str) -> requests.Response:
            return requests.post(
                f"{served.url}/api/queue/claim",
                json={"agent": agent, "wait": 60},
                headers={"Authorization": f"Bearer {token}"},
                timeout=LIMIT,
            )

        greedy, other = served.key(Scope.CLAIM), served.key(Scope.CLAIM)
        greedy_waits = {pool.submit(ask, "w", greedy) for _ in range(100)}
        refused = set(islice(as_completed(greedy_waits, LIMIT), 100 - 16))
        assert {each.result().status_code for each in refused} == {503}
        assert health_milliseconds(served) < MOST_MILLISECONDS
        other_waits = pool.submit(ask, "v", other)
        displaced = next(as_completed(greedy_waits - refused, LIMIT))
        assert displaced.result().json() == EMPTY
        began = time.monotonic()
        sent = send(served, "v", "wake up")
        assert ids(other_waits.result(LIMIT).json()) == [sent]
        assert time.monotonic() - began < POLL_SECONDS
        served.process.send_signal(signal.SIGTERM)


def _patiently(served: Served, agent: str, wait: float) -> requests.Response:
    """Wait for work, as soon as there is a place to wait in."""
    return _until(200, served, agent, wait)


def _until(status: int, served: Served, agent: str, wait: float = 0.01) -> requests.Response:
    """Ask until this is the status."""
    deadline = time.monotonic() + LIMIT
    body = {"agent": agent, "wait": wait}
    while True:
        response = served.ask("POST", "/api/queue/claim", body)
        if response.status_code == status or time.monotonic() > deadline:
            return response


def hire_in(stores: Stores, settings: Settings, name: str) -> None:
    """Take on an agent in another home."""
    with stores.opened(settings) as store:
        hire(store, name)
