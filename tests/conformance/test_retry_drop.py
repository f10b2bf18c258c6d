"""retry and drop: what a person does about dead, cancelled and expired messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.core.clock import MINUTE
from bullpen.core.errors import LaneClosed, UnknownMessage
from bullpen.core.message import ErrorKind
from bullpen.core.models import ATTEMPTS
from bullpen.core.queue.lanes import archive_lane
from bullpen.core.queue.manage import cancel, drop, resume, retry
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    in_order,
    lane,
    lane_row,
    message,
    refused,
    responses,
    rows,
    send,
    status,
    take,
    to_archive,
    try_claim,
)
from tests.stores import FakeClock


def _dead(store: Store, clock: FakeClock) -> str:
    sent = send(store, "first", sender="a")
    failed(store, take(store).token, ErrorKind.PERMANENT)
    return sent


def _cancelled(store: Store, clock: FakeClock) -> str:
    sent = send(store, "first", sender="a")
    do(store, cancel, sent)
    return sent


def _expired(store: Store, clock: FakeClock) -> str:
    sent = send(store, "first", sender="a", deadline=clock.now() + MINUTE)
    clock.advance(MINUTE)
    assert try_claim(store) is None
    return sent


ENDS = [_dead, _cancelled, _expired]
End = Callable[[Store, FakeClock], str]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__.strip("_"))
def test_a_retried_message_runs_again_in_its_old_place_with_all_its_tries(
    store: Store, clock: FakeClock, end: End
) -> None:
    lane(store)
    sent = end(store, clock)
    clock.advance(MINUTE)
    send(store, "second", sender="b")
    do(store, retry, sent)
    row = message(store, sent)
    assert (row["status"], row["retry_count"], row["crash_count"]) == ("pending", 0, 0)
    assert row["deadline"] is None
    assert lane_row(store)["pending"] == 2
    assert [event["message_id"] for event in events(store, "message_retried")] == [sent]
    assert in_order(store) == ["first", "second"]


def test_a_retried_message_that_dies_again_tells_its_person_again(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = _dead(store, clock)
    do(store, retry, sent)
    for _ in range(4):
        failed(store, take(store).token, retry_after=0)
        assert len(responses(store)) == 1
    failed(store, take(store).token)
    assert status(store, sent) == "dead"
    assert len(responses(store)) == len(events(store, "message_dead")) == 2


def test_a_message_that_died_in_back_off_can_be_claimed_right_after_its_retry(
    store: Store,
) -> None:
    lane(store)
    sent = send(store)
    failed(store, take(store).token, retry_after=MINUTE)
    do(store, cancel, sent)
    do(store, retry, sent)
    done(store, take(store).token)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__.strip("_"))
def test_a_dropped_message_is_gone_and_its_record_stays(
    store: Store, clock: FakeClock, end: End
) -> None:
    lane(store)
    sent = end(store, clock)
    attempts = rows(store, ATTEMPTS)
    told = events(store)
    do(store, drop, sent)
    refused(store, UnknownMessage, retry, sent)
    assert rows(store, ATTEMPTS) == attempts
    assert events(store)[: len(told)] == told
    (event,) = events(store, "message_dropped")
    assert event["message_id"] == sent
    assert try_claim(store) is None


@pytest.mark.parametrize("verb", [retry, drop])
def test_an_archived_message_is_no_longer_to_be_had(
    store: Store, verb: Callable[[Transaction, str], None]
) -> None:
    lane(store)
    sent = send(store)
    do(store, cancel, sent)
    to_archive(store, sent)
    refused(store, UnknownMessage, verb, sent)


def test_nothing_is_retried_into_an_archived_lane(store: Store, clock: FakeClock) -> None:
    lane(store)
    sent = _dead(store, clock)
    do(store, archive_lane, AGENT)
    refused(store, LaneClosed, retry, sent)


def test_nothing_is_let_go_into_an_archived_lane(store: Store) -> None:
    lane(store)
    sent = send(store, hold_reason="wait")
    do(store, archive_lane, AGENT)
    refused(store, LaneClosed, resume, sent)
