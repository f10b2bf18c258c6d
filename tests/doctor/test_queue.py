"""The queue: what is stuck, dead, held or paused, and what waits for nobody."""

from __future__ import annotations

from sqlalchemy import update

from bullpen.core.background import register_worker
from bullpen.core.clock import DAY, HOUR, MINUTE, SystemClock
from bullpen.core.maintenance.jobs import JOBS
from bullpen.core.message import Answer, ErrorKind
from bullpen.core.models import SYSTEM_AGENTS
from bullpen.core.outbox.hold import begin_hold
from bullpen.core.outbox.write import send_to_person
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.manage import hold
from tests.cli.command import Bullpen
from tests.conformance.verbs import do, failed, hire, lane_row, send, take
from tests.doctor.examined import fine, fixed, found, store_of
from tests.stores import FakeClock


def now() -> int:
    """The machine's time."""
    return SystemClock().now()


def test_claims_of_workers_that_are_gone_are_taken_back(on_both: Bullpen) -> None:
    with store_of(on_both, FakeClock(now() - HOUR)) as store:
        hire(store)
        send(store)
        take(store)
    assert "@coder" in found(on_both, "queue.stale_leases", "warning")
    fixed(on_both, "queue.stale_leases")
    with store_of(on_both) as store:
        assert lane_row(store)["claim_token"] is None
        assert lane_row(store)["pending"] == 1


def test_a_claim_that_is_alive_is_left_alone(on_both: Bullpen) -> None:
    with store_of(on_both) as store:
        hire(store)
        send(store)
        take(store)
    fine(on_both, "queue.stale_leases")


def test_messages_that_died_today_are_a_warning_and_old_ones_are_to_know(
    on_both: Bullpen,
) -> None:
    fine(on_both, "queue.dead_letters")
    with store_of(on_both, FakeClock(now() - 2 * DAY)) as store:
        hire(store)
        send(store)
        failed(store, take(store).token, ErrorKind.PERMANENT)
    assert "1 message is dead, 0 of them" in found(on_both, "queue.dead_letters", "info")
    with store_of(on_both) as store:
        send(store)
        failed(store, take(store).token, ErrorKind.PERMANENT)
    assert "2 messages are dead, 1 of them" in found(on_both, "queue.dead_letters", "warning")


def test_messages_that_wait_for_a_person(on_both: Bullpen) -> None:
    fine(on_both, "queue.held")
    with store_of(on_both) as store:
        hire(store)
        do(store, hold, send(store), "it costs too much")
    assert "1 message needs approval" in found(on_both, "queue.held", "info")


def test_an_agent_that_is_paused(on_both: Bullpen) -> None:
    with store_of(on_both) as store:
        hire(store)
        fine(on_both, "queue.lane_paused")
        do(store, pause_lane, "coder", "not logged in")
        assert "not logged in" in found(on_both, "queue.lane_paused", "info")
        send(store)
    assert "1 pending message" in found(on_both, "queue.lane_paused", "warning")


def test_messages_that_nobody_is_there_to_answer(on_both: Bullpen) -> None:
    with store_of(on_both) as store:
        hire(store)
        fine(on_both, "queue.unattended")
        send(store)
        assert "@coder" in found(on_both, "queue.unattended", "warning")
        do(store, register_worker, "processor")
    fine(on_both, "queue.unattended")


def test_messages_for_workers_outside_wait_for_no_processor(on_both: Bullpen) -> None:
    with store_of(on_both) as store:
        hire(store, provider="http")
        send(store)
    fine(on_both, "queue.unattended")


def test_messages_for_an_http_agent_whose_worker_does_not_run(on_both: Bullpen) -> None:
    with store_of(on_both, FakeClock(now() - 9 * MINUTE)) as store:
        hire(store, provider="http")
        fine(on_both, "queue.no_worker")
        send(store)
    text = found(on_both, "queue.no_worker", "warning")
    assert "1 message is pending for @coder" in text
    assert "9 minutes" in text
    with store_of(on_both) as store:
        send(store)
        take(store, "coder")
    fine(on_both, "queue.no_worker")


def test_responses_and_addresses_on_a_channel_that_no_client_serves(on_both: Bullpen) -> None:
    fine(on_both, "channel.no_client")
    with store_of(on_both) as store:
        do(store, send_to_person, Answer(message="hi"), channel="telegram", sender="ann")
    text = found(on_both, "channel.no_client", "warning")
    assert "telegram (used by 1 pending response)" in text


def test_a_loop_that_fails_or_is_not_run(on_both: Bullpen) -> None:
    fine(on_both, "queue.upkeep")
    row = dict.fromkeys(SYSTEM_AGENTS.c.keys(), 0) | {
        "name": JOBS[0].name,
        "holder": None,
        "running_since": None,
        "last_run_at": now(),
        "last_result": None,
        "last_error": "no such thing",
        "next_run_at": now() + MINUTE,
        "failures": 7,
    }
    with store_of(on_both) as store:
        with store.engine.begin() as connection:
            connection.execute(SYSTEM_AGENTS.insert().values(row))
        assert "7 times in a row: no such thing" in found(on_both, "queue.upkeep", "warning")
        late = {"failures": 0, "next_run_at": now() - HOUR}
        with store.engine.begin() as connection:
            connection.execute(update(SYSTEM_AGENTS).values(late))
        fine(on_both, "queue.upkeep")  # for no scheduler runs, which is said elsewhere
        do(store, register_worker, "scheduler")
    assert "overdue for 60 minutes" in found(on_both, "queue.upkeep", "warning")


def test_a_store_in_which_nothing_goes_out(on_both: Bullpen) -> None:
    fine(on_both, "queue.on_hold")
    with store_of(on_both) as store:
        do(store, begin_hold, "restored from a backup")
    assert "restored from a backup" in found(on_both, "queue.on_hold", "warning")
