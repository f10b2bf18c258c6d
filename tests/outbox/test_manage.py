"""What people do with responses, and the moves that are not allowed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.core.clock import HOUR, MINUTE
from bullpen.core.errors import IllegalMove, StaleToken, UnknownResponse
from bullpen.core.outbox.delivery import ack, begin_part, end_part, mark_unknown
from bullpen.core.outbox.manage import ack_response, drop_response, retry_response
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.states import RESPONSE_STATES, ResponseState
from bullpen.core.store.base import Store
from bullpen.core.store.transaction import Transaction
from tests.outbox.outgoing import (
    END_EVENTS,
    answer,
    do,
    ends,
    lease,
    lease_one,
    nothing_changes,
    put_into,
    row_of,
    status,
)
from tests.stores import FakeClock

Verb = Callable[[Transaction, int], None]

VERBS: dict[ResponseState, Verb] = {
    ResponseState.ACKED: ack_response,
    ResponseState.DEAD: drop_response,
    ResponseState.PENDING: retry_response,
}
MOVES = [(source, target) for source in ResponseState for target in VERBS]
LEGAL = [(source, target) for source, target in MOVES if target in RESPONSE_STATES[source].moves_to]
ILLEGAL = [move for move in MOVES if move not in LEGAL]


@pytest.mark.parametrize(("source", "target"), LEGAL)
def test_a_legal_move_is_made_with_exactly_one_event(
    store: Store, source: ResponseState, target: ResponseState
) -> None:
    response = put_into(store, source)
    before = ends(store)
    do(store, VERBS[target], response)
    assert status(store, response) == target.value
    assert ends(store) == [*before, END_EVENTS[target]]


@pytest.mark.parametrize(("source", "target"), ILLEGAL)
def test_an_illegal_move_is_refused_and_changes_nothing(
    store: Store, source: ResponseState, target: ResponseState
) -> None:
    response = put_into(store, source)
    with nothing_changes(store, IllegalMove):
        do(store, VERBS[target], response)


@pytest.mark.parametrize("response", [999, 0, -1, 10**30])
@pytest.mark.parametrize("verb", VERBS.values())
def test_a_response_that_does_not_exist_is_said_not_to(
    store: Store, verb: Verb, response: int
) -> None:
    answer(store)
    with nothing_changes(store, UnknownResponse):
        do(store, verb, response)


@pytest.mark.parametrize("channel", ["api", "web", "cli"])
def test_what_was_read_where_it_lies_is_acked(store: Store, clock: FakeClock, channel: str) -> None:
    response = answer(store, f"{channel}_1", channel)
    clock.advance(5)
    do(store, ack_response, response)
    row = row_of(store, response)
    assert (row["status"], row["acked_at"]) == ("acked", clock.now())
    assert ends(store) == ["response_delivered"]


def test_giving_up_keeps_the_reason(store: Store) -> None:
    response = answer(store)
    do(store, drop_response, response, "the person left")
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == ("dead", "the person left")


@pytest.mark.parametrize("verb", [ack_response, drop_response])
def test_a_client_that_is_delivering_loses_its_lease_to_the_person(
    store: Store, verb: Verb
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, verb, response)
    with nothing_changes(store, StaleToken):
        do(store, ack, token)


def test_a_resend_after_an_unknown_outcome_is_labelled_as_a_possible_duplicate(
    store: Store,
) -> None:
    response = put_into(store, ResponseState.UNKNOWN)
    do(store, retry_response, response)
    delivery, token = lease_one(store)
    assert delivery.possible_duplicate
    do(store, ack, token)
    assert ends(store) == ["response_unknown", "response_retried", "response_delivered"]


def test_a_resend_after_death_is_not_labelled(store: Store) -> None:
    response = put_into(store, ResponseState.DEAD)
    do(store, retry_response, response)
    delivery, _ = lease_one(store)
    assert not delivery.possible_duplicate


def test_what_may_have_arrived_is_labelled_also_if_it_was_dropped_in_between(
    store: Store,
) -> None:
    response = put_into(store, ResponseState.UNKNOWN)
    do(store, drop_response, response)
    do(store, retry_response, response)
    delivery, token = lease_one(store)
    assert delivery.possible_duplicate
    do(store, ack, token)
    other = answer(store, "slack_2")
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, drop_response, other)
    do(store, retry_response, other)
    assert lease_one(store)[0].possible_duplicate


def test_the_label_stays_through_later_deaths_and_resends(store: Store) -> None:
    response = put_into(store, ResponseState.UNKNOWN)
    do(store, retry_response, response)
    do(store, drop_response, response)
    do(store, retry_response, response)
    delivery, _ = lease_one(store)
    assert delivery.possible_duplicate


def test_a_resend_begins_its_tries_and_its_day_anew(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    clock.advance(24 * HOUR)
    assert lease(store) == []
    do(store, retry_response, response)
    row = row_of(store, response)
    assert (row["status"], row["delivery_attempts"]) == ("pending", 0)
    assert row["expires_at"] == clock.now() + 24 * HOUR
    delivery, _ = lease_one(store)
    assert delivery.delivery_attempts == 1


def test_a_resend_sends_only_the_parts_whose_receipts_are_missing(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, end_part, token, PartReceipt("ts-1"))
    do(store, begin_part, token)
    do(store, mark_unknown, token, "timed out")
    clock.advance(MINUTE)
    do(store, retry_response, response)
    delivery, token = lease_one(store)
    assert delivery.parts_sent == 1
    do(store, begin_part, token)
    do(store, end_part, token, PartReceipt("ts-2"))
    assert row_of(store, response)["part_receipts"] == '[{"id": "ts-1"}, {"id": "ts-2"}]'


def test_an_unknown_outcome_can_be_settled_by_a_person(store: Store) -> None:
    arrived = put_into(store, ResponseState.UNKNOWN)
    do(store, ack_response, arrived)
    assert status(store, arrived) == "acked"
