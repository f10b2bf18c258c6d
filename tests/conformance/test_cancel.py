"""cancel: a person wants no answer any more."""

from __future__ import annotations

import pytest

from bullpen.core.errors import StaleToken, UnknownMessage
from bullpen.core.message import ErrorKind, NewMessage, Outcome
from bullpen.core.models import ATTEMPTS, MESSAGES
from bullpen.core.queue.claim import extend
from bullpen.core.queue.conversations import cancel_conversation
from bullpen.core.queue.manage import CANCEL_WAIT_MS, cancel, confirm_run_ended, hold
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    ids_of,
    lane,
    lane_row,
    message,
    refused,
    responses,
    rows,
    send,
    status,
    take,
    try_claim,
)
from tests.stores import FakeClock


def test_a_cancelled_waiting_message_never_runs(store: Store) -> None:
    lane(store)
    sent = send(store)
    do(store, cancel, sent, "changed my mind")
    row = message(store, sent)
    assert (row["status"], row["last_error"]) == ("cancelled", "changed my mind")
    assert try_claim(store) is None
    (event,) = events(store, "message_cancelled")
    assert event["message_id"] == sent


def test_a_cancelled_message_in_back_off_never_runs(store: Store) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=1_000)
    do(store, cancel, sent)
    assert (status(store, sent), lane_row(store)["pending"]) == ("cancelled", 0)


def test_a_held_message_can_be_cancelled(store: Store) -> None:
    lane(store)
    sent = send(store)
    do(store, hold, sent, "wait")
    do(store, cancel, sent)
    assert (status(store, sent), lane_row(store)["pending"]) == ("cancelled", 0)


def test_cancelling_the_head_makes_the_next_one_the_head(store: Store) -> None:
    lane(store)
    first, second = send(store, sender="a"), send(store, sender="b")
    do(store, cancel, first)
    assert ids_of(take(store)) == [second]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_cancelling_one_of_a_running_batch_ends_the_run_and_gives_the_others_back(
    store: Store, clock: FakeClock, which: int
) -> None:
    lane(store)
    sent = [send(store, text) for text in "abc"]
    found = take(store)
    do(store, cancel, sent[which])
    refused(store, StaleToken, extend, found.token)
    others = [each for each in sent if each != sent[which]]
    assert status(store, sent[which]) == "cancelled"
    for each in others:
        row = message(store, each)
        assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
        assert (row["last_error"], row["claim_token"]) == (None, None)
    (attempt,) = rows(store, ATTEMPTS)
    assert (attempt["outcome"], attempt["messages"]) == ("cancelled", 3)
    assert [event["message_id"] for event in events(store, "message_cancelled")] == [sent[which]]
    clock.advance(CANCEL_WAIT_MS)
    assert ids_of(take(store)) == others
    assert responses(store) == []


def test_no_run_begins_beside_one_that_was_cancelled_and_still_dies(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    first = send(store, "a", sender_id="u1")
    second = send(store, "b", sender_id="u2")
    take(store)
    do(store, cancel, first)
    assert try_claim(store) is None
    clock.advance(CANCEL_WAIT_MS - 1)
    assert try_claim(store) is None
    clock.advance(1)
    assert ids_of(take(store)) == [second]


def test_word_that_the_cancelled_run_is_over_lets_the_lane_go_on(store: Store) -> None:
    lane(store)
    first = send(store, "a", sender_id="u1")
    second = send(store, "b", sender_id="u2")
    found = take(store)
    do(store, cancel, first)
    do(store, confirm_run_ended, found)
    assert ids_of(take(store)) == [second]


def test_word_of_an_old_run_does_not_lift_a_rate_limit(store: Store) -> None:
    lane(store)
    first = send(store, "a", sender_id="u1")
    found = take(store)
    do(store, cancel, first)
    do(store, confirm_run_ended, found)
    send(store, "b", sender_id="u2")
    failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=60_000)
    do(store, confirm_run_ended, found)
    assert try_claim(store) is None


def test_a_waiting_message_is_cancelled_and_the_running_one_goes_on(store: Store) -> None:
    lane(store)
    running = send(store, "a", sender_id="u1")
    waiting = send(store, "b", sender_id="u2")
    found = take(store)
    do(store, cancel, waiting)
    do(store, extend, found.token)
    done(store, found.token)
    assert (status(store, running), status(store, waiting)) == ("completed", "cancelled")


def test_an_unknown_message_cannot_be_cancelled(store: Store) -> None:
    refused(store, UnknownMessage, cancel, "api_00000000")


def _conversation(store: Store) -> list[str]:
    """A conversation with a message completed, running, waiting, held and dead, in four lanes."""
    for agent in (AGENT, "a", "b", "c", "d"):
        lane(store, agent)
    root = send(store)
    handoffs = tuple(NewMessage(agent=agent, message="go") for agent in ("a", "b", "c", "d"))
    done(store, take(store).token, Outcome(handoffs=handoffs))
    children = [row["message_id"] for row in rows(store, MESSAGES)[1:]]
    take(store, "a")
    do(store, hold, children[2], "wait")
    return [root, *children]


def test_cancelling_a_conversation_ends_everything_of_it_that_is_open(store: Store) -> None:
    root, *children = _conversation(store)
    stranger = send(store, "another matter", sender="bob")
    with store.write() as tx:
        assert cancel_conversation(tx, root, "stop") == 4
    assert [status(store, each) for each in children] == ["cancelled"] * 4
    assert (status(store, root), status(store, stranger)) == ("completed", "pending")
    assert len(events(store, "message_cancelled")) == 4
    assert ids_of(take(store)) == [stranger]
    assert try_claim(store) is None


def test_cancelling_a_conversation_twice_does_nothing_more(store: Store) -> None:
    root, *_ = _conversation(store)
    do(store, cancel_conversation, root)
    with store.write() as tx:
        assert cancel_conversation(tx, root) == 0


def test_cancelling_a_conversation_ends_its_first_message_too(store: Store) -> None:
    lane(store)
    root = send(store)
    mate = send(store, "same sender, own conversation")
    take(store)
    with store.write() as tx:
        assert cancel_conversation(tx, root) == 1
    assert (status(store, root), status(store, mate)) == ("cancelled", "pending")


def test_a_batch_of_one_conversation_is_cancelled_whole(store: Store) -> None:
    lane(store)
    root = send(store)
    mates = [send(store, conversation_id=root, parent_id=root) for _ in range(2)]
    take(store)
    with store.write() as tx:
        assert cancel_conversation(tx, root) == 3
    assert [status(store, each) for each in (root, *mates)] == ["cancelled"] * 3
    assert try_claim(store) is None


def test_a_message_that_was_put_into_a_conversation_is_cancelled_with_it(store: Store) -> None:
    lane(store)
    root = send(store)
    follow_up = send(store, "and another thing", conversation_id=root)
    with store.write() as tx:
        assert cancel_conversation(tx, root) == 2
    assert status(store, follow_up) == "cancelled"


def test_an_unknown_conversation_has_nothing_to_cancel(store: Store) -> None:
    with store.write() as tx:
        assert cancel_conversation(tx, "api_00000000") == 0
