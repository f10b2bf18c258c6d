"""Lanes that go by priority or by deadline, and how waiting makes a message rise."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.message import Priority
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Ordering, configure_lane
from bullpen.core.queue.manage import cancel, retry
from bullpen.core.store.base import Store
from tests.conformance.verbs import AGENT, do, failed, in_order, lane, send, take, texts_of
from tests.stores import START, FakeClock

FIFO = LanePolicy(ordering=Ordering.FIFO)
BY_PRIORITY = LanePolicy(ordering=Ordering.PRIORITY)
BY_DEADLINE = LanePolicy(ordering=Ordering.DEADLINE)


def test_the_more_urgent_tier_goes_first(store: Store) -> None:
    lane(store, policy=BY_PRIORITY)
    for tier in (Priority.LOW, Priority.CRITICAL, Priority.BACKGROUND, Priority.NORMAL):
        send(store, tier.name, priority=tier)
    send(store, "HIGH", priority=Priority.HIGH)
    assert in_order(store) == ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"]


def test_messages_of_one_tier_go_in_the_order_in_which_they_came(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=BY_PRIORITY)
    for text in "abc":
        send(store, text, priority=Priority.HIGH)
        clock.advance(1)
    assert in_order(store) == list("abc")


@pytest.mark.parametrize(("higher", "lower"), list(pairwise(Priority)))
@pytest.mark.parametrize(("waited", "first"), [(10 * MINUTE - 1, "new"), (10 * MINUTE, "old")])
def test_a_message_overtakes_the_next_tier_after_ten_minutes(
    store: Store, clock: FakeClock, higher: Priority, lower: Priority, waited: int, first: str
) -> None:
    lane(store, policy=BY_PRIORITY)
    send(store, "old", priority=lower)
    clock.advance(waited)
    send(store, "new", priority=higher)
    assert in_order(store)[0] == first


def test_a_low_message_is_passed_for_twenty_minutes_by_high_ones_and_then_no_more(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=BY_PRIORITY)
    send(store, "low", priority=Priority.LOW)
    for minute in range(25):
        send(store, str(minute), priority=Priority.HIGH)
        clock.advance(MINUTE)
    order = in_order(store)
    assert order.index("low") == 20
    assert order[:20] == [str(minute) for minute in range(20)]


def test_priority_means_nothing_in_a_lane_that_goes_by_arrival(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=FIFO)
    send(store, "first", priority=Priority.BACKGROUND)
    clock.advance(1)
    send(store, "second", priority=Priority.CRITICAL)
    assert in_order(store) == ["first", "second"]


def test_the_nearest_deadline_goes_first(store: Store) -> None:
    lane(store, policy=BY_DEADLINE)
    send(store, "none")
    send(store, "late", deadline=START + 3 * HOUR)
    send(store, "soon", deadline=START + HOUR)
    send(store, "far", deadline=START + 2 * DAY)
    assert in_order(store) == ["soon", "late", "none", "far"]


def test_what_waits_is_put_into_the_new_order(store: Store, clock: FakeClock) -> None:
    lane(store, policy=FIFO)
    send(store, "normal", deadline=START + 2 * HOUR)
    clock.advance(1)
    send(store, "critical", priority=Priority.CRITICAL, deadline=START + 3 * HOUR)
    clock.advance(1)
    send(store, "low", priority=Priority.LOW, deadline=START + HOUR)
    do(store, configure_lane, AGENT, BY_PRIORITY)
    assert texts_of(take(store, limit=1)) == ["critical"]
    _give_back(store)
    do(store, configure_lane, AGENT, BY_DEADLINE)
    assert texts_of(take(store, limit=1)) == ["low"]
    _give_back(store)
    do(store, configure_lane, AGENT, FIFO)
    assert in_order(store) == ["normal", "critical", "low"]


def _give_back(store: Store) -> None:
    with store.read() as tx:
        row = tx.fetch("SELECT claim_token FROM lanes WHERE claim_token IS NOT NULL")
    assert row is not None
    do(store, release, row[0])


def test_a_new_order_also_holds_for_what_was_running_when_it_came(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=FIFO)
    send(store, "first", sender="a")
    clock.advance(1)
    send(store, "second", sender="b")
    found = take(store)
    do(store, configure_lane, AGENT, BY_PRIORITY)
    do(store, release, found.token)
    assert in_order(store) == ["first", "second"]


def test_a_new_order_also_holds_for_what_a_person_tries_again(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=FIFO)
    first = send(store, "first", sender="a")
    do(store, cancel, first)
    clock.advance(1)
    send(store, "second", sender="b")
    do(store, configure_lane, AGENT, BY_PRIORITY)
    do(store, retry, first)
    assert in_order(store) == ["first", "second"]


def test_a_new_order_keeps_the_place_of_what_was_tried_before(
    store: Store, clock: FakeClock
) -> None:
    lane(store, policy=FIFO)
    send(store, "first", sender="a")
    clock.advance(MINUTE)
    send(store, "second", sender="b")
    clock.advance(MINUTE)
    failed(store, take(store).token, retry_after=0)
    do(store, configure_lane, AGENT, BY_PRIORITY)
    assert in_order(store) == ["first", "second"]


def test_a_new_order_keeps_the_place_of_what_was_given_back(store: Store, clock: FakeClock) -> None:
    lane(store, policy=BY_PRIORITY)
    send(store, "first", sender="a")
    clock.advance(MINUTE)
    send(store, "second", sender="b")
    clock.advance(MINUTE)
    do(store, release, take(store).token)
    do(store, configure_lane, AGENT, FIFO)
    assert in_order(store) == ["first", "second"]
