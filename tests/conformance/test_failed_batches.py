"""What one sender does in a batch does not kill another's message: each is tried alone."""

from __future__ import annotations

import pytest

from bullpen.core.answers.leases import expire_leases
from bullpen.core.clock import MINUTE
from bullpen.core.message import ROOM, ErrorKind
from bullpen.core.queue.fail import release
from bullpen.core.queue.lanes import LanePolicy, resume_lane
from bullpen.core.queue.manage import retry
from bullpen.core.store.base import Store
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    lane,
    message,
    responses,
    send,
    status,
    statuses,
    take,
    texts_of,
)
from tests.stores import FakeClock, Stores

OWN_FAULT = [ErrorKind.RETRYABLE, ErrorKind.PERMANENT, ErrorKind.NEEDS_PERSON, ErrorKind.CRASH]


def batch(store: Store, most: int = 1) -> list[str]:
    """A batch of a person's message and a teammate's room post; its lane allows so many tries."""
    lane(store, policy=LanePolicy(max_attempts=most))
    mallory = send(store, "mallory", channel="slack", sender="mallory", sender_id="U1")
    ann = send(store, "ann", channel=ROOM, from_agent="ann", sender="ann")
    return [mallory, ann]


def end(store: Store, clock: FakeClock, token: str, kind: ErrorKind) -> None:
    """End a claim with a failure of this kind, and let its back-off pass."""
    if kind is ErrorKind.CRASH:
        clock.advance(MINUTE)
        do(store, expire_leases)
    else:
        failed(store, token, kind)
    clock.advance(5 * MINUTE)


@pytest.mark.parametrize("cause", OWN_FAULT)
def test_after_a_failed_batch_each_of_its_messages_is_tried_alone(
    store: Store, clock: FakeClock, cause: ErrorKind
) -> None:
    sent = batch(store)
    found = take(store)
    assert texts_of(found) == ["mallory", "ann"]
    end(store, clock, found.token, cause)
    assert statuses(store) == {"pending": 2}
    assert len(events(store, "message_failed")) == 2
    assert responses(store) == []
    send(store, "later", channel="slack", sender="mallory", sender_id="U1")
    first = take(store)
    assert texts_of(first) == ["mallory"]
    failed(store, first.token, ErrorKind.PERMANENT)
    second = take(store)
    assert texts_of(second) == ["ann"]
    done(store, second.token)
    assert texts_of(take(store)) == ["later"]
    assert [status(store, each) for each in sent] == ["dead", "completed"]
    assert len([row for row in responses(store) if "could not answer" in row["message"]]) == 1


def test_a_crashing_batch_kills_nobody_before_each_crashed_alone(
    stores: Stores, kind: str, clock: FakeClock
) -> None:
    with stores.opened(stores.settings(kind, max_crashes=1), clock) as store:
        sent = batch(store)
        end(store, clock, take(store).token, ErrorKind.CRASH)
        assert [message(store, each)["crash_count"] for each in sent] == [0, 0]
        end(store, clock, take(store).token, ErrorKind.CRASH)
        assert statuses(store) == {"dead": 1, "pending": 1}


def test_a_try_of_a_batch_counts_for_each_unless_it_would_be_the_last(
    store: Store, clock: FakeClock
) -> None:
    sent = batch(store, most=2)
    end(store, clock, take(store).token, ErrorKind.RETRYABLE)
    assert [message(store, each)["retry_count"] for each in sent] == [1, 1]
    end(store, clock, take(store).token, ErrorKind.RETRYABLE)
    assert [status(store, each) for each in sent] == ["dead", "pending"]


@pytest.mark.parametrize("cause", [ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP])
def test_what_is_the_lanes_matter_keeps_the_batch_together(
    store: Store, clock: FakeClock, cause: ErrorKind
) -> None:
    batch(store)
    failed(store, take(store).token, cause)
    do(store, resume_lane, AGENT)
    assert texts_of(take(store)) == ["mallory", "ann"]


def test_a_rate_limit_and_a_release_keep_the_batch_together(store: Store, clock: FakeClock) -> None:
    batch(store)
    failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=1000)
    clock.advance(1000)
    found = take(store)
    assert texts_of(found) == ["mallory", "ann"]
    do(store, release, found.token)
    assert texts_of(take(store)) == ["mallory", "ann"]


def test_a_message_that_failed_once_is_claimed_alone_also_after_a_persons_retry(
    store: Store, clock: FakeClock
) -> None:
    lane(store)
    sent = send(store, "bad", sender="ada")
    failed(store, take(store).token, ErrorKind.PERMANENT)
    assert status(store, sent) == "dead"
    do(store, retry, sent)
    send(store, "good", sender="ada")
    assert texts_of(take(store)) == ["bad"]
