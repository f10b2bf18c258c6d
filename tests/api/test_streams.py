"""Following what happens over SSE: nothing is lost, whatever ends the connection."""

from __future__ import annotations

import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bullpen.core.access.keys import Scope, list_keys, revoke_key
from bullpen.core.access.owner import rotate_token
from bullpen.core.events.append import append_event
from bullpen.core.events.system import ProcessorStart, ProcessorStop
from bullpen.core.events.tail import EventTail
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.api.served import Served, serving
from tests.api.stopping import stopped_at_once
from tests.events.tails import read_all
from tests.stores import Stores
from tests.streams.listening import LIMIT_SECONDS, Frame, Listener, listen

PATH = "/api/events/stream"
Follow = Callable[..., Listener]


@pytest.fixture
def follow(served: Served) -> Iterator[Follow]:
    """Opens streams; the first frame of each was read."""
    opened: list[Listener] = []

    def one(query: str = "", token: str | None = None, **headers: str) -> Listener:
        secret = served.token if token is None else token
        if "since_id" not in query and not headers:
            # Not "from now on": what happened just before may still be on its way.
            query = f"{query}&since_id={served.get('/api/events?limit=1')[0]['id']}"
        opened.append(listen(f"{served.url}{PATH}?{query}", secret, **headers))
        assert opened[-1].head.startswith("HTTP/1.1 200 OK\r\n"), opened[-1].head
        assert opened[-1].event().event == "connected"
        return opened[-1]

    yield one
    for each in opened:
        each.close()


def happen(store: Store, count: int, size: int = 10) -> None:
    """Let so much happen, in transactions of several."""
    while count > 0:
        with store.write() as tx:
            for _ in range(min(count, 50)):
                append_event(tx, ProcessorStart(worker="w" * size))
        count -= 50


def newest(store: Store) -> int:
    """The last event's id."""
    return EventTail.from_now(store).position


def ids(frames: list[Frame]) -> list[int]:
    """Of those that have one."""
    return [frame.id for frame in frames if frame.id is not None]


def everything(store: Store, since: int) -> list[int]:
    """The ids of all that happened."""
    return [event.id for event in read_all(EventTail(store, since))]


def test_the_head_lets_nobody_keep_it_and_the_first_frame_says_where_it_begins(
    served: Served,
) -> None:
    listener = listen(served.url + PATH, served.token, X_Request_Id="mine-1")
    head = listener.head.lower()
    for line in (
        "content-type: text/event-stream",
        "cache-control: no-store",
        "x-accel-buffering: no",
        "connection: close",
        "x-content-type-options: nosniff",
        "x-request-id: mine-1",
    ):
        assert line in head
    assert "content-length" not in head
    assert "transfer-encoding" not in head
    assert b"retry: 2000" in listener._data
    first = listener.event()
    assert (first.event, first.id) == ("connected", first.data["position"])
    assert set(first.data) == {"type", "timestamp", "position"}
    listener.close()


def test_a_page_of_your_own_may_follow_and_no_other(stores: Stores) -> None:
    origin = "https://office.example.org"
    with serving(stores.settings("sqlite"), BULLPEN_API_ORIGINS=origin) as served:
        listener = listen(served.url + PATH, served.token, Origin=origin)
        assert f"Access-Control-Allow-Origin: {origin}" in listener.head
        assert "Vary: Origin" in listener.head
        listener.close()
        for headers in ({"Origin": "https://evil.example.org"}, {"Host": "evil.example.org"}):
            assert served.refused("GET", PATH, headers=headers)[0] == 403


