"""Delays and deadlines: not before, and not after."""

from __future__ import annotations

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.message import NewMessage, Priority
from bullpen.core.models import ATTEMPTS
from bullpen.core.queue.enqueue import enqueue_many
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, Ordering, pause_lane
from bullpen.core.queue.timers import next_timer_at, run_timers
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    ids_of,
    in_order,
    lane,
    lane_row,
    message,
    responses,
    rows,
    send,
    status,
    statuses,
    take,
    texts_of,
    try_claim,
)
from tests.stores import START, FakeClock


def test_a_delayed_message_waits_for_its_time_to_the_millisecond(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, delay=MINUTE)
    assert (status(store, sent), lane_row(store)["pending"]) == ("pending", 1)
    clock.advance(MINUTE - 1)
    assert try_claim(store) is None
    assert try_claim(store, AGENT) is None
    clock.advance(1)
    assert ids_of(take(store)) == [sent]


def test_a_delayed_message_lets_the_others_pass_and_stands_where_its_time_puts_it(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "delayed", delay=MINUTE)
    send(store, "now")
    assert in_order(store) == ["now"]
    clock.advance(MINUTE - 1)
    send(store, "before")
    clock.advance(2)
    send(store, "after")
    assert in_order(store) == ["before", "delayed", "after"]


def test_a_delay_counts_as_no_waiting(store: Store, clock: FakeClock) -> None:
    lane(store, policy=LanePolicy(ordering=Ordering.PRIORITY))
    send(store, "low", delay=HOUR, priority=Priority.LOW)
    clock.advance(HOUR)
    send(store, "normal")
    assert in_order(store) == ["normal", "low"]


def test_a_delayed_message_that_is_due_in_a_busy_lane_waits_for_its_turn(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, delay=MINUTE)
    send(store, sender="other")
    found = take(store)
    clock.advance(MINUTE)
    assert try_claim(store) is None
    done(store, found.token)
    assert ids_of(take(store)) == [sent]


def test_everything_that_is_due_is_there_with_the_next_claim(
    store: Store, clock: FakeClock
) -> None:
    for agent in ("a", "b"):
        lane(store, agent)
        for n in range(3):
            send(store, f"{agent}{n}", agent, delay=MINUTE + n)
    clock.advance(MINUTE + 2)
    assert texts_of(take(store)) == ["a0", "a1", "a2"]
    assert texts_of(take(store)) == ["b0", "b1", "b2"]


def test_the_next_delay_or_wait_is_known(store: Store, clock: FakeClock) -> None:
    lane(store)
    lane(store, "other")
    with store.read() as tx:
        assert next_timer_at(tx) is None
    send(store, delay=HOUR)
    with store.read() as tx:
        assert next_timer_at(tx) == START + HOUR
    send(store, agent="other")
    failed(store, take(store, "other").token, retry_after=MINUTE)
    with store.read() as tx:
        assert next_timer_at(tx) == START + MINUTE
    clock.advance(HOUR)
    with store.write() as tx:
        assert run_timers(tx) == 2
        assert next_timer_at(tx) is None


def test_a_message_past_its_deadline_expires_and_never_runs(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, deadline=START + MINUTE)
    clock.advance(MINUTE)
    assert try_claim(store) is None
    assert (status(store, sent), lane_row(store)["pending"]) == ("expired", 0)
    (event,) = events(store, "message_expired")
    assert event["message_id"] == sent
    assert rows(store, ATTEMPTS) == []


def test_a_message_before_its_deadline_runs_and_may_end_after_it(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, deadline=START + MINUTE)
    clock.advance(MINUTE - 1)
    found = take(store)
    clock.advance(HOUR)
    done(store, found.token)
    assert status(store, sent) == "completed"
    assert len(responses(store)) == 1


def test_what_comes_back_after_its_deadline_expires(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, deadline=START + MINUTE)
    found = take(store)
    clock.advance(MINUTE)
    do(store, release, found.token)
    assert try_claim(store) is None
    assert status(store, sent) == "expired"


def test_a_delayed_message_may_expire_before_its_time(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, delay=HOUR, deadline=START + MINUTE)
    clock.advance(HOUR)
    assert try_claim(store) is None
    assert status(store, sent) == "expired"


def test_deadlines_pass_in_a_paused_lane_too(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = send(store, deadline=START + MINUTE)
    do(store, pause_lane, AGENT, "lunch")
    clock.advance(MINUTE)
    assert try_claim(store) is None
    assert status(store, sent) == "expired"


def test_what_expires_takes_the_messages_behind_it_to_the_front(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store, "over", deadline=START + MINUTE)
    clock.advance(1)
    send(store, "fine", deadline=START + DAY)
    clock.advance(MINUTE)
    assert in_order(store) == ["fine"]


def test_however_many_deadlines_passed_none_of_them_runs(store: Store, clock: FakeClock) -> None:
    lane(store)
    news = [NewMessage(agent=AGENT, message="late", deadline=START + MINUTE + 1)]
    news += [NewMessage(agent=AGENT, message=str(n), deadline=START + MINUTE) for n in range(700)]
    with store.write() as tx:
        enqueue_many(tx, news)
    clock.advance(HOUR)
    assert in_order(store) == []
    assert statuses(store).keys() <= {"pending", "expired"}


def test_however_many_delays_are_over_all_of_them_run(store: Store, clock: FakeClock) -> None:
    lane(store)
    news = [NewMessage(agent=AGENT, message="x", delay=MINUTE, sender=str(n)) for n in range(600)]
    with store.write() as tx:
        enqueue_many(tx, news)
    clock.advance(MINUTE)
    with store.write() as tx:
        moved = run_timers(tx) + run_timers(tx)
    assert moved == 600
    assert lane_row(store)["pending"] == 600
    assert message(store, take(store).primary.message_id)["status"] == "processing"
