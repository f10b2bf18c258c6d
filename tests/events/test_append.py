"""An event is there exactly when what it tells of is."""

from __future__ import annotations

import pytest

from bullpen.core.events.append import append_event
from bullpen.core.events.base import MessageRef, UnknownEvent
from bullpen.core.events.conversation import MessageEnqueued
from bullpen.core.events.tail import EventTail
from bullpen.core.store.base import Store
from tests.events.tails import happen, names, read_all, undo
from tests.stores import FakeClock


def test_an_event_of_a_rolled_back_transaction_never_was(store: Store) -> None:
    tail = EventTail(store, 0)
    undo(store, "undone")
    happen(store, "done")
    assert names(read_all(tail)) == ["done"]


def test_an_event_of_a_callers_own_transaction_is_rolled_back_with_it(store: Store) -> None:
    tail = EventTail(store, 0)
    with store.engine.connect() as connection:
        with connection.begin() as transaction, store.join(connection) as tx:
            append_event(tx, MessageEnqueued(MessageRef("undone", None, None)))
            transaction.rollback()
        with connection.begin(), store.join(connection) as tx:
            append_event(tx, MessageEnqueued(MessageRef("done", None, None)))
    assert names(read_all(tail)) == ["done"]


@pytest.mark.parametrize("ended", ["commit", "rollback", "close"])
def test_what_joins_a_connection_that_has_not_begun_is_there_only_after_its_commit(
    store: Store, ended: str
) -> None:
    with store.engine.connect() as connection:
        with store.join(connection) as tx:
            append_event(tx, MessageEnqueued(MessageRef("a", None, None)))
        before = names(read_all(EventTail(store, 0)))
        getattr(connection, ended)()
    after = names(read_all(EventTail(store, 0)))
    assert (before, after) == ([], ["a"] if ended == "commit" else [])


def test_an_event_is_not_seen_before_its_commit(store: Store) -> None:
    tail = EventTail(store, 0)
    with store.write() as tx:
        append_event(tx, MessageEnqueued(MessageRef("a", None, None)))
        assert read_all(tail) == []
    assert names(read_all(tail)) == ["a"]


def test_all_that_is_said_of_an_event_is_read_again(store: Store, clock: FakeClock) -> None:
    said = {"cost": 0.5, "text": 'é "\n☃', "none": None, "list": [1, "b"], "kind": "x"}
    with store.write() as tx:
        append_event(tx, UnknownEvent("tomorrow", said, MessageRef("coder", "api_1", "api_2")))
    (event,) = read_all(EventTail(store, 0))
    assert event.type == "tomorrow"
    assert (event.agent, event.conversation_id, event.message_id) == ("coder", "api_1", "api_2")
    assert event.data == said
    assert event.created_at == clock.now()


def test_an_event_without_more_to_say_has_empty_data(store: Store) -> None:
    happen(store, "a")
    (event,) = read_all(EventTail(store, 0))
    assert event.data == {}
    assert event.conversation_id is None
