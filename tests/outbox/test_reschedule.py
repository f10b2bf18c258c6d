"""What could not be sent is tried again, later each time, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.outbox.delivery import begin_part, end_part, reschedule
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.outbox.outgoing import answer, do, ends, lease, lease_one, row_of, status
from tests.stores import FakeClock, Stores


def test_it_waits_out_its_back_off_and_is_leased_again(store: Store, clock: FakeClock) -> None:
    store.chance = lambda: 1.0
    response = answer(store)
    _, token = lease_one(store)
    do(store, reschedule, token, "503")
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == ("pending", "503")
    assert row["claim_token"] is None
    assert row["available_at"] == clock.now() + 2 * SECOND
    clock.advance(2 * SECOND - 1)
    assert lease(store) == []
    clock.advance(1)
    assert [each.delivery_attempts for each in lease(store)] == [2]
    assert ends(store) == []


def test_the_back_off_doubles_up_to_its_maximum(store: Store, clock: FakeClock) -> None:
    store.chance = lambda: 1.0
    response = answer(store)
    waits = []
    for _ in range(7):
        _, token = lease_one(store)
        do(store, reschedule, token, "503")
        at = int(row_of(store, response)["available_at"])
        waits.append((at - clock.now()) // SECOND)
        clock.advance(at - clock.now())
    assert waits == [2, 4, 8, 16, 32, 64, 128]


def test_the_back_off_has_full_jitter(store: Store, clock: FakeClock) -> None:
    store.chance = lambda: 0.0
    response = answer(store)
    _, token = lease_one(store)
    do(store, reschedule, token, "503")
    assert row_of(store, response)["available_at"] == clock.now() + 2 * SECOND


def test_the_platforms_retry_after_is_honoured(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, reschedule, token, "429", retry_after=90 * SECOND)
    assert row_of(store, response)["available_at"] == clock.now() + 90 * SECOND


@pytest.mark.parametrize("retry_after", [0, -5])
def test_a_retry_after_of_nothing_is_due_at_once(store: Store, retry_after: int) -> None:
    answer(store)
    _, token = lease_one(store)
    do(store, reschedule, token, "429", retry_after=retry_after)
    assert len(lease(store)) == 1


def test_after_the_eighth_counted_try_it_is_dead_with_one_event(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    for attempt in range(1, 9):
        assert status(store, response) == "pending"
        delivery, token = lease_one(store)
        assert delivery.delivery_attempts == attempt
        do(store, reschedule, token, f"503 for the {attempt}. time")
        clock.advance(5 * MINUTE)
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == ("dead", "503 for the 8. time")
    assert ends(store) == ["response_dead"]
    assert lease(store) == []


def test_rate_limits_are_not_counted(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    for _ in range(30):
        delivery, token = lease_one(store)
        assert delivery.delivery_attempts == 1
        do(store, reschedule, token, "429", retry_after=SECOND, counted=False)
        clock.advance(SECOND)
    assert status(store, response) == "pending"
    assert row_of(store, response)["delivery_attempts"] == 0


def test_a_rate_limit_on_the_last_try_does_not_kill_it(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    for _ in range(7):
        _, token = lease_one(store)
        do(store, reschedule, token, "503")
        clock.advance(5 * MINUTE)
    _, token = lease_one(store)
    do(store, reschedule, token, "429", retry_after=SECOND, counted=False)
    assert status(store, response) == "pending"
    clock.advance(SECOND)
    _, token = lease_one(store)
    do(store, reschedule, token, "503")
    assert status(store, response) == "dead"


@pytest.mark.parametrize("counted", [True, False])
def test_it_is_dead_when_the_next_try_would_be_after_it_has_expired(
    store: Store, clock: FakeClock, counted: bool
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    left = int(row_of(store, response)["expires_at"]) - clock.now()
    do(store, reschedule, token, "429", retry_after=left, counted=counted)
    assert status(store, response) == "dead"
    assert ends(store) == ["response_dead"]


def test_the_last_moment_before_it_expires_is_worth_a_try(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    left = int(row_of(store, response)["expires_at"]) - clock.now()
    do(store, reschedule, token, "429", retry_after=left - 1)
    assert status(store, response) == "pending"
    clock.advance(left - 1)
    assert len(lease(store)) == 1


def test_parts_that_were_sent_stay_sent(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, end_part, token, PartReceipt("ts-1"))
    do(store, begin_part, token)
    do(store, reschedule, token, "429", retry_after=0, counted=False)
    assert not row_of(store, response)["sending"]
    again, _ = lease_one(store)
    assert again.parts_sent == 1
    assert row_of(store, response)["part_receipts"] == '[{"id": "ts-1"}]'


@pytest.fixture
def short(stores: Stores, kind: str) -> Settings:
    """Settings under which responses are soon given up."""
    return stores.settings(kind, delivery_attempts=2, response_hours=1)


@pytest.fixture
def short_store(stores: Stores, short: Settings, clock: FakeClock) -> Iterator[Store]:
    """A store with those settings."""
    with stores.opened(short, clock) as opened:
        yield opened


def test_the_settings_decide_how_often_and_how_long(short_store: Store, clock: FakeClock) -> None:
    tried = answer(short_store)
    for _ in range(2):
        _, token = lease_one(short_store)
        do(short_store, reschedule, token, "503")
        clock.advance(MINUTE)
    assert status(short_store, tried) == "dead"
    late = answer(short_store, "slack_2")
    clock.advance(HOUR)
    assert lease(short_store) == []
    assert status(short_store, late) == "dead"
