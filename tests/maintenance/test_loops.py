"""What each loop of the rota does, also while no processor claims and no client asks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import insert

from bullpen.core.channels.chats import ChatSeen, touch_chat
from bullpen.core.channels.senders import Tier, add_sender, see_sender, set_tier
from bullpen.core.clock import DAY, MINUTE, SECOND
from bullpen.core.maintenance.recovery import (
    end_stale_deliveries,
    recover_expired_claims,
    run_all_timers,
)
from bullpen.core.maintenance.retention import run_retention
from bullpen.core.message import PULL_CHANNELS, ErrorKind
from bullpen.core.models import CHATS, RECEIPTS, RESPONSES, SENDERS
from bullpen.core.outbox.delivery import begin_part, mark_unknown
from bullpen.core.store.base import Store
from tests.conformance.verbs import do, failed, lane, lane_row, message, rows, send, status, take
from tests.outbox.outgoing import answer, ends, lease_one, row_of
from tests.stores import FakeClock, Stores


def test_leases_takes_back_what_a_dead_processor_had_claimed(
    store: Store, clock: FakeClock
) -> None:
    for name in ("coder", "writer"):
        lane(store, name)
        send(store, message_id=f"api_{name}", agent=name)
        take(store, name)
    for _ in range(12):
        assert recover_expired_claims(store) == "0 expired claims released"
        clock.advance(5 * SECOND)
    assert recover_expired_claims(store) == "2 expired claims released"
    row = message(store, "api_coder")
    assert (row["status"], row["crash_count"], row["retry_count"]) == ("pending", 1, 0)
    assert recover_expired_claims(store) == "0 expired claims released"


def test_deadlines_expires_what_nobody_claimed_in_time(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, message_id="api_1", deadline=clock.now() + MINUTE)
    clock.advance(MINUTE - 1)
    run_all_timers(store)
    assert status(store, "api_1") == "pending"
    clock.advance(1)
    run_all_timers(store)
    assert status(store, "api_1") == "expired"
    assert lane_row(store)["pending"] == 0


def test_deadlines_makes_ready_what_was_delayed(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store, message_id="api_1", delay=MINUTE)
    assert lane_row(store)["head_key"] is None
    clock.advance(MINUTE)
    run_all_timers(store)
    assert lane_row(store)["head_key"] is not None
    assert take(store).primary.message_id == "api_1"


def test_deadlines_lets_a_lane_go_on_after_its_rate_limit(store: Store, clock: FakeClock) -> None:
    lane(store)
    send(store)
    failed(store, take(store).token, ErrorKind.RATE_LIMIT, retry_after=MINUTE)
    run_all_timers(store)
    assert lane_row(store)["head_key"] is None
    clock.advance(MINUTE)
    run_all_timers(store)
    assert lane_row(store)["not_before"] is None
    assert lane_row(store)["head_key"] is not None


@pytest.mark.parametrize("channel", sorted(PULL_CHANNELS))
def test_where_no_client_is_what_was_not_read_in_a_day_counts_as_read(
    store: Store, clock: FakeClock, channel: str
) -> None:
    response = answer(store, "x_1", channel)
    clock.advance(DAY - 1)
    assert end_stale_deliveries(store) == "0 responses ended"
    clock.advance(1)
    assert end_stale_deliveries(store) == "1 response ended"
    row = row_of(store, response)
    assert (row["status"], row["acked_at"]) == ("acked", clock.now())
    assert ends(store) == ["response_delivered"]


def test_where_a_client_should_be_what_was_not_delivered_in_a_day_is_dead_without_one(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store, "slack_1", "slack")
    clock.advance(DAY - 1)
    assert end_stale_deliveries(store) == "0 responses ended"
    clock.advance(1)
    assert end_stale_deliveries(store) == "1 response ended"
    row = row_of(store, response)
    assert row["status"] == "dead"
    assert "expired" in str(row["last_error"])
    assert ends(store) == ["response_dead"]


def test_what_was_abandoned_while_it_was_sent_is_unknown_also_without_a_client(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    clock.advance(MINUTE - 1)
    assert end_stale_deliveries(store) == "0 responses ended"
    clock.advance(1)
    assert end_stale_deliveries(store) == "1 response ended"
    assert row_of(store, response)["status"] == "unknown"
    assert ends(store) == ["response_unconfirmed"]


def test_people_are_told_of_an_unknown_response_that_nobody_looked_up_in_ten_minutes(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    _, token = lease_one(store)
    do(store, begin_part, token)
    do(store, mark_unknown, token, "read timed out")
    clock.advance(10 * MINUTE - 1)
    end_stale_deliveries(store)
    assert ends(store) == ["response_unconfirmed"]
    clock.advance(1)
    for _ in range(2):
        end_stale_deliveries(store)
        assert ends(store) == ["response_unconfirmed", "response_unknown"]
    assert row_of(store, response)["last_error"] == "read timed out"


def test_what_is_being_delivered_when_its_day_ends_is_left_to_its_client(
    store: Store, clock: FakeClock
) -> None:
    response = answer(store)
    clock.advance(DAY - SECOND)
    lease_one(store)
    clock.advance(2 * SECOND)
    assert end_stale_deliveries(store) == "0 responses ended"
    assert row_of(store, response)["status"] == "pending"


def test_deliveries_looks_at_every_channel_and_all_of_its_responses(
    store: Store, clock: FakeClock
) -> None:
    last = 0
    for channel in ("api", "discord", "slack", "telegram", "web"):
        last = answer(store, f"{channel}_1", channel)
    (row,) = (row for row in rows(store, RESPONSES) if row["channel"] == "slack")
    with store.engine.begin() as connection:
        connection.execute(
            insert(RESPONSES), [{**row, "id": last + number} for number in range(1, 601)]
        )
    clock.advance(DAY)
    assert end_stale_deliveries(store) == "605 responses ended"
    assert {row["status"] for row in rows(store, RESPONSES)} == {"acked", "dead"}


@pytest.mark.parametrize(("days", "kept"), [(1, 7), (7, 7), (8, 8), (30, 30)])
def test_receipts_are_kept_for_their_days_and_at_least_for_seven(
    stores: Stores, kind: str, clock: FakeClock, days: int, kept: int
) -> None:
    settings = replace(stores.settings(kind), receipt_days=days)
    with stores.opened(settings, clock) as store:
        lane(store)
        send(store, channel="slack", event_ids=("Ev1",))
        clock.advance(kept * DAY - 1)
        assert run_retention(store, "receipts").startswith("0 receipts, ")
        clock.advance(1)
        send(store, channel="slack", event_ids=("Ev2",))
        assert run_retention(store, "receipts").startswith("1 receipt, ")
        assert [row["event_id"] for row in rows(store, RECEIPTS)] == ["Ev2"]


def test_receipts_go_in_batches_until_none_is_left(store: Store, clock: FakeClock) -> None:
    row = {"channel": "slack", "message_id": "slack_1", "created_at": clock.now()}
    with store.engine.begin() as connection:
        connection.execute(
            insert(RECEIPTS), [{**row, "event_id": f"Ev{number}"} for number in range(1001)]
        )
    clock.advance(8 * DAY)
    assert run_retention(store, "receipts") == "1001 receipts, 0 unpaired senders deleted"


def test_unpaired_senders_are_pruned_after_thirty_days_and_paired_ones_never(
    store: Store, clock: FakeClock
) -> None:
    with store.write() as tx:
        for number in range(1200):
            add_sender(tx, "slack", f"U{number}", "Ann")
        for tier in Tier:
            set_tier(tx, "slack", f"of {tier}", tier, "owner")
        touch_chat(tx, "slack", ChatSeen(chat="C1", direct=False))
    clock.advance(30 * DAY - 1)
    assert run_retention(store, "receipts") == "0 receipts, 0 unpaired senders deleted"
    with store.write() as tx:
        see_sender(tx, "slack", "U7", "Ann")
    clock.advance(1)
    assert run_retention(store, "receipts") == "0 receipts, 1199 unpaired senders deleted"
    clock.advance(4000 * DAY)
    run_retention(store, "receipts")
    assert {row["sender_id"] for row in rows(store, SENDERS)} == {f"of {tier}" for tier in Tier}
    assert len(rows(store, CHATS)) == 1