def test_what_happens_comes_in_order_and_once(
    served: Served, inside: Store, follow: Follow
) -> None:
    listeners = [follow() for _ in range(5)]
    since = listeners[0].last
    writers = [threading.Thread(target=_write, args=(served,)) for _ in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert since is not None
    expected = everything(inside, since)
    assert len(expected) >= 4 * 20
    for listener in listeners:
        assert ids(listener.upto(expected[-1])) == expected


def _write(served: Served) -> None:
    """Write from a connection of one's own, a few to a transaction."""
    store = open_store(served.settings)
    for _ in range(20):
        with store.write() as tx:
            append_event(tx, ProcessorStart(worker="w"))
            time.sleep(random.uniform(0, 0.003))
            append_event(tx, ProcessorStop(worker="w"))
    store.close()


def test_who_is_cut_off_at_any_place_comes_back_without_loss(inside: Store, follow: Follow) -> None:
    listener = follow()
    since = listener.last
    assert since is not None
    got: list[int] = []
    for _ in range(8):
        happen(inside, random.randint(1, 120))
        for _ in range(random.randint(0, 60)):
            if listener.last == newest(inside):
                break
            got += ids([listener.event()])
        listener.close()
        happen(inside, random.randint(0, 3))
        listener = follow(Last_Event_ID=str(listener.last))
    if listener.last != newest(inside):
        got += ids(listener.upto(newest(inside)))
    assert got == everything(inside, since)


def test_what_happened_while_the_server_was_away_is_not_lost(stores: Stores, kind: str) -> None:
    settings = stores.settings(kind)
    store = open_store(settings)
    with serving(settings) as served:
        listener = listen(served.url + PATH, served.token)
        since = listener.event().id
        assert since is not None
        happen(store, 30)
        got = ids(listener.upto(newest(store)))
        served.process.send_signal(signal.SIGTERM)
        assert [frame.event for frame in listener.rest()] == ["closing"]
    happen(store, 700)
    with serving(settings) as served:
        happen(store, 30)
        again = listen(served.url + PATH, served.token, Last_Event_ID=str(listener.last))
        happen(store, 30)
        got += ids(again.upto(newest(store)))[1:]
    assert got == everything(store, since)
    assert len(got) == len(set(got)) == 790
    store.close()
    listener.close()
    again.close()


def test_a_stream_has_what_was_asked_for(served: Served, follow: Follow) -> None:
    of_coder = follow("agent=coder&types=message_enqueued")
    incoming = follow("types=message:incoming")
    first = served.post("/api/message", {"message": "@worker one"})
    second = served.post("/api/message", {"message": "@coder two"})
    of_talk = follow(f"conversation_id={second['conversationId']}&since_id=0")
    frame = of_coder.event()
    assert (frame.event, frame.data["message"]) == ("message_enqueued", "two")
    found = [incoming.event(), incoming.event()]
    assert [frame.event for frame in found] == ["message:incoming"] * 2
    assert [frame.data["messageId"] for frame in found] == [first["messageId"], second["messageId"]]
    assert None not in [frame.id for frame in found]
    assert [of_talk.event().event for _ in range(3)] == [
        *("message:incoming", "message_enqueued", "agent_routed"),
    ]


def test_a_key_for_some_agents_follows_them_alone(served: Served, follow: Follow) -> None:
    limited = follow(token=served.key(Scope.READ, agents=("coder",)))
    served.post("/api/message", {"message": "@worker secret"})
    served.post("/api/message", {"message": "[#dev: all of you]"})
    frames = limited.until("message_enqueued")
    assert {frame.data["agent"] for frame in frames} == {"coder"}
    assert "secret" not in str(frames)


def test_a_revoked_key_is_cut_off_at_once(served: Served, inside: Store, follow: Follow) -> None:
    secret = served.key(Scope.READ)
    listener = follow(token=secret)
    with inside.read() as tx:
        key = list_keys(tx)[-1]
    with inside.write() as tx:
        revoke_key(tx, key.id)
        append_event(tx, ProcessorStart(worker="seen by others"))
    (*before, last) = listener.rest()
    assert (last.event, last.data["reason"]) == ("closed", "the key was revoked")
    assert "processor_start" not in [frame.event for frame in before]
    assert served.refused("GET", PATH, token=secret)[0] == 401


def test_an_old_token_is_cut_off_at_once(served: Served, inside: Store, follow: Follow) -> None:
    listener = follow()
    old = served.token
    rotate_token(served.settings)
    served.token = served.settings.token_file.read_text().strip()
    with inside.write() as tx:
        append_event(tx, ProcessorStart(worker="seen by others"))
    (*before, last) = listener.rest()
    assert (last.event, last.data["reason"]) == ("closed", "the owner's token was replaced")
    assert "processor_start" not in [frame.event for frame in before]
    assert served.refused("GET", PATH, token=old)[0] == 401


def test_a_login_that_ended_with_its_maker_is_cut_off_at_once(
    served: Served, inside: Store, follow: Follow
) -> None:
    made = served.post("/api/keys", {"name": "maker", "scopes": ["admin"]})
    browser = served.post("/api/keys", {"name": "made", "scopes": ["read"]}, token=made["key"])
    listener = follow(token=browser["key"])
    served.ok("DELETE", f"/api/keys/{made['id']}")
    assert listener.rest()[-1].data["reason"] == "the key was revoked"


def test_a_slow_client_is_dropped_with_the_reason_and_comes_back_without_loss(
    inside: Store, follow: Follow
) -> None:
    slow, quick = follow(), follow()
    slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
    since = slow.last
    assert since is not None
    for _ in range(15):
        happen(inside, 50, size=4000)
        quick.upto(newest(inside))
    got = slow.rest()
    assert (got[-1].event, got[-1].id) == ("dropped", None)
    assert got[-1].data["reason"]
    expected = everything(inside, since)
    assert 0 < len(ids(got)) < len(expected)
    again = follow(Last_Event_ID=str(slow.last))
    assert ids(got) + ids(again.upto(expected[-1])) == expected


def test_more_streams_than_may_be_are_refused_and_a_place_that_is_left_is_free(
    stores: Stores,
) -> None:
    settings = stores.settings("sqlite")
    more = {"BULLPEN_API_STREAMS": "3", "BULLPEN_API_PROCESSES": "1"}
    with serving(settings, **more) as served:
        opened = [listen(served.url + PATH, served.token) for _ in range(3)]
        response = served.ask("GET", PATH)
        assert (response.status_code, response.json()["code"]) == (503, "overloaded")
        assert response.headers["Retry-After"]
        opened.pop().close()
        deadline = time.monotonic() + LIMIT_SECONDS
        while not (again := listen(served.url + PATH, served.token)).head.startswith(
            "HTTP/1.1 200"
        ):
            assert time.monotonic() < deadline
            again.close()
        for each in (*opened, again):
            each.close()


def test_a_stream_holds_no_thread(stores: Stores) -> None:
    settings = stores.settings("sqlite")
    more = {"BULLPEN_API_THREADS": "8", "BULLPEN_API_PROCESSES": "1"}
    with serving(settings, **more) as served:
        opened = [listen(served.url + PATH, served.token) for _ in range(100)]
        store = open_store(settings)
        happen(store, 1)
        store.close()
        for each in opened:
            assert each.until("processor_start")
            each.close()


@pytest.fixture
def alone(stores: Stores) -> Settings:
    """A home of its own."""
    return stores.settings("sqlite")


def test_it_stops_at_once_with_many_open_streams(alone: Settings) -> None:
    def attempt() -> float:
        with serving(alone) as served:
            opened = [listen(served.url + PATH, served.token) for _ in range(50)]
            served.session.close()
            began = time.monotonic()
            served.process.send_signal(signal.SIGTERM)
            for each in opened:
                assert [frame.event for frame in each.rest()] == ["connected", "closing"]
                each.close()
            assert served.process.wait(LIMIT_SECONDS) == 0
            took = time.monotonic() - began
        assert "ERROR" not in served.log.read_text()
        return took

    assert stopped_at_once(attempt)
