"""The hub gives everybody everything once and in order, whenever they come, and lets go of all."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from bullpen.api.streams import backlog, replay
from bullpen.api.streams import hub as hub_module
from bullpen.api.streams.client import MAX_PENDING_BYTES, Filter
from bullpen.api.streams.frames import EncodedEvent, EndReason, encode_events
from bullpen.api.streams.hub import Hub
from bullpen.core.access.keys import OWNER_KEY, Key, KeyKind, Scope, add_key, revoke_key
from bullpen.core.access.owner import OwnerToken
from bullpen.core.errors import Overloaded, StoreBusy
from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.log import EventRecord
from bullpen.core.events.system import ProcessorStart
from bullpen.core.events.tail import EventTail
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.events.tails import happen, happen_in
from tests.stores import FakeClock, Stores
from tests.streams.listening import (
    KEEP_ALIVE_SECONDS,
    LIMIT_SECONDS,
    Audience,
    Frame,
    Listener,
)

MOST_LISTENERS = 200
MOST_WRITTEN = 400
"""So many by each of three, and nobody who does not read meanwhile is dropped for it."""


def newest(store: Store) -> int:
    """The last event's id."""
    return EventTail.from_now(store).position


def agents(frames: Sequence[Frame]) -> list[str]:
    """To whom the frames say that something happened."""
    return [frame.data["agent"] for frame in frames if frame.data and "agent" in frame.data]


