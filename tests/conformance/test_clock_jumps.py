"""A clock that is set back, or that differs between hosts, reverses no lane."""

from __future__ import annotations

import pytest

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.message import Priority
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Ordering, configure_lane
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, in_order, lane, send, take, texts_of
from tests.stores import FakeClock, Stores


@pytest.mark.parametrize("ordering", [*Ordering])
def test_what_comes_after_the_clock_was_set_back_stands_behind_what_waits(
    store: Store, clock: FakeClock, ordering: Ordering
) -> None:
    lane(store, policy=LanePolicy(ordering=ordering))
    for text in ("early 0", "early 1"):
        send(store, text)
        clock.advance(1000)
    clock.set_by(-10 * MINUTE)
    for text in ("after 0", "after 1"):
        send(store, text)
        clock.advance(1000)
    clock.advance(HOUR)
    send(store, "late")
    assert in_order(store) == ["early 0", "early 1", "after 0", "after 1", "late"]


def test_what_ran_when_the_clock_was_set_back_returns_to_its_place_before_those_after(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "first")
    token = take(store).token
    clock.set_by(-10 * MINUTE)
    send(store, "after")
    do(store, release, token)
    assert in_order(store) == ["first", "after"]


def test_another_ordering_keeps_those_of_one_rank_in_their_order_after_a_jump(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "early")
    clock.set_by(-10 * MINUTE)
    send(store, "after")
    send(store, "urgent", priority=Priority.CRITICAL)
    do(store, configure_lane, "coder", LanePolicy(ordering=Ordering.PRIORITY))
    assert in_order(store) == ["urgent", "early", "after"]


def test_a_host_whose_clock_is_behind_does_not_push_ahead(
    stores: Stores, settings: Settings, store: Store
) -> None:
    lane(store)
    with stores.opened(settings, FakeClock(store.clock.now() - MINUTE)) as behind:
        for number in range(4):
            send((store, behind)[number % 2], str(number))
    assert in_order(store) == list("0123")


def test_a_delay_is_as_long_as_was_asked_whatever_the_clock_was_before(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "early")
    done(store, take(store).token)
    clock.set_by(-10 * MINUTE)
    send(store, "delayed", delay=MINUTE)
    clock.advance(MINUTE)
    assert texts_of(take(store)) == ["delayed"]
