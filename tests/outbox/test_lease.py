"""Channel clients take responses: the oldest first, each only once, the abandoned again."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from bullpen.core.clock import MINUTE, SECOND
from bullpen.core.message import Answer
from bullpen.core.models import RESPONSES
from bullpen.core.outbox.delivery import ack, begin_part, end_part, reschedule
from bullpen.core.outbox.leases import MAX_LAPSES, expire_leases, lease_responses
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.outbox.write import add_response
from bullpen.core.states import ResponseState
from bullpen.core.store.base import Store
from tests.outbox.outgoing import (
    answer,
    answer_many,
    asked,
    do,
    ends,
    lease,
    lease_one,
    put_into,
    row_of,
    rows,
    status,
)
from tests.stores import FakeClock


def test_the_oldest_is_leased_first(store: Store, clock: FakeClock) -> None:
    made = []
    for number in range(3):
        made.append(answer(store, f"slack_{number}"))
        clock.advance(SECOND)
    assert [each.id for each in lease(store)] == made


def test_of_the_same_moment_the_lower_id_is_leased_first(store: Store) -> None:
    made = [answer(store, f"slack_{number}") for number in range(5)]
    assert [each.id for each in lease(store)] == made


def test_a_lease_takes_no_more_than_its_limit_and_the_next_goes_on_there(store: Store) -> None:
    made = [answer(store, f"slack_{number}") for number in range(5)]
    taken = [each.id for _ in range(3) for each in lease(store, limit=2)]
    assert taken == made
    assert lease(store) == []


def test_only_the_channel_asked_for_is_leased(store: Store) -> None:
    mine = answer(store, "slack_1")
    answer(store, "telegram_1", channel="telegram")
    assert [each.id for each in lease(store)] == [mine]


def test_what_is_not_due_is_not_leased(store: Store, clock: FakeClock) -> None:
    answer(store)
    lease_one(store)
    clock.advance(store.settings.delivery_lease_seconds * SECOND - 1)
    assert lease(store) == []
    clock.advance(1)
    assert len(lease(store)) == 1


@pytest.mark.parametrize("state", [state for state in ResponseState if state != "pending"])
def test_what_has_ended_is_not_leased(store: Store, clock: FakeClock, state: ResponseState) -> None:
    put_into(store, state)
    clock.advance(MINUTE)
    assert lease(store) == []


def test_a_delivery_carries_all_that_its_client_needs(store: Store) -> None:
    answer(store, "slack_1")
    delivery, token = lease_one(store, "client-7")
    assert delivery.message_id == "slack_1"
    assert delivery.message == "answer to slack_1"
    assert (delivery.sender, delivery.sender_id) == ("Ann", "U1")
    assert delivery.original_message == "what?"
    assert delivery.reply_to == "C1\x1ft1\x1fm1"
    assert (delivery.parts_sent, delivery.delivery_attempts) == (0, 1)
    assert not delivery.possible_duplicate
    row = row_of(store, delivery.id)
    assert (row["claim_token"], row["claimed_by"]) == (token, "client-7")
    assert row["lease_expires_at"] == store.clock.now() + 60 * SECOND


def test_a_lease_of_its_own_length_ends_then(store: Store, clock: FakeClock) -> None:
    answer(store)
    with store.write() as tx:
        lease_responses(tx, "slack", "client-1", lease=5 * SECOND)
    clock.advance(5 * SECOND - 1)
    assert lease(store) == []
    clock.advance(1)
    assert len(lease(store)) == 1


def test_an_abandoned_lease_is_taken_over_under_a_new_token(store: Store, clock: FakeClock) -> None:
    answer(store)
    _, first = lease_one(store)
    clock.advance(MINUTE)
    again, second = lease_one(store, "client-2")
    assert second != first
    assert row_of(store, again.id)["claimed_by"] == "client-2"


def test_a_lease_that_lapsed_before_a_part_was_begun_costs_no_attempt(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    for _ in range(2 * store.settings.delivery_attempts):
        taken, _ = lease_one(store)
        assert taken.delivery_attempts == 1
        clock.advance(MINUTE)
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, reschedule, token, "503", retry_after=0)
    assert lease_one(store)[0].delivery_attempts == 2
    assert row_of(store, response)["lapses"] == 0


def test_a_client_that_stops_costs_no_attempt_of_what_it_had_not_begun(store: Store) -> None:
    answer_many(store, [f"slack_{number}" for number in range(3)])
    for _ in range(2 * store.settings.delivery_attempts):
        assert [each.delivery_attempts for each in lease(store)] == [1, 1, 1]
        do(store, expire_leases, "slack", ["client-1"])


def test_a_response_that_no_client_ever_begins_is_dead_in_the_end(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    for lapses in range(MAX_LAPSES):
        assert row_of(store, response)["lapses"] in (None, max(0, lapses - 1))
        lease_one(store)
        clock.advance(MINUTE)
    assert lease(store) == []
    row = row_of(store, response)
    assert (row["status"], row["last_error"]) == (
        "dead",
        "no channel client began to send it in 50 leases",
    )
    assert ends(store) == ["response_dead"]


def test_the_leases_in_a_row_are_counted_anew_after_a_part_and_after_a_client_put_it_back(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)

    def lapse() -> str:
        for _ in range(3):
            _, token = lease_one(store)
            clock.advance(MINUTE)
        _, token = lease_one(store)
        assert row_of(store, response)["lapses"] == 3
        return token

    token = lapse()
    do(store, begin_part, token)
    do(store, end_part, token, PartReceipt("ts-1"))
    clock.advance(MINUTE)
    token = lease_one(store)[1]
    assert row_of(store, response)["lapses"] == 1
    do(store, reschedule, token, "waits for its chat", retry_after=0, counted=False)
    do(store, reschedule, lapse(), "waits for its chat", retry_after=0, counted=False)
    lease_one(store)
    assert row_of(store, response)["lapses"] == 0


def test_a_response_past_a_lower_limit_of_attempts_is_dead(store: Store, clock: FakeClock) -> None:
    response = answer(store)
    for _ in range(2):
        do(store, reschedule, lease_one(store)[1], "503", retry_after=0)
    store.settings = replace(store.settings, delivery_attempts=2)
    assert lease(store) == []
    assert row_of(store, response)["last_error"] == "no attempt is left"


def test_a_response_abandoned_between_parts_is_leased_again_and_only_the_rest_is_sent(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    for receipt in ("ts-1", "ts-2"):
        do(store, begin_part, token)
        do(store, end_part, token, PartReceipt(receipt))
    clock.advance(MINUTE)
    again, second = lease_one(store, "client-2")
    assert again.parts_sent == 2
    do(store, begin_part, second)
    do(store, end_part, second, PartReceipt("ts-3"))
    do(store, ack, second)
    row = row_of(store, response)
    assert (row["status"], row["parts_sent"]) == ("acked", 3)
    assert row["part_receipts"] == '[{"id": "ts-1"}, {"id": "ts-2"}, {"id": "ts-3"}]'
    assert ends(store) == ["response_delivered"]


def test_a_response_abandoned_while_a_part_was_sent_is_unknown_and_never_sent_by_itself(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    clock.advance(MINUTE)
    assert lease(store, "client-2") == []
    assert status(store, response) == "unknown"
    assert ends(store) == ["response_unconfirmed"]
    for _ in range(3):
        clock.advance(60 * MINUTE)
        assert lease(store, "client-2") == []
    assert status(store, response) == "unknown"


def test_what_is_not_worth_delivering_any_more_is_dead_and_not_leased(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    clock.advance(24 * 60 * MINUTE - 1)
    assert row_of(store, response)["expires_at"] == clock.now() + 1
    clock.advance(1)
    assert lease(store) == []
    assert status(store, response) == "dead"
    assert "expired" in str(row_of(store, response)["last_error"])
    assert ends(store) == ["response_dead"]


def test_one_that_is_dead_or_lost_does_not_keep_the_others_from_being_leased(
    store: Store, clock: FakeClock
) -> None:
    answer(store, "slack_old")
    clock.advance(24 * 60 * MINUTE)
    answer(store, "slack_lost")
    (token,) = (each.claim_token for each in lease(store) if each.message_id == "slack_lost")
    assert token is not None
    do(store, begin_part, token)
    clock.advance(MINUTE)
    fresh = answer(store, "slack_new")
    assert [each.id for each in lease(store)] == [fresh]
    assert [row["status"] for row in rows(store, RESPONSES)] == ["dead", "unknown", "pending"]


def test_those_that_need_no_delivery_any_more_take_no_place_in_a_lease(
    store: Store, clock: FakeClock
) -> None:
    answer_many(store, [f"slack_{number}" for number in range(30)])
    clock.advance(24 * 60 * MINUTE)
    made = [answer(store, f"slack_new{number}") for number in range(3)]
    assert [each.id for each in lease(store, limit=2)] == made[:2]
    assert [row["status"] for row in rows(store, RESPONSES)].count("dead") == 30


def test_two_clients_never_lease_the_same_response(store: Store) -> None:
    with store.write() as tx:
        for number in range(60):
            add_response(tx, asked(f"slack_{number}"), Answer(message="hi"))
    taken: dict[str, list[int]] = {f"client-{number}": [] for number in range(4)}
    together = threading.Barrier(len(taken))

    def work(worker: str) -> None:
        together.wait(30)
        while found := lease(store, worker, limit=3):
            taken[worker] += [each.id for each in found]

    threads = [threading.Thread(target=work, args=(worker,)) for worker in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    everyone = [each for mine in taken.values() for each in mine]
    assert sorted(everyone) == [row["id"] for row in rows(store, RESPONSES)]
    owners = {row["id"]: row["claimed_by"] for row in rows(store, RESPONSES)}
    assert all(owners[each] == worker for worker, mine in taken.items() for each in mine)
