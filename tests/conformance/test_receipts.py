"""Receipts: a platform's redelivery is recognised, and changes nothing."""

from __future__ import annotations

from dataclasses import replace

from bullpen.core.message import Accepted, NewMessage
from bullpen.core.models import MESSAGES, MESSAGES_ARCHIVE, RECEIPTS
from bullpen.core.queue.enqueue import enqueue, enqueue_many
from bullpen.core.queue.lanes import LanePolicy, drain_lane
from bullpen.core.store.base import Store
from tests.conformance.verbs import AGENT, do, done, dump, lane, rows, send, take, to_archive
from tests.stores import START, FakeClock

EVENT = NewMessage(agent=AGENT, message="hi", channel="slack", event_ids=("Ev1",))


def _enqueue(store: Store, new: NewMessage) -> Accepted:
    with store.write() as tx:
        return enqueue(tx, new)


def test_a_redelivery_gets_the_first_id_and_writes_nothing(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    before = dump(store)
    again = _enqueue(store, EVENT)
    assert (first.fresh, again) == (True, Accepted(first.message_id, fresh=False))
    assert dump(store) == before


def test_a_receipt_is_written_with_its_message(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    (receipt,) = rows(store, RECEIPTS)
    assert receipt == {
        "channel": "slack",
        "event_id": "Ev1",
        "message_id": first.message_id,
        "created_at": START,
    }


def test_a_redelivery_is_known_after_the_message_is_finished_and_archived(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    done(store, take(store).token)
    to_archive(store, first.message_id)
    assert _enqueue(store, EVENT) == Accepted(first.message_id, fresh=False)


def test_a_redelivery_to_a_full_or_draining_lane_is_still_taken_as_known(store: Store) -> None:
    lane(store, policy=LanePolicy(max_depth=1))
    first = _enqueue(store, EVENT)
    assert _enqueue(store, EVENT) == Accepted(first.message_id, fresh=False)
    do(store, drain_lane, AGENT)
    assert _enqueue(store, EVENT) == Accepted(first.message_id, fresh=False)


def test_a_redelivery_in_one_list_is_known_even_for_an_agent_that_does_not_exist(
    store: Store,
) -> None:
    lane(store)
    with store.write() as tx:
        first, again = enqueue_many(tx, [EVENT, replace(EVENT, agent="nobody")])
    assert (first.fresh, again) == (True, Accepted(first.message_id, fresh=False))


def test_the_same_event_id_of_another_channel_is_another_message(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    other = _enqueue(
        store, NewMessage(agent=AGENT, message="hi", channel="sms", event_ids=("Ev1",))
    )
    assert other.fresh
    assert other.message_id != first.message_id


def test_a_known_event_among_many_keeps_its_place_in_the_answer(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    fresh = NewMessage(agent=AGENT, message="new", channel="slack", event_ids=("Ev2",))
    plain = NewMessage(agent=AGENT, message="plain")
    with store.write() as tx:
        accepted = enqueue_many(tx, [fresh, EVENT, plain])
    assert [each.fresh for each in accepted] == [True, False, True]
    assert accepted[1].message_id == first.message_id
    assert len(rows(store, MESSAGES)) == 3


def test_one_event_twice_in_one_call_is_one_message(store: Store) -> None:
    lane(store)
    with store.write() as tx:
        accepted = enqueue_many(tx, [EVENT, EVENT])
    assert accepted == [accepted[0], Accepted(accepted[0].message_id, fresh=False)]
    assert len(rows(store, MESSAGES)) == 1


def test_a_redelivery_after_its_deadline_is_still_a_redelivery(
    store: Store, clock: FakeClock
) -> None:
    """A refusal would make the platform deliver it for ever."""
    lane(store)
    event = replace(EVENT, deadline=START + 10)
    first = _enqueue(store, event)
    clock.advance(20)
    assert _enqueue(store, event) == Accepted(first.message_id, fresh=False)


def test_messages_without_receipts_are_never_taken_for_each_other(store: Store) -> None:
    lane(store)
    assert send(store) != send(store)
    assert rows(store, RECEIPTS) == []


TWO_IDS = replace(EVENT, event_ids=("C1:17.5", "client-1"))


def test_a_message_with_one_of_several_ids_stored_before_is_a_redelivery(store: Store) -> None:
    """Slack gives one gesture two time stamps, but one client id."""
    lane(store)
    first = _enqueue(store, TWO_IDS)
    for ids in (("C1:17.5",), ("client-1",), ("C1:38.1", "client-1")):
        again = _enqueue(store, replace(TWO_IDS, event_ids=ids))
        assert again == Accepted(first.message_id, fresh=False)
    assert len(rows(store, MESSAGES)) == 1
    assert {row["event_id"] for row in rows(store, RECEIPTS)} == {"C1:17.5", "client-1", "C1:38.1"}


def test_an_id_that_only_a_redelivery_had_is_known_afterwards(store: Store) -> None:
    lane(store)
    first = _enqueue(store, EVENT)
    _enqueue(store, replace(EVENT, event_ids=("Ev1", "client-1")))
    again = _enqueue(store, replace(EVENT, event_ids=("client-1",)))
    assert again == Accepted(first.message_id, fresh=False)


def test_messages_of_one_call_that_share_an_id_are_one_message(store: Store) -> None:
    lane(store)
    ids = [("a", "b"), ("b", "c"), ("c",), ("d", "d")]
    with store.write() as tx:
        accepted = enqueue_many(tx, [replace(EVENT, event_ids=each) for each in ids])
    assert [each.fresh for each in accepted] == [True, False, False, True]
    assert len({each.message_id for each in accepted[:3]}) == 1
    assert [row["event_id"] for row in rows(store, RECEIPTS)] == ["a", "b", "c", "d"]


def test_the_time_of_writing_is_kept_through_the_archive(store: Store) -> None:
    lane(store)
    first = _enqueue(store, replace(EVENT, written_at=START - 1000))
    claimed = take(store)
    assert claimed.primary.written_at == START - 1000
    done(store, claimed.token)
    to_archive(store, first.message_id)
    (kept,) = rows(store, MESSAGES_ARCHIVE)
    assert kept["written_at"] == START - 1000