def eventually(what: Callable[[], bool]) -> None:
    """Wait until this is so."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_who_follows_gets_what_happens_from_then_on(
    store: Store, hub: Hub, audience: Audience
) -> None:
    happen(store, "before")
    eventually(lambda: hub.position == newest(store))
    listener, _ = audience.join(hub, store)
    happen(store, "a", "b")
    happen(store, "c")
    assert agents(listener.upto(newest(store))) == ["a", "b", "c"]


@pytest.mark.parametrize("count", [3, 2 * backlog.MAX_RECENT_EVENTS])
def test_who_comes_back_gets_everything_after_the_last_that_it_has(
    store: Store, hub: Hub, count: int, audience: Audience
) -> None:
    expected = [f"a{number}" for number in range(count)]
    happen(store, "first")
    first = newest(store)
    happen(store, *expected)
    eventually(lambda: hub.position == newest(store))
    listener, _ = audience.join(hub, store, since=first)
    happen(store, "last")
    assert agents(listener.upto(newest(store))) == [*expected, "last"]


def test_whoever_comes_at_any_time_from_any_id_misses_nothing_and_gets_nothing_twice(
    store: Store, hub: Hub, audience: Audience
) -> None:
    stopping = threading.Event()

    def write() -> None:
        for _ in range(MOST_WRITTEN):
            if stopping.is_set():
                break
            happen(store, *"ab"[: random.randint(1, 2)])

    writers = [threading.Thread(target=write) for _ in range(3)]
    for each in writers:
        each.start()
    listeners: list[tuple[int, Listener]] = []
    try:
        while len(listeners) < 40 or (hub.position < 300 and len(listeners) < MOST_LISTENERS):
            since = max(0, hub.position - random.choice((0, 1, 5, 50, 5000)))
            listeners.append((since, audience.join(hub, store, since=since)[0]))
        eventually(lambda: hub.position >= 300)
    finally:
        stopping.set()
        for each in writers:
            each.join()
    last = newest(store)
    everything = _ids(store)
    for since, listener in listeners:
        got = [frame.id for frame in listener.upto(last)]
        assert got == [number for number in everything if number > since]


def _ids(store: Store) -> list[int]:
    tail, found = EventTail(store, 0), []
    while page := tail.read():
        found += [event.id for event in page]
    return found


@pytest.mark.postgres
def test_a_lower_id_that_is_committed_late_comes_first(stores: Stores, audience: Audience) -> None:
    with stores.opened(stores.settings("postgresql")) as store, ExitStack() as stack:
        hub = Hub(store, OwnerToken(store.settings))
        hub.start()
        stack.callback(hub.stop)
        listener, _ = audience.join(hub, store)
        late = stack.enter_context(store.engine.connect())
        happen_in(late, "first id, last commit")
        happen(store, "second id, first commit")
        hub.wake()
        listener.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            listener.event()
        listener.socket.settimeout(LIMIT_SECONDS)
        late.commit()
        # Nobody rings again: it looks again by itself while it knows of more.
        found = [listener.event(), listener.event()]
        assert agents(found) == ["first id, last commit", "second id, first commit"]


def test_a_client_gets_what_its_filter_and_its_key_let_through(
    store: Store, hub: Hub, audience: Audience
) -> None:
    limited = Key(
        id="key_1",
        kind=KeyKind.KEY,
        name="k",
        scopes=frozenset({Scope.READ}),
        agents=frozenset({"a", "b"}),
    )
    everything, _ = audience.join(hub, store)
    of_b, _ = audience.join(hub, store, Filter(agent="b"))
    reached, _ = audience.join(hub, store, Filter(reach=limited.agents), key=limited)
    both, _ = audience.join(hub, store, Filter(agent="c", reach=limited.agents), key=limited)
    started, _ = audience.join(hub, store, Filter(types=frozenset({"processor_start"})))
    happen(store, "a", "b", "c")
    with store.write() as tx:
        append_event(tx, ProcessorStart(worker="w"))
    happen(store, "b")
    assert agents(everything.upto(newest(store))) == ["a", "b", "c", None, "b"]
    assert agents(of_b.upto(newest(store))) == ["b", "b"]
    assert agents(reached.upto(newest(store))) == ["a", "b", "b"]
    assert started.event().data["data"] == {"worker": "w"}
    hub.stop()
    assert [frame.event for frame in both.rest()] == ["closing"]


def test_an_idle_stream_is_kept_alive(store: Store, hub: Hub, audience: Audience) -> None:
    began = time.monotonic()
    listener, _ = audience.join(hub, store)
    assert [listener.next() for _ in range(3)] == [Frame(comment="keep-alive")] * 3
    assert time.monotonic() - began >= KEEP_ALIVE_SECONDS
    assert listener.last is None


def test_a_revoked_key_is_cut_off_at_once_and_sees_nothing_of_what_comes_after(
    store: Store, hub: Hub, audience: Audience
) -> None:
    with store.write() as tx:
        key, _ = add_key(tx, "k", [Scope.READ])
        other, _ = add_key(tx, "other", [Scope.READ])
    eventually(lambda: hub.position == newest(store))
    cut, _ = audience.join(hub, store, key=key)
    left, _ = audience.join(hub, store, key=other)
    with store.write() as tx:
        append_event(tx, MessageEnqueued(MessageRef("before", None, None)))
    assert cut.event().data["agent"] == "before"
    with store.write() as tx:
        revoke_key(tx, key.id)
        append_event(tx, MessageEnqueued(MessageRef("after", None, None)))
    (last,) = cut.rest()
    assert (last.event, last.id, last.data["reason"]) == ("closed", None, "the key was revoked")
    assert agents(left.upto(newest(store)))[-1] == "after"


def test_who_is_cut_off_is_told_why_even_by_a_hub_that_is_late(
    store: Store, hub: Hub, audience: Audience, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.write() as tx:
        key, _ = add_key(tx, "k", [Scope.READ])
    eventually(lambda: hub.position == newest(store))
    monkeypatch.setattr(hub_module, "GOODBYE_SECONDS", 0.0)
    monkeypatch.setattr(hub_module, "TICK_SECONDS", 0.0)
    cut, _ = audience.join(hub, store, key=key)
    for _ in range(4):
        assert cut.next() == Frame(comment="keep-alive")  # by then it looks at times in every round
    with store.write() as tx:
        revoke_key(tx, key.id)
    (last,) = cut.rest()
    assert last.event == "closed"


def test_a_key_that_expires_ends_its_stream(
    store: Store, hub: Hub, clock: FakeClock, audience: Audience
) -> None:
    key = replace(OWNER_KEY, expires_at=clock.now() + 1000)
    listener, _ = audience.join(hub, store, key=key)
    happen(store, "a")
    assert listener.event().event == "message_enqueued"
    clock.advance(1000)
    (last,) = listener.rest()
    assert (last.event, last.data["reason"]) == ("closed", "the key has expired")


def test_a_slow_client_is_dropped_with_a_reason_and_comes_back_without_loss(
    store: Store, hub: Hub, audience: Audience
) -> None:
    slow, client = audience.join(hub, store)
    quick, _ = audience.join(hub, store)
    heard: list[Frame] = []
    while not client.closing:
        assert len(heard) < 1000, "it is never dropped"
        happen(store, f"{len(heard)}{'x' * 2000}")
        heard += quick.upto(newest(store))
    got = slow.rest()
    assert (got[-1].event, got[-1].id) == ("dropped", None)
    assert got[-1].data["reason"] == "the client reads too slowly"
    assert 0 < len(got) - 1 < len(heard)
    again, _ = audience.join(hub, store, since=slow.last)
    got = [*got[:-1], *again.upto(newest(store))]
    assert [frame.id for frame in got] == [frame.id for frame in heard]


def test_one_that_goes_away_is_forgotten(store: Store, hub: Hub, audience: Audience) -> None:
    listener, _ = audience.join(hub, store)
    assert hub.streams == 1
    listener.close()
    eventually(lambda: hub.streams == 0)


def test_there_are_no_more_streams_than_may_be(
    stores: Stores, kind: str, audience: Audience
) -> None:
    settings: Settings = stores.settings(kind, api_streams=2)
    with stores.opened(settings) as store:
        hub = Hub(store, OwnerToken(store.settings))
        hub.start()
        first, _ = audience.join(hub, store)
        audience.join(hub, store)
        with pytest.raises(Overloaded):
            audience.join(hub, store)
        first.close()
        eventually(lambda: hub.streams == 1)
        audience.join(hub, store)
        hub.stop()
        with pytest.raises(Overloaded):
            audience.join(hub, store)


def test_all_are_told_when_it_stops_and_even_the_deaf_do_not_keep_it(
    store: Store, hub: Hub, audience: Audience
) -> None:
    listeners = [audience.join(hub, store)[0] for _ in range(20)]
    deaf = [audience.join(hub, store)[1] for _ in range(2)]
    for each in deaf:
        hub.write_to(each, [b"x" * MAX_PENDING_BYTES])
    hub.end(deaf[0], EndReason.DROPPED, "it does not listen")
    began = time.monotonic()
    hub.stop()
    eventually(lambda: hub.streams == 0)
    assert time.monotonic() - began < hub_module.GOODBYE_SECONDS
    for listener in listeners:
        assert [frame.event for frame in listener.rest()] == ["closing"]


def test_a_store_that_fails_for_a_while_costs_no_event(
    store: Store, hub: Hub, monkeypatch: pytest.MonkeyPatch, audience: Audience
) -> None:
    listener, _ = audience.join(hub, store)
    failures = [StoreBusy("busy"), RuntimeError("a mistake")]

    def failing(given: Store, events: Sequence[EventRecord]) -> list[EncodedEvent]:
        if failures:
            raise failures.pop()
        return encode_events(given, events)

    monkeypatch.setattr(hub_module, "encode_events", failing)
    monkeypatch.setattr(hub_module, "RETRY_SECONDS", 0.05)
    happen(store, "a", "b")
    assert agents([listener.event(), listener.event()]) == ["a", "b"]
    assert not failures


def test_one_for_whom_the_store_fails_is_told_so_and_can_come_back(
    store: Store, hub: Hub, monkeypatch: pytest.MonkeyPatch, audience: Audience
) -> None:
    happen(store, *(f"a{number}" for number in range(2 * backlog.MAX_RECENT_EVENTS)))
    eventually(lambda: hub.position == newest(store))

    def failing(*_: object) -> list[EventRecord]:
        raise StoreBusy("busy")

    with monkeypatch.context() as patch:
        patch.setattr(replay, "list_events", failing)
        listener, _ = audience.join(hub, store, since=0)
        assert [frame.event for frame in listener.rest()] == ["failed"]
    again, _ = audience.join(hub, store, since=0)
    assert len(again.upto(newest(store))) == 2 * backlog.MAX_RECENT_EVENTS
