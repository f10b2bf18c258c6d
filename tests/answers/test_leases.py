"""When a lease ends: by what a process has seen of it, whatever the clocks say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bullpen.core.answers.leases import by_observation, claim_for_worker, end_expired_claims
from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.errors import StaleToken
from bullpen.core.queue.claim import extend
from bullpen.core.queue.finish import finish
from bullpen.core.queue.lanes import LOCK_LANE
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    ANSWERED,
    dump,
    failed,
    lane,
    message,
    responses,
    send,
    status,
    take,
)
from tests.stores import FakeClock, Stores

LOOK = 5 * SECOND
"""How often a scheduler looks."""
RENEW = 20 * SECOND
"""How often a processor extends its leases."""


@pytest.fixture
def token(store: Store) -> str:
    """A claim on api_1, whose lease lasts a minute."""
    lane(store)
    send(store, message_id="api_1")
    return take(store).token


@pytest.fixture
def other(stores: Stores, settings: Settings, store: Store) -> Iterator[Store]:
    """The store as another host has it, with a clock of its own."""
    with stores.opened(settings, FakeClock(store.clock.now())) as opened:
        yield opened


def extend_lease(store: Store, token: str) -> None:
    """Extend it, as its processor does."""
    with store.write() as tx:
        extend(tx, token)


def pass_time(
    milliseconds: int, each_look: Callable[[], int], *clocks: FakeClock, look: int = LOOK
) -> list[int]:
    """Let time pass, with a look every few seconds; gives what the looks found."""
    found = []
    for _ in range(milliseconds // look):
        for clock in clocks:
            clock.advance(look)
        found.append(each_look())
    return found


def test_a_dead_processors_claim_ends_about_when_its_lease_does(
    store: Store, clock: FakeClock, token: str
) -> None:
    found = pass_time(80 * SECOND, lambda: end_expired_claims(store), clock)
    assert sum(found) == 1
    assert found.index(1) * LOOK == MINUTE
    assert message(store, "api_1")["crash_count"] == 1
    with pytest.raises(StaleToken):
        extend_lease(store, token)


@pytest.mark.parametrize("jump", [10 * MINUTE, -10 * MINUTE, 24 * HOUR])
def test_a_clock_that_is_set_ends_no_claim_of_a_living_processor(
    store: Store, clock: FakeClock, token: str, jump: int
) -> None:
    end_expired_claims(store)
    clock.set_by(jump)
    for _ in range(30):
        assert pass_time(RENEW, lambda: end_expired_claims(store), clock) == [0] * 4
        extend_lease(store, token)
    assert message(store, "api_1")["crash_count"] == 0


@pytest.mark.parametrize("jump", [10 * MINUTE, -10 * MINUTE])
def test_a_dead_processors_claim_ends_in_time_whatever_the_clock_is_set_to(
    store: Store, clock: FakeClock, token: str, jump: int
) -> None:
    end_expired_claims(store)
    clock.set_by(jump)
    assert sum(pass_time(MINUTE, lambda: end_expired_claims(store), clock)) == 1
    assert status(store, "api_1") == "pending"


def test_after_a_sleep_of_the_machine_a_living_processor_keeps_its_claim(
    store: Store, clock: FakeClock, token: str
) -> None:
    for _ in range(5):
        pass_time(RENEW, lambda: end_expired_claims(store), clock)
        clock.advance(HOUR)  # nobody looks, and nobody extends
        assert end_expired_claims(store) == 0
        clock.advance(LOOK - 1)
        extend_lease(store, token)
        assert end_expired_claims(store) == 0
    assert message(store, "api_1")["crash_count"] == 0
    assert sum(pass_time(MINUTE, lambda: end_expired_claims(store), clock)) == 1


@pytest.mark.parametrize("ahead", [65 * SECOND, -65 * SECOND])
def test_a_scheduler_whose_clock_is_wrong_ends_no_living_claim_and_every_dead_one(
    store: Store, other: Store, clock: FakeClock, token: str, ahead: int
) -> None:
    theirs = other.clock
    assert isinstance(theirs, FakeClock)
    theirs.set_by(ahead)
    for _ in range(30):
        assert pass_time(RENEW, lambda: end_expired_claims(other), clock, theirs) == [0] * 4
        extend_lease(store, token)
    assert sum(pass_time(65 * SECOND, lambda: end_expired_claims(other), clock, theirs)) == 1


def test_a_lease_of_an_hour_is_not_taken_for_one_of_a_minute(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    send(store)
    with store.write() as tx:
        assert claim_for_worker(tx, "w-1", "coder", lease=HOUR) is not None
    found = pass_time(70 * MINUTE, lambda: end_expired_claims(store), clock, look=MINUTE)
    assert found.index(1) == 60


def test_an_outside_worker_takes_over_what_it_saw_left_behind(
    store: Store, clock: FakeClock, token: str
) -> None:
    has_ended = by_observation(store)

    def try_claim() -> bool:
        with store.write() as tx:
            return claim_for_worker(tx, "w-2", "coder", has_ended=has_ended) is not None

    clock.set_by(10 * MINUTE)
    found = pass_time(70 * SECOND, try_claim, clock, look=SECOND)
    assert found.index(True) == 60


@pytest.mark.postgres
def test_a_lease_that_its_locked_lane_kept_from_being_extended_gets_its_time_again(
    stores: Stores, clock: FakeClock
) -> None:
    settings = stores.settings("postgresql")
    with stores.opened(settings, clock) as store:
        lane(store)
        sent = send(store)
        token = take(store).token
        with store.write() as peer:
            peer.one(LOCK_LANE, {"agent": "coder"})
            assert sum(pass_time(10 * MINUTE, lambda: end_expired_claims(store), clock)) == 0
        assert end_expired_claims(store) == 0
        extend_lease(store, token)
        assert status(store, sent) == "processing"


def test_a_late_finish_that_nobody_overtook_loses_nothing(
    store: Store, clock: FakeClock, token: str
) -> None:
    clock.advance(HOUR)
    with store.write() as tx:
        finish(tx, token, ANSWERED)
    assert [row["message"] for row in responses(store)] == ["done"]
    before = dump(store)
    with pytest.raises(StaleToken):
        failed(store, token)
    assert dump(store) == before
