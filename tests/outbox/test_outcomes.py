"""The event about the end of a delivery says how much it took."""

from __future__ import annotations

import json

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.models import EVENTS
from bullpen.core.outbox.delivery import (
    ack,
    begin_part,
    end_part,
    mark_undeliverable,
    mark_unknown,
    reschedule,
)
from bullpen.core.outbox.manage import ack_response, retry_response
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.outbox.recovery import cannot_tell, lease_unknown, tell_overdue
from bullpen.core.store.base import Store
from tests.outbox.outgoing import answer, do, lease_one, rows
from tests.stores import FakeClock


def _last(store: Store) -> tuple[str, dict[str, object]]:
    """The newest event's type, and its data without what has always been there."""
    row = rows(store, EVENTS)[-1]
    data = json.loads(row["data"])
    assert data.pop("channel") == "slack"
    assert data.pop("sender_id") == "U1"
    data.pop("error")
    return row["type"], data


def test_a_delivery_says_its_tries_its_time_and_its_parts(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    for _ in range(2):
        _, token = lease_one(store)
        do(store, reschedule, token, "503", retry_after=MINUTE)
        clock.advance(MINUTE)
    _, token = lease_one(store)
    for part in ("ts-1", "ts-2"):
        do(store, begin_part, token)
        do(store, end_part, token, PartReceipt(part))
    clock.advance(5)
    do(store, ack, token)
    found = {"response": response, "tries": 3, "waited": 2 * MINUTE + 5, "parts": 2}
    assert _last(store) == ("response_delivered", found)


def test_a_failed_delivery_and_its_retry_say_what_was_tried(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    clock.advance(HOUR)
    do(store, mark_undeliverable, token, "no such channel")
    found = {"response": response, "tries": 1, "waited": HOUR, "parts": 0}
    assert _last(store) == ("response_dead", found)
    clock.advance(HOUR)
    do(store, retry_response, response)
    assert _last(store) == ("response_retried", found | {"waited": 2 * HOUR})
    _, token = lease_one(store)
    do(store, ack, token)
    assert _last(store) == ("response_delivered", found | {"waited": 2 * HOUR})


def test_an_unknown_delivery_says_the_same_whoever_gives_up_first(
    store: Store, clock: FakeClock
) -> None:
    for give_up in ("at once", "looked up", "in time"):
        response = answer(store, f"slack_{give_up}")
        _, token = lease_one(store)
        do(store, begin_part, token)
        do(store, mark_unknown, token, "no answer", look_up=give_up != "at once")
        found = {"response": response, "tries": 1, "waited": 0, "parts": 0}
        if give_up == "at once":
            assert _last(store) == ("response_unknown", found)
            continue
        assert _last(store) == ("response_unconfirmed", found)
        clock.advance(10 * MINUTE)
        if give_up == "looked up":
            with store.write() as tx:
                (looked,) = lease_unknown(tx, "slack", "client-1")
            do(store, cannot_tell, looked.claim_token, "not found")
        else:
            do(store, tell_overdue, 10)
        assert _last(store) == ("response_unknown", found | {"waited": 10 * MINUTE})


def test_a_clock_that_jumped_back_gives_no_negative_time(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    clock.set_by(-HOUR)
    do(store, ack_response, response)
    assert _last(store) == (
        "response_delivered",
        {"response": response, "tries": 0, "waited": 0, "parts": 0},
    )
