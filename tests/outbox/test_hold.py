"""The hold: nothing leaves a restored store, and nothing comes due in it, before it is let go."""

from __future__ import annotations

import psycopg
import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.heartbeats.run import send_due_heartbeats as hearts_tick
from bullpen.core.inspect.responses import list_deliverable
from bullpen.core.maintenance.recovery import end_stale_deliveries
from bullpen.core.models import RESPONSES
from bullpen.core.outbox import leases
from bullpen.core.outbox.hold import begin_hold, find_hold
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.timing import MissedPolicy
from bullpen.core.store.base import Store
from bullpen.core.store.sqlite import SqliteStore
from bullpen.ops.backup.release_hold import find_held, release_hold
from tests.conformance.verbs import hire, statuses
from tests.heartbeats.hearts import awake, see
from tests.outbox.outgoing import answer, answer_many, do, lease, rows, status
from tests.schedules.plans import outcomes, plan
from tests.stores import FakeClock

WHY = "restored from a backup"


@pytest.fixture
def held(store: Store) -> Store:
    """A store that holds everything back."""
    do(store, begin_hold, WHY)
    return store


def _to_send(store: Store, channel: str) -> list[int]:
    with store.read() as tx:
        return [each.id for each in list_deliverable(tx, channel, 0, 100)]


def test_nothing_is_leased_before_it_is_let_go_and_everything_once_afterwards(
    store: Store,
) -> None:
    before = answer(store, "slack_1")
    do(store, begin_hold, WHY)
    later = answer(store, "slack_2")
    assert lease(store) == []
    assert _to_send(store, "slack") == []
    found = release_hold(store)
    assert found is not None
    assert (found.count, found.old) == (2, 0)
    assert [each.id for each in lease(store)] == [before, later]
    assert lease(store) == []


def test_what_people_read_where_it_lies_is_not_held(held: Store) -> None:
    mine = answer(held, "cli_1", channel="cli")
    assert _to_send(held, "cli") == [mine]
    with held.read() as tx:
        found = find_held(tx)
    assert found is not None
    assert found.responses == ()


def test_nothing_runs_out_while_it_is_held(held: Store, clock: FakeClock) -> None:
    mine, theirs = answer(held, "cli_1", channel="cli"), answer(held, "slack_1")
    clock.advance(3 * DAY)
    end_stale_deliveries(held)
    assert status(held, mine) == status(held, theirs) == "pending"
    release_hold(held)
    end_stale_deliveries(held)
    assert status(held, mine) == "pending"
    assert [each.id for each in lease(held)] == [theirs]


def test_what_is_too_old_is_set_aside_and_a_person_may_send_it_all_the_same(
    held: Store, clock: FakeClock
) -> None:
    old = [answer(held, f"slack_{number}") for number in range(3)]
    clock.advance(2 * HOUR)
    new = answer(held, "slack_new")
    with held.read() as tx:
        before = tx.now - HOUR
        found = find_held(tx, before)
    assert found is not None
    assert (found.count, found.old) == (4, 3)
    release_hold(held, before)
    assert [status(held, each) for each in old] == ["dead"] * 3
    assert {row["last_error"] for row in rows(held, RESPONSES) if row["id"] in old} == {
        "too old when the restored home was released"
    }
    assert [each.id for each in lease(held)] == [new]


def test_many_are_let_go_in_small_transactions(held: Store, clock: FakeClock) -> None:
    answer_many(held, [f"slack_{number}" for number in range(1100)])
    clock.advance(2 * DAY)
    release_hold(held, before=clock.now() - DAY)
    assert {row["status"] for row in rows(held, RESPONSES)} == {"dead"}


def test_to_let_go_what_is_not_held_changes_nothing(store: Store, clock: FakeClock) -> None:
    made = answer(store)
    clock.advance(HOUR)
    assert release_hold(store, before=clock.now()) is None
    assert status(store, made) == "pending"


@pytest.mark.parametrize("missed", MissedPolicy)
def test_no_schedule_makes_up_for_what_passed_while_it_was_held(
    store: Store, clock: FakeClock, missed: MissedPolicy
) -> None:
    hire(store)
    made = plan(store, missed=missed)
    do(store, begin_hold, WHY)
    clock.advance(10 * HOUR + 30 * MINUTE)
    assert fire_due_schedules(store) > 0
    assert statuses(store) == {}
    release_hold(store)
    fire_due_schedules(store)
    assert statuses(store) == {}
    assert outcomes(store, made) == ["missed"]
    clock.advance(30 * MINUTE)
    while fire_due_schedules(store) == 0:
        pass
    assert statuses(store) == {"pending": 1}


def test_no_heart_beats_while_it_is_held_and_each_begins_anew_afterwards(
    store: Store, clock: FakeClock
) -> None:
    agent = awake(store)
    do(store, begin_hold, WHY)
    clock.advance(5 * HOUR)
    assert hearts_tick(store) > 0
    release_hold(store)
    hearts_tick(store)
    assert statuses(store) == {}
    assert see(store, agent).due_at == clock.now() + HOUR
    clock.advance(HOUR)
    hearts_tick(store)
    assert statuses(store) == {"pending": 1}


def test_a_second_hold_has_the_newer_reason(held: Store) -> None:
    do(held, begin_hold, "another")
    with held.read() as tx:
        hold = find_hold(tx)
    assert hold is not None
    assert hold.reason == "another"


def test_a_lease_asks_once_for_the_hold_and_finds_its_responses_by_their_index(
    store: Store,
) -> None:
    sql = leases.SELECT_DUE.text[store.dialect]
    values = {"channel": "slack", "now": 1, "limit": 10}
    if isinstance(store, SqliteStore):
        connection = store.connect()
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        connection.close()
        assert not [step for step in steps if step.startswith("SCAN ") or "TEMP" in step], steps
        assert "USING INDEX ix_responses_pending" in steps[0]
        assert steps[1] == "SCALAR SUBQUERY 1"
        return
    url = store.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url) as server:
        server.execute("SET enable_seqscan = off")
        steps = [row[0] for row in server.execute(f"EXPLAIN {sql}".encode(), values)]
    text = "\n".join(map(str, steps))
    assert "InitPlan" in text
    assert "ix_responses_pending" in text
    assert "Seq Scan" not in text
