"""A request becomes a stream only with a key that opens something at that very moment."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bullpen.api.streams.client import Filter
from bullpen.api.streams.frames import SSE
from bullpen.api.streams.hub import Hub
from bullpen.api.streams.subscribe import SOCKET, open_stream, starting_point
from bullpen.core.access.keys import Key, Scope, add_key, revoke_key
from bullpen.core.access.owner import OwnerToken
from bullpen.core.errors import NoAccess, Overloaded
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from tests.events.tails import happen
from tests.stores import Stores
from tests.streams.listening import LIMIT_SECONDS, Audience
from tests.streams.test_hub import agents, eventually

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The server's end of a connection, and its peer's."""
    found = socket.socketpair()
    found[1].settimeout(LIMIT_SECONDS)
    yield found
    for each in found:
        each.close()


def key(store: Store) -> Key:
    """A new key."""
    with store.write() as tx:
        return add_key(tx, "k", [Scope.READ])[0]


def test_a_key_that_was_closed_since_the_gate_is_refused_and_can_be_told_so(
    store: Store, hub: Hub, pair: Pair
) -> None:
    ours, peer = pair
    closed = key(store)
    with store.write() as tx:
        revoke_key(tx, closed.id)
    with pytest.raises(NoAccess):
        open_stream(hub, store, {SOCKET: ours}, wire=SSE, key=closed, wanted=Filter())
    eventually(lambda: hub.streams == 0)
    ours.sendall(b"HTTP/1.1 401")
    assert peer.recv(100) == b"HTTP/1.1 401"


def test_the_stream_goes_on_when_the_server_closes_its_own_socket(
    store: Store, hub: Hub, pair: Pair
) -> None:
    ours, peer = pair
    client = open_stream(hub, store, {SOCKET: ours}, wire=SSE, key=key(store), wanted=Filter())
    ours.close()
    hub.write_to(client, [b"still here"])
    assert peer.recv(100).startswith(b"still here")


def test_a_refused_request_leaves_no_socket_behind(stores: Stores, kind: str, pair: Pair) -> None:
    with stores.opened(stores.settings(kind, api_streams=1)) as store:
        hub = Hub(store, OwnerToken(store.settings))
        hub.stop()
        with pytest.raises(Overloaded):
            open_stream(hub, store, {SOCKET: pair[0]}, wire=SSE, key=key(store), wanted=Filter())
        pair[0].close()
        assert pair[1].recv(10) == b""


def test_who_has_seen_more_than_this_process_gets_nothing_twice(
    store: Store, audience: Audience
) -> None:
    hub = Hub(store, OwnerToken(store.settings))  # nobody wakes it
    hub.start()
    assert hub.position == 0
    happen(store, "seen elsewhere", "seen there, too")
    seen = EventTail.from_now(store).position
    happen(store, "new")
    assert starting_point(hub, store, None) == 0
    assert starting_point(hub, store, seen) == seen
    assert starting_point(hub, store, seen + 5) == 0
    listener, _ = audience.join(hub, store, since=seen)
    eventually(lambda: hub.streams == 1)
    hub.wake()
    assert agents(listener.upto(EventTail.from_now(store).position)) == ["new"]
    hub.stop()


def test_who_comes_back_to_what_is_deleted_begins_where_that_ends(store: Store) -> None:
    hub = Hub(store, OwnerToken(store.settings))
    happen(store, "old", "old too", "kept")
    hub.start()
    eventually(lambda: hub.position > 0)
    last = EventTail.from_now(store).position
    assert starting_point(hub, store, 1) == 1
    with store.engine.begin() as connection:
        connection.exec_driver_sql(f"DELETE FROM events WHERE id < {last}")
    assert starting_point(hub, store, 1) == last - 1
    assert starting_point(hub, store, last) == last
    hub.stop()
