"""hold and resume: a message waits for a person, and no longer."""

from __future__ import annotations

from bullpen.core.clock import MINUTE
from bullpen.core.queue.manage import hold, resume
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    do,
    done,
    events,
    failed,
    ids_of,
    in_order,
    lane,
    lane_row,
    message,
    send,
    status,
    take,
    try_claim,
)
from tests.stores import START, FakeClock


def test_a_held_message_does_not_run_and_says_why(store: Store) -> None:
    lane(store)
    sent = send(store)
    do(store, hold, sent, "needs approval")
    row = message(store, sent)
    assert (row["status"], row["last_error"]) == ("held", "needs approval")
    assert lane_row(store)["pending"] == 0
    assert try_claim(store) is None
    (event,) = events(store, "message_held")
    assert event["message_id"] == sent
    assert "needs approval" in event["data"]


def test_the_next_message_runs_while_the_first_is_held(store: Store) -> None:
    lane(store)
    first, second = send(store, sender="a"), send(store, sender="b")
    do(store, hold, first, "wait")
    assert ids_of(take(store)) == [second]


def test_a_message_that_is_let_go_takes_its_old_place(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = []
    for text in "abc":
        sent.append(send(store, text))
        clock.advance(MINUTE)
    for each in sent[:2]:
        do(store, hold, each, "wait")
    do(store, resume, sent[1])
    do(store, resume, sent[0])
    assert in_order(store) == list("abc")
    assert [event["message_id"] for event in events(store, "message_let_go")] == sent[1::-1]


def test_a_message_enqueued_on_hold_runs_in_its_place_once_let_go(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    first = send(store, "first", hold_reason="wait")
    clock.advance(1)
    send(store, "second")
    do(store, resume, first)
    assert in_order(store) == ["first", "second"]


def test_a_message_let_go_during_a_run_waits_for_its_end(store: Store) -> None:
    lane(store)
    first = send(store, sender="a")
    do(store, hold, first, "wait")
    send(store, sender="b")
    found = take(store)
    do(store, resume, first)
    assert try_claim(store) is None
    done(store, found.token)
    assert ids_of(take(store)) == [first]


def test_a_message_held_in_back_off_goes_on_waiting_after_it(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=MINUTE)
    do(store, hold, sent, "wait")
    do(store, resume, sent)
    assert status(store, sent) == "pending"
    assert try_claim(store) is None
    clock.advance(MINUTE)
    assert ids_of(take(store)) == [sent]


def test_a_delayed_message_may_be_held_past_its_time(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, delay=MINUTE)
    do(store, hold, sent, "wait")
    clock.advance(2 * MINUTE)
    assert try_claim(store) is None
    do(store, resume, sent)
    assert ids_of(take(store)) == [sent]


def test_a_message_held_past_its_deadline_expires_instead_of_running(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, deadline=START + MINUTE)
    do(store, hold, sent, "wait")
    clock.advance(MINUTE)
    do(store, resume, sent)
    assert try_claim(store) is None
    assert status(store, sent) == "expired"
