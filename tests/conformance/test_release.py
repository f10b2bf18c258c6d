"""release: a claim is given up, and nobody is to blame."""

from __future__ import annotations

from bullpen.core.message import Priority
from bullpen.core.models import ATTEMPTS
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Ordering
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    do,
    events,
    ids_of,
    in_order,
    lane,
    lane_row,
    message,
    responses,
    rows,
    send,
    take,
)
from tests.stores import FakeClock


def test_a_release_counts_nothing_however_often(store: Store) -> None:
    lane(store)
    sent = send(store)
    for _ in range(10):
        do(store, release, take(store).token)
    row = message(store, sent)
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
    assert (row["last_error"], row["error_kind"], row["claim_token"]) == (None, None, None)
    assert responses(store) == []


def test_released_messages_can_be_claimed_at_once_in_their_old_place(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=LanePolicy(ordering=Ordering.PRIORITY))
    sent = [send(store, text, priority=Priority.HIGH) for text in "abc"]
    found = take(store)
    clock.advance(1)
    send(store, "later", priority=Priority.HIGH)
    do(store, release, found.token)
    assert lane_row(store)["pending"] == 4
    assert ids_of(take(store, limit=3)) == sent


def test_a_release_is_recorded_as_an_attempt_and_an_event(store: Store) -> None:
    lane(store)
    sent = send(store)
    do(store, release, take(store).token, "shutting down")
    (attempt,) = rows(store, ATTEMPTS)
    assert (attempt["outcome"], attempt["message_id"]) == ("released", sent)
    (event,) = events(store, "message_released")
    assert event["message_id"] == sent
    assert "shutting down" in event["data"]


def test_what_came_in_the_meantime_stays_behind(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, "first", sender="a")
    found = take(store)
    clock.advance(1)
    send(store, "second", sender="b")
    do(store, release, found.token)
    assert in_order(store) == ["first", "second"]
