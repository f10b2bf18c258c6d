"""Every move is told by one event, in the order in which things happened."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from bullpen.core.clock import MINUTE
from bullpen.core.message import ErrorKind
from bullpen.core.queue.fail import release
from bullpen.core.queue.manage import cancel, drop, hold, resume, retry
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, done, events, failed, lane, send, take, try_claim
from tests.stores import START, FakeClock

Life = Callable[[Store, FakeClock], None]


def _answered(store: Store, clock: FakeClock) -> None:
    done(store, take(store).token)


def _failed_and_answered(store: Store, clock: FakeClock) -> None:
    failed(store, take(store).token, retry_after=MINUTE)
    clock.advance(MINUTE)
    done(store, take(store).token)


def _died_and_retried(store: Store, clock: FakeClock) -> None:
    found = take(store)
    failed(store, found.token, ErrorKind.PERMANENT)
    do(store, retry, found.primary.message_id)


def _held_and_let_go(store: Store, clock: FakeClock) -> None:
    (sent,) = (event["message_id"] for event in events(store))
    do(store, hold, sent, "wait")
    do(store, resume, sent)


def _released(store: Store, clock: FakeClock) -> None:
    do(store, release, take(store).token)


def _cancelled_in_its_run_and_dropped(store: Store, clock: FakeClock) -> None:
    sent = take(store).primary.message_id
    do(store, cancel, sent)
    do(store, drop, sent)


def _expired(store: Store, clock: FakeClock) -> None:
    clock.advance(10 * MINUTE)
    assert try_claim(store) is None


LIVES: list[tuple[Life, list[str]]] = [
    (_answered, ["message_received", "chain_step_done", "response_ready"]),
    (
        _failed_and_answered,
        [
            *("message_received", "message_failed", "message_received"),
            *("chain_step_done", "response_ready"),
        ],
    ),
    (
        _died_and_retried,
        ["message_received", "message_dead", "response_ready", "message_retried"],
    ),
    (_held_and_let_go, ["message_held", "message_let_go"]),
    (_released, ["message_received", "message_released"]),
    (
        _cancelled_in_its_run_and_dropped,
        ["message_received", "message_cancelled", "message_dropped"],
    ),
    (_expired, ["message_expired"]),
]


@pytest.mark.parametrize(("live", "told"), LIVES, ids=lambda part: getattr(part, "__name__", ""))
def test_a_messages_life_can_be_read_from_its_events(
    store: Store, clock: FakeClock, live: Life, told: list[str]
) -> None:
    lane(store)
    sent = send(store, deadline=START + 10 * MINUTE)
    live(store, clock)
    found = events(store)
    assert [event["type"] for event in found] == ["message_enqueued", *told]
    assert {event["message_id"] for event in found} == {sent}
    assert {event["conversation_id"] for event in found} == {sent}
    assert {event["agent"] for event in found} == {"coder"}
    times = [event["created_at"] for event in found]
    assert times == sorted(times)
    assert times[-1] == clock.now()


def test_the_rest_of_an_event_is_one_json_object(store: Store) -> None:
    lane(store)
    send(store)
    failed(store, take(store).token, error='it said "no" \n\t é 🎉', retry_after=7)
    for event in events(store):
        assert event["data"] is None or isinstance(json.loads(event["data"]), dict)
    (event,) = events(store, "message_failed")
    data = json.loads(event["data"])
    assert data == {"kind": "retryable", "error": 'it said "no" \n\t é 🎉', "wait": 7}


def test_an_event_never_carries_more_than_a_part_of_a_long_error(store: Store) -> None:
    lane(store)
    send(store)
    failed(store, take(store).token, error="e r r o r " * 3_000)
    (event,) = events(store, "message_failed")
    assert len(event["data"]) < 1_000
