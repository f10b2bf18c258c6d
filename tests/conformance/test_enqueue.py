"""enqueue: one message or many, all or none."""

from __future__ import annotations

import pytest

from bullpen.core.errors import LaneFull, UnknownAgent
from bullpen.core.message import NewMessage, Priority, ReplyTo
from bullpen.core.models import MESSAGES
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.lanes import LanePolicy
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    broken_off,
    dump,
    events,
    lane,
    lane_row,
    message,
    rows,
    send,
    status,
)
from tests.stores import START


def test_an_accepted_message_is_stored_as_it_was_given(store: Store) -> None:
    lane(store)
    new = NewMessage(
        agent="coder",
        message="Grüße, 世界 🎉\n\ttabs and 'quotes' \"too\"; -- %s :name",
        channel="slack",
        sender="Ada",
        sender_id="U1",
        from_agent="reviewer",
        files=("/a b.txt", "/c.txt"),
        conversation_id="slack_aaaaaaaa",
        parent_id="slack_bbbbbbbb",
        hop=2,
        team_id="dev",
        reply_to=ReplyTo("C1", "T1", "M1"),
        priority=Priority.HIGH,
        payload='{"a": 1}',
        schema="v1",
    )
    with store.write() as tx:
        accepted = enqueue(tx, new)
    assert accepted.fresh
    row = message(store, accepted.message_id)
    for name in (
        *("agent", "message", "channel", "sender", "sender_id", "from_agent", "conversation_id"),
        *("parent_id", "hop", "team_id", "payload", "schema"),
    ):
        assert row[name] == getattr(new, name), name
    assert row["files"] == '["/a b.txt", "/c.txt"]'
    assert ReplyTo.parse(row["reply_to"]) == new.reply_to
    assert (row["status"], row["priority"]) == ("pending", 1)
    assert (row["retry_count"], row["crash_count"]) == (0, 0)
    assert row["created_at"] == row["updated_at"] == row["available_at"] == START


def test_a_message_without_a_conversation_begins_its_own(store: Store) -> None:
    lane(store)
    sent = send(store)
    assert message(store, sent)["conversation_id"] == sent


def test_a_message_is_there_after_the_store_was_opened_again(store: Store) -> None:
    lane(store)
    sent = send(store)
    store.close()
    assert status(store, sent) == "pending"


def test_many_are_accepted_in_the_order_given(store: Store) -> None:
    lane(store, "a")
    lane(store, "b")
    news = [NewMessage(agent="ba"[n % 2], message=str(n)) for n in range(7)]
    with store.write() as tx:
        accepted = enqueue_many(tx, news)
    assert [message(store, each.message_id)["message"] for each in accepted] == list("0123456")
    assert (lane_row(store, "a")["pending"], lane_row(store, "b")["pending"]) == (3, 4)


def test_enqueueing_none_writes_nothing(store: Store) -> None:
    before = dump(store)
    with store.write() as tx:
        assert enqueue_many(tx, []) == []
    assert dump(store) == before


def test_one_bad_message_among_many_keeps_all_out(store: Store) -> None:
    lane(store)
    before = dump(store)
    news = [NewMessage(agent=agent, message="x") for agent in ("coder", "coder", "ghost")]
    with pytest.raises(UnknownAgent), store.write() as tx:
        enqueue_many(tx, news)
    assert dump(store) == before


def test_many_for_a_lane_with_room_for_fewer_are_all_refused(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=3))
    send(store)
    before = dump(store)
    with pytest.raises(LaneFull), store.write() as tx:
        enqueue_many(tx, [NewMessage(agent="coder", message="x")] * 3)
    assert dump(store) == before


def test_an_error_later_in_the_transaction_takes_the_message_back(store: Store) -> None:
    lane(store)
    before = dump(store)
    with broken_off(store.write()) as tx:
        enqueue(tx, NewMessage(agent="coder", message="x"))
    assert dump(store) == before


def test_each_message_has_one_enqueued_event_of_its_own(store: Store) -> None:
    lane(store)
    sent = [send(store), send(store)]
    told = events(store, "message_enqueued")
    assert [event["message_id"] for event in told] == sent
    assert {event["agent"] for event in told} == {"coder"}
    assert [event["conversation_id"] for event in told] == sent


def test_a_message_may_be_as_long_as_the_limit_to_the_byte(store: Store) -> None:
    lane(store)
    text = "é" * (store.settings.message_bytes // 2)
    assert message(store, send(store, text))["message"] == text


def test_a_message_enqueued_on_hold_waits_for_a_person_and_is_not_counted(store: Store) -> None:
    lane(store)
    sent = send(store, hold_reason="over budget")
    row = message(store, sent)
    assert (row["status"], row["last_error"]) == ("held", "over budget")
    assert lane_row(store)["pending"] == 0
    (event,) = events(store, "message_held")
    assert event["message_id"] == sent


def test_numbers_of_rows_are_never_given_twice(store: Store) -> None:
    lane(store)
    send(store)
    (first,) = rows(store, MESSAGES)
    with store.engine.begin() as connection:
        connection.execute(MESSAGES.delete())
        connection.exec_driver_sql("UPDATE lanes SET pending = 0, head_key = NULL")
    send(store)
    (second,) = rows(store, MESSAGES)
    assert second["id"] > first["id"]
