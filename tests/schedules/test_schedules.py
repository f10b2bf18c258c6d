"""Schedules as people handle them: made, changed, paused, resumed, removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE
from bullpen.core.company import add_agent, remove_agent, remove_team
from bullpen.core.errors import (
    BadSchedule,
    BadText,
    NameTaken,
    UnknownAgent,
    UnknownSchedule,
    UnknownTeam,
)
from bullpen.core.maintenance.retention import run_retention
from bullpen.core.models import MESSAGES
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.roster.agents import get_agent
from bullpen.core.schedules.fire import run_schedule_now
from bullpen.core.schedules.history import next_due_times
from bullpen.core.schedules.manage import (
    add_schedule,
    change_schedule,
    pause_schedule,
    remove_schedule,
    resume_schedule,
)
from bullpen.core.schedules.model import OverlapPolicy, ScheduleState, list_schedules
from bullpen.core.schedules.timing import MissedPolicy, cron_timing, every_timing, once_timing
from bullpen.core.store.base import Store
from tests.answers.talk import team, told
from tests.conformance.verbs import (
    AGENT,
    do,
    events,
    hire,
    refused,
    rows,
    try_claim,
)
from tests.schedules.plans import new, plan, runs, see, wait
from tests.stores import START, FakeClock


def test_what_comes_due_while_it_is_paused_was_not_missed(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, missed=MissedPolicy.ALL)
    do(store, pause_schedule, made.id, "on holiday")
    assert (see(store, made.id).reason, see(store, made.id).due_at) == ("on holiday", None)
    wait(store, clock, DAY + HOUR // 2)
    do(store, resume_schedule, made.id)
    wait(store, clock, 0)
    assert runs(store, made) == []
    wait(store, clock, HOUR // 2)
    assert [row["due_at"] for row in runs(store, made)] == [START + 25 * HOUR]
    names = [row["type"] for row in events(store) if "schedule" in row["type"]]
    assert names == ["schedule_added", "schedule_paused", "schedule_resumed", "schedule_fired"]


def test_one_that_is_made_paused_waits_for_a_person(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, paused=True)
    wait(store, clock, DAY)
    assert runs(store, made) == []
    assert see(store, made.id).state is ScheduleState.PAUSED


def test_a_due_time_that_comes_again_after_the_clock_was_set_back_has_been(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    made = plan(store, overlap=OverlapPolicy.QUEUE)
    wait(store, clock)
    wait(store, clock)
    do(store, pause_schedule, made.id)
    clock.advance(-90 * MINUTE)
    do(store, resume_schedule, made.id)
    assert see(store, made.id).due_at == START + HOUR
    for _ in range(3):
        wait(store, clock)
    assert [row["due_at"] for row in runs(store, made)] == [START + n * HOUR for n in (1, 2, 3)]
    assert see(store, made.id).state is ScheduleState.ACTIVE


def test_now_is_a_run_of_its_own_whatever_its_state(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, label="build", jitter=HOUR)
    do(store, run_schedule_now, "build")
    do(store, pause_schedule, made.id)
    do(store, run_schedule_now, made.id)
    assert [row["due_at"] for row in runs(store, made)] == [None, None]
    assert len(rows(store, MESSAGES)) == 2
    assert try_claim(store) is not None


def test_a_schedule_can_be_called_by_its_label(store: Store) -> None:
    hire(store)
    made = plan(store, label="Morning round")
    assert see(store, "Morning round") == made
    refused(store, NameTaken, add_schedule, new(store, label="Morning round"))
    refused(store, NameTaken, add_schedule, new(store, label=made.id))
    do(store, remove_schedule, "Morning round")
    refused(store, UnknownSchedule, remove_schedule, "Morning round")
    plan(store, label="Morning round")


def test_what_is_not_named_stays_and_a_new_time_counts_from_now(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    made = plan(store, label="build", jitter=MINUTE)
    clock.advance(HOUR // 2)
    with store.write() as tx:
        changed = change_schedule(tx, "build", message="look at the tests")
    assert replace(changed, message=made.message, updated_at=made.updated_at) == made
    with store.write() as tx:
        timing = cron_timing("0 9 * * *", "Asia/Kathmandu", tx.now)
        changed = change_schedule(tx, "build", timing=timing)
    assert changed.due_at == timing.after(clock.now())
    assert (changed.message, changed.id) == ("look at the tests", made.id)


def test_a_change_while_a_scheduler_looks_is_what_counts(store: Store, clock: FakeClock) -> None:
    from bullpen.core.schedules.fire import fire_schedule
    from bullpen.core.schedules.timing import plan_fire as decide

    hire(store)
    made = plan(store)
    clock.advance(HOUR)
    assert made.due_at is not None
    decided = decide(made.timing, made.due_at, clock.now(), made.missed)
    do(store, change_schedule, made.id, message="something else")
    do(store, fire_schedule, made, decided)
    assert rows(store, MESSAGES) == []
    wait(store, clock, 0)
    assert [row["message"] for row in rows(store, MESSAGES)] == ["something else"]


def test_an_agent_that_is_removed_pauses_its_schedules_and_the_owner_is_told(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    hire(store, "other")
    mine, others = plan(store, label="build"), plan(store, agent="other")
    do(store, remove_agent, AGENT)
    assert see(store, mine.id).state is ScheduleState.PAUSED
    assert see(store, mine.id).reason == "coder was removed"
    assert see(store, others.id).state is ScheduleState.ACTIVE
    ((_, notice),) = told(store)
    assert "build is paused: coder was removed" in notice
    refused(store, UnknownAgent, resume_schedule, mine.id)
    do(store, change_schedule, mine.id, agent="other")
    do(store, resume_schedule, mine.id)


def test_a_team_that_is_disbanded_pauses_its_schedules(store: Store, clock: FakeClock) -> None:
    team(store, AGENT, "reviewer")
    made = plan(store, team_id="dev")
    do(store, remove_team, "dev")
    assert see(store, made.id).reason == "the team dev was removed"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"message": ""}, BadText),
        ({"message": " \n"}, BadText),
        ({"message": "a\x00b"}, BadText),
        ({"agent": "nobody"}, UnknownAgent),
        ({"agent": None}, BadSchedule),
        ({"agent": AGENT, "team_id": "dev"}, BadSchedule),
        ({"agent": None, "team_id": "dev"}, UnknownTeam),
        ({"jitter": -1}, BadSchedule),
        ({"jitter": DAY + 1}, BadSchedule),
        ({"label": " "}, BadText),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_and_nothing_written(
    store: Store, change: dict[str, Any], error: type[Exception]
) -> None:
    hire(store)
    refused(store, error, add_schedule, replace(new(store), **change))  # type: ignore[arg-type]


def test_the_next_times_are_those_that_come(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store)
    assert next_due_times(made, clock.now()) == [START + n * HOUR for n in range(1, 6)]
    do(store, pause_schedule, made.id)
    clock.advance(10 * HOUR)
    assert next_due_times(see(store, made.id), clock.now(), 1) == [START + 11 * HOUR]


def test_a_schedule_for_an_agent_of_the_same_name_as_one_that_left_stays_paused(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    made = plan(store)
    with store.write() as tx:
        agent = get_agent(tx, AGENT)
        remove_agent(tx, AGENT)
        add_agent(tx, agent)
    wait(store, clock, DAY)
    assert runs(store, made) == []
    with store.read() as tx:
        assert [each.state for each in list_schedules(tx)] == [ScheduleState.PAUSED]
    do(store, pause_lane, AGENT, "x")
    do(store, resume_schedule, made.id)
    assert see(store, made.id).timing == every_timing(HOUR, "UTC", START)


def test_what_was_done_long_ago_is_forgotten_and_nothing_else(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    soon = once_timing(START + HOUR, "UTC", START)
    gone, kept = plan(store, timing=soon), plan(store)
    paused = plan(store, timing=soon, paused=True)
    wait(store, clock)
    assert run_retention(store, "due_times").endswith("0 schedules deleted")
    clock.advance(store.settings.schedule_days * DAY)
    assert run_retention(store, "due_times").endswith("1 schedule deleted")
    with store.read() as tx:
        assert {each.id for each in list_schedules(tx)} == {kept.id, paused.id} != {gone.id}
