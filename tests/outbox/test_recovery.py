"""Look-ups of parts whose outcome is unknown, and receipts that come by themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bullpen.cli.response import explain_response
from bullpen.core.clock import HOUR, MINUTE, SECOND
from bullpen.core.errors import BadNumber, StaleToken
from bullpen.core.inspect.queue import queue_overview
from bullpen.core.inspect.responses import get_response
from bullpen.core.maintenance.recovery import end_stale_deliveries
from bullpen.core.outbox.delivery import (
    Delivery,
    ack,
    begin_part,
    end_part,
    mark_unknown,
    note_sending,
    reschedule,
    reschedule_chat,
)
from bullpen.core.outbox.hold import begin_hold
from bullpen.core.outbox.manage import ack_response, drop_response, retry_response
from bullpen.core.outbox.parts import PartReceipt, SendingPart
from bullpen.core.outbox.recovery import (
    cannot_tell,
    found,
    lease_unknown,
    look_again,
    not_sent,
    prove,
    tell_overdue,
)
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
    status,
)
from tests.stores import FakeClock

FIRST = SendingPart(0, upto=3000)
SECOND_PART = SendingPart(1, upto=4200, last=True)


def look_ups(store: Store, worker: str = "client-1", limit: int = 10) -> list[Delivery]:
    """Lease the look-ups that are due on Slack."""
    with store.write() as tx:
        return lease_unknown(tx, "slack", worker, limit)


def look_up_one(store: Store, worker: str = "client-1") -> tuple[Delivery, str]:
    """Lease the one look-up that is due; gives it and its token."""
    (delivery,) = look_ups(store, worker)
    assert delivery.claim_token is not None
    return delivery, delivery.claim_token


def unknown(store: Store, part: SendingPart = FIRST) -> int:
    """A response whose first part was sent without an answer."""
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, part)
    do(store, mark_unknown, token, "read timed out")
    return response


def proved(store: Store, response: int, part: int = 0, receipt: str = "ts-1") -> bool:
    """The platform tells that this part arrived."""
    with store.write() as tx:
        return prove(tx, "slack", response, part, receipt)


def overdue(store: Store) -> int:
    """Tell people what is overdue."""
    with store.write() as tx:
        return tell_overdue(tx, 100)


def test_an_unknown_outcome_is_looked_up_at_once_and_nobody_is_told(store: Store) -> None:
    response = unknown(store)
    delivery, _ = look_up_one(store)
    assert (delivery.id, delivery.part) == (response, FIRST)
    assert status(store, response) == "unknown"
    assert ends(store) == ["response_unconfirmed"]
    assert lease(store) == []


def test_a_client_killed_while_it_sent_a_part_leaves_what_a_look_up_needs(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    began = clock.now()
    do(store, begin_part, token, SendingPart(0, file=0))
    do(store, note_sending, token, "F0123")
    clock.advance(MINUTE)
    assert lease(store, "client-2") == []
    delivery, _ = look_up_one(store, "client-2")
    assert delivery.id == response
    assert delivery.part == SendingPart(0, file=0, ref="F0123")
    assert delivery.sending_since == began


def test_a_part_that_is_found_counts_and_the_rest_is_sent_without_a_label(store: Store) -> None:
    unknown(store)
    _, token = look_up_one(store)
    do(store, found, token, "ts-1")
    delivery, token = lease_one(store)
    assert not delivery.possible_duplicate
    assert (delivery.parts_sent, delivery.upto, delivery.delivery_attempts) == (1, 3000, 1)
    assert delivery.receipts == (PartReceipt("ts-1", upto=3000),)
    do(store, begin_part, token, SECOND_PART)
    do(store, end_part, token, PartReceipt("ts-2", upto=4200))
    do(store, ack, token)
    assert ends(store) == ["response_unconfirmed", "response_settled", "response_delivered"]


@pytest.mark.parametrize("told_at_begin", [True, False])
def test_a_last_part_that_is_found_ends_the_delivery(store: Store, told_at_begin: bool) -> None:
    response = unknown(store, SendingPart(0, upto=10, last=told_at_begin))
    _, token = look_up_one(store)
    do(store, found, token, "ts-1", last=not told_at_begin)
    assert status(store, response) == "acked"
    assert ends(store) == ["response_unconfirmed", "response_delivered"]


def test_a_part_that_was_not_sent_is_sent_again_without_a_label(store: Store) -> None:
    unknown(store)
    _, token = look_up_one(store)
    do(store, not_sent, token)
    delivery, _ = lease_one(store)
    assert not delivery.possible_duplicate
    assert (delivery.parts_sent, delivery.upto, delivery.delivery_attempts) == (0, 0, 2)


def test_a_part_that_never_arrives_is_not_sent_for_ever(store: Store) -> None:
    response = unknown(store)
    for _ in range(store.settings.delivery_attempts - 1):
        do(store, not_sent, look_up_one(store)[1])
        _, token = lease_one(store)
        do(store, begin_part, token, FIRST)
        do(store, mark_unknown, token, "read timed out")
    do(store, not_sent, look_up_one(store)[1])
    assert status(store, response) == "dead"


def test_what_the_platform_cannot_tell_is_told_to_people_and_resent_with_a_label(
    store: Store, clock: FakeClock
) -> None:
    response = unknown(store)
    do(store, cannot_tell, look_up_one(store)[1], "bots cannot read the history")
    assert status(store, response) == "unknown"
    assert row_of(store, response)["last_error"] == "bots cannot read the history"
    assert ends(store) == ["response_unconfirmed", "response_unknown"]
    clock.advance(HOUR)
    assert look_ups(store) == []
    assert overdue(store) == 0
    do(store, retry_response, response)
    delivery, _ = lease_one(store)
    assert delivery.possible_duplicate


def test_a_response_that_is_looked_up_needs_nobody_yet(store: Store, clock: FakeClock) -> None:
    response = unknown(store)

    def shown() -> tuple[int, str]:
        with store.read() as tx:
            record = get_response(tx, str(response))
            return queue_overview(tx).unknown, explain_response(record, None, tx.now)

    count, text = shown()
    assert (count, "the slack client checks whether it arrived" in text) == (0, True)
    clock.advance(11 * MINUTE)
    overdue(store)
    assert shown() == (1, "Sent, but the channel did not confirm the delivery: read timed out")


def test_look_ups_are_repeated_and_people_are_told_once_after_ten_minutes(
    store: Store, clock: FakeClock
) -> None:
    response = unknown(store)
    for number in range(10):
        delivery, token = look_up_one(store)
        assert delivery.recoveries == (number or None)
        do(store, look_again, token, MINUTE)
        assert ends(store) == ["response_unconfirmed"]
        assert look_ups(store) == []
        clock.advance(MINUTE)
    do(store, look_again, look_up_one(store)[1], MINUTE)
    assert ends(store) == ["response_unconfirmed", "response_unknown"]
    assert overdue(store) == 0
    # An outage of the platform may be longer: the look-ups go on, less often.
    clock.advance(10 * MINUTE - 1)
    assert look_ups(store) == []
    clock.advance(1)
    do(store, found, look_up_one(store)[1], "ts-1", last=True)
    assert status(store, response) == "acked"
    assert ends(store) == ["response_unconfirmed", "response_unknown", "response_delivered"]


def test_look_ups_end_when_the_response_expires(store: Store, clock: FakeClock) -> None:
    unknown(store)
    again = True
    while again:
        _, token = look_up_one(store)
        with store.write() as tx:
            again = look_again(tx, token, MINUTE)
        clock.advance(10 * MINUTE)
    clock.advance(24 * HOUR)
    assert look_ups(store) == []
    assert ends(store) == ["response_unconfirmed", "response_unknown"]


def test_a_client_that_comes_back_after_an_hour_still_settles_it(
    store: Store, clock: FakeClock
) -> None:
    response = unknown(store)
    clock.advance(HOUR)
    assert overdue(store) == 1
    assert overdue(store) == 0
    do(store, found, look_up_one(store)[1], "ts-1", last=True)
    assert status(store, response) == "acked"


def test_of_two_clients_one_looks_a_response_up(store: Store, clock: FakeClock) -> None:
    unknown(store)
    _, first = look_up_one(store, "client-1")
    assert look_ups(store, "client-2") == []
    clock.advance(store.settings.delivery_lease_seconds * SECOND)
    _, second = look_up_one(store, "client-2")
    with nothing_changes(store, StaleToken):
        do(store, found, first, "ts-1")
    do(store, found, second, "ts-1", last=True)


def test_a_look_up_of_another_channel_is_left_to_its_client(store: Store) -> None:
    unknown(store)
    with store.write() as tx:
        assert lease_unknown(tx, "slack-sage", "client", 10) == []


def test_nothing_is_looked_up_while_there_is_a_hold(store: Store) -> None:
    unknown(store)
    do(store, begin_hold, "restored")
    assert look_ups(store) == []


VERBS: dict[str, Callable[[Transaction, str], object]] = {
    "found": lambda tx, token: found(tx, token, "ts-1"),
    "not_sent": not_sent,
    "cannot_tell": lambda tx, token: cannot_tell(tx, token, "no history"),
    "look_again": lambda tx, token: look_again(tx, token, MINUTE),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("act", [ack_response, drop_response, retry_response])
def test_a_person_who_decides_first_ends_the_look_up(
    store: Store, verb: str, act: Callable[[Transaction, int], None]
) -> None:
    response = unknown(store)
    _, token = look_up_one(store)
    do(store, act, response)
    with nothing_changes(store, StaleToken):
        do(store, VERBS[verb], token)


@pytest.mark.parametrize("verb", VERBS)
def test_the_token_of_a_delivery_is_not_that_of_a_look_up(store: Store, verb: str) -> None:
    answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, FIRST)
    with nothing_changes(store, StaleToken):
        do(store, VERBS[verb], token)


def test_an_echo_while_the_part_is_sent_counts_once_and_keeps_the_senders_lease(
    store: Store,
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, FIRST)
    assert proved(store, response)
    assert not proved(store, response)
    do(store, end_part, token, PartReceipt("ts-1", upto=3000))
    assert row_of(store, response)["parts_sent"] == 1
    do(store, begin_part, token, SECOND_PART)
    do(store, end_part, token, PartReceipt("ts-2", upto=4200))
    assert not proved(store, response, 1, "ts-2")
    do(store, ack, token)
    row = row_of(store, response)
    assert (row["status"], row["parts_sent"]) == ("acked", 2)
    assert not proved(store, response, 1, "ts-2")


def test_an_echo_of_the_last_part_leaves_the_ack_to_the_sender(store: Store) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, SendingPart(0, upto=9, last=True))
    assert proved(store, response)
    assert status(store, response) == "pending"
    do(store, end_part, token, PartReceipt("ts-1", upto=9))
    do(store, ack, token)
    assert ends(store) == ["response_delivered"]


def test_maintenance_acks_what_was_sent_whole_when_it_expires(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, SendingPart(0, upto=9, last=True))
    do(store, end_part, token, PartReceipt("ts-1", upto=9))
    clock.advance(25 * HOUR)
    end_stale_deliveries(store)
    assert status(store, response) == "acked"


def test_an_echo_of_the_last_part_spares_the_look_up_of_a_killed_client(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token, SendingPart(0, upto=9, last=True))
    assert proved(store, response)
    clock.advance(25 * HOUR)
    assert lease(store, "client-2") == []
    assert status(store, response) == "acked"
    assert ends(store) == ["response_delivered"]


@pytest.mark.parametrize("last", [True, False])
def test_a_proof_settles_an_unknown_response(store: Store, last: bool) -> None:
    response = unknown(store, SendingPart(0, upto=9, last=last))
    _, token = look_up_one(store)
    assert proved(store, response)
    assert not proved(store, response)
    assert status(store, response) == ("acked" if last else "pending")
    with nothing_changes(store, StaleToken):
        do(store, found, token, "ts-1")


def test_a_proof_after_not_sent_keeps_the_part_from_being_sent_again(store: Store) -> None:
    response = unknown(store)
    do(store, not_sent, look_up_one(store)[1])
    assert proved(store, response)
    delivery, _ = lease_one(store)
    assert (delivery.parts_sent, delivery.upto) == (1, 3000)


def test_a_proof_after_a_retry_by_a_person_counts_as_well(store: Store) -> None:
    response = unknown(store)
    do(store, retry_response, response)
    assert proved(store, response)
    delivery, _ = lease_one(store)
    assert (delivery.parts_sent, delivery.upto) == (1, 3000)


def test_a_proof_for_a_dead_response_is_kept_for_a_retry(store: Store) -> None:
    response = unknown(store)
    do(store, drop_response, response)
    assert proved(store, response)
    assert status(store, response) == "dead"
    do(store, retry_response, response)
    assert lease_one(store)[0].upto == 3000


@pytest.mark.parametrize("part", [-1, 1, 7])
def test_a_proof_for_a_part_that_was_not_begun_changes_nothing(store: Store, part: int) -> None:
    response = unknown(store)
    assert not proved(store, response, part)
    assert not proved(store, response + 1)
    with store.write() as tx:
        assert not prove(tx, "telegram", response, 0, "1")
    assert row_of(store, response)["parts_sent"] == 0


def test_only_the_next_part_can_begin(store: Store) -> None:
    answer(store)
    _, token = lease_one(store)
    with nothing_changes(store, BadNumber):
        do(store, begin_part, token, SECOND_PART)


def test_receipts_tell_where_the_text_and_the_files_continue(store: Store) -> None:
    answer(store)
    _, token = lease_one(store)
    for number, part in enumerate((FIRST, SendingPart(1, upto=4200), SendingPart(2, file=1))):
        do(store, begin_part, token, part)
        do(store, end_part, token, part.receipt(f"ts-{number}"))
    do(store, reschedule, token, "slow down", retry_after=0, counted=False)
    delivery, _ = lease_one(store)
    assert (delivery.upto, list(delivery.files_sent)) == (4200, [1])
    assert [each.id for each in delivery.receipts] == ["ts-0", "ts-1", "ts-2"]


def test_the_deliveries_of_one_chat_wait_together_and_no_attempt_counts(
    store: Store, clock: FakeClock
) -> None:
    made = [answer(store, f"slack_{number}") for number in range(3)]
    tokens = [each.claim_token or "" for each in lease(store)]
    do(store, ack, tokens[1])
    do(store, reschedule_chat, tokens, "rate limit", retry_after=30 * SECOND)
    clock.advance(30 * SECOND - 1)
    assert lease(store) == []
    clock.advance(1)
    again = lease(store)
    assert [each.id for each in again] == [made[0], made[2]]
    assert {each.delivery_attempts for each in again} == {1}


def test_a_proof_of_an_earlier_attempt_does_not_count_for_a_part_that_is_sent_again(
    store: Store,
) -> None:
    response = unknown(store)
    do(store, retry_response, response)
    _, token = lease_one(store)
    shorter = SendingPart(0, upto=10)
    do(store, begin_part, token, shorter)
    assert not proved(store, response)  # its text ended at 3000, and this one's ends at 10
    do(store, mark_unknown, token, "read timed out")
    assert not proved(store, response)
    assert row_of(store, response)["parts_sent"] == 0
    do(store, found, look_up_one(store)[1], "ts-2")
    assert lease_one(store)[0].upto == 10
