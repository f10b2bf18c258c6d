"""Parts, receipts and acks: all of it only by who holds the lease."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.errors import BadText, StaleToken
from bullpen.core.models import EVENTS
from bullpen.core.outbox.delivery import (
    ack,
    begin_part,
    end_part,
    mark_undeliverable,
    mark_unknown,
    reschedule,
)
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.outbox.outgoing import (
    answer,
    do,
    ends,
    lease,
    lease_one,
    nothing_changes,
    row_of,
    rows,
    status,
)
from tests.stores import FakeClock

VERBS: dict[str, Callable[[Transaction, str], object]] = {
    "begin_part": begin_part,
    "end_part": lambda tx, token: end_part(tx, token, PartReceipt("ts-9")),
    "ack": ack,
    "reschedule": lambda tx, token: reschedule(tx, token, "busy"),
    "undeliverable": lambda tx, token: mark_undeliverable(tx, token, "no such chat"),
    "unknown": lambda tx, token: mark_unknown(tx, token, "timed out"),
}


def test_receipts_are_kept_in_the_order_of_the_parts(store: Store) -> None:
    response = answer(store)
    _, token = lease_one(store)
    for number in range(12):
        do(store, begin_part, token)
        do(store, end_part, token, PartReceipt(f'ts-{number} "é"'))
        assert row_of(store, response)["parts_sent"] == number + 1
    kept = json.loads(str(row_of(store, response)["part_receipts"]))
    assert kept == [{"id": f'ts-{number} "é"'} for number in range(12)]


def test_a_part_that_began_is_marked_as_on_its_way_until_it_ended(store: Store) -> None:
    response = answer(store)
    _, token = lease_one(store)
    assert not row_of(store, response)["sending"]
    with store.write() as tx:
        assert begin_part(tx, token).parts_sent == 0
    assert row_of(store, response)["sending"]
    do(store, end_part, token, PartReceipt("ts-1"))
    assert not row_of(store, response)["sending"]
    with store.write() as tx:
        assert begin_part(tx, token).parts_sent == 1


def test_each_part_renews_the_lease(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    lease_of = store.settings.delivery_lease_seconds * SECOND
    for _ in range(5):
        clock.advance(lease_of - 1)
        do(store, begin_part, token)
        assert row_of(store, response)["lease_expires_at"] == clock.now() + lease_of
        clock.advance(lease_of - 1)
        do(store, end_part, token, PartReceipt("ts"))
        assert row_of(store, response)["lease_expires_at"] == clock.now() + lease_of
        assert lease(store, "client-2") == []
    do(store, ack, token)
    assert status(store, response) == "acked"


def test_an_ack_ends_it_with_one_event(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    _, token = lease_one(store)
    clock.advance(7)
    do(store, ack, token)
    row = row_of(store, response)
    assert (row["status"], row["acked_at"]) == ("acked", clock.now())
    assert row["claim_token"] is None
    assert row["lease_expires_at"] is None
    (told,) = (each for each in rows(store, EVENTS) if each["type"] == "response_delivered")
    assert (told["message_id"], told["agent"]) == ("slack_1", "coder")
    assert json.loads(told["data"])["channel"] == "slack"


def test_a_late_ack_counts_while_nobody_else_took_the_response(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    clock.advance(10 * MINUTE)
    do(store, ack, token)
    assert status(store, response) == "acked"


@pytest.mark.parametrize("verb", VERBS)
def test_a_client_whose_lease_was_taken_over_changes_nothing(
    store: Store, clock: FakeClock, verb: str
) -> None:
    answer(store)
    _, stale = lease_one(store)
    clock.advance(MINUTE)
    lease_one(store, "client-2")
    with nothing_changes(store, StaleToken):
        do(store, VERBS[verb], stale)


@pytest.mark.parametrize("verb", VERBS)
def test_after_the_end_the_token_is_void(store: Store, verb: str) -> None:
    answer(store)
    _, token = lease_one(store)
    do(store, ack, token)
    with nothing_changes(store, StaleToken):
        do(store, VERBS[verb], token)


@pytest.mark.parametrize(
    "token", ["", ".", "1", "1.", "0.abc", "x.y", "-1.abc", "1.abcdefgh", "9" * 30 + ".a", "²."]
)
def test_what_is_not_a_token_leases_nothing(store: Store, token: str) -> None:
    answer(store)
    lease_one(store)
    with nothing_changes(store, StaleToken):
        do(store, ack, token)


def test_a_receipt_that_cannot_be_stored_is_refused_and_the_lease_is_kept(store: Store) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    with nothing_changes(store, BadText):
        do(store, end_part, token, PartReceipt("a\0b"))
    do(store, end_part, token, PartReceipt("ab"))
    assert row_of(store, response)["part_receipts"] == '[{"id": "ab"}]'


def test_an_unresolvable_recipient_is_dead_at_once_with_the_reason_and_never_acked(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, mark_undeliverable, token, "channel_not_found")
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == ("dead", "channel_not_found")
    assert row["acked_at"] is None
    assert ends(store) == ["response_dead"]
    (told,) = (each for each in rows(store, EVENTS) if each["type"] == "response_dead")
    assert json.loads(told["data"])["error"] == "channel_not_found"
    clock.advance(MINUTE)
    assert lease(store) == []


def test_a_timeout_after_the_send_is_unknown_with_the_reason_and_never_sent_by_itself(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, mark_unknown, token, "read timed out")
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == ("unknown", "read timed out")
    assert not row["sending"]
    assert ends(store) == ["response_unconfirmed"]
    clock.advance(60 * MINUTE)
    assert lease(store) == []
