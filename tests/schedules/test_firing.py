"""What comes of a schedule when it is due: its run, its answer, its history."""

from __future__ import annotations

import logging

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import IllegalMove
from bullpen.core.inspect.history import list_people
from bullpen.core.message import Answer, Outcome, ReplyTo, Usage
from bullpen.core.models import MESSAGES, SCHEDULES
from bullpen.core.outbox.addresses import parse_address
from bullpen.core.outbox.delivery import ack, begin_part, end_part
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.queue.lanes import LanePolicy, Overflow, archive_lane
from bullpen.core.roster.teams import change_team
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.history import ScheduleRun, list_schedule_runs
from bullpen.core.schedules.manage import change_schedule, resume_schedule
from bullpen.core.schedules.model import OverlapPolicy, Schedule, ScheduleState
from bullpen.core.schedules.timing import MissedPolicy, once_timing
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.answers.talk import answer, team, told
from tests.conformance.verbs import (
    AGENT,
    do,
    done,
    events,
    failed,
    hire,
    refused,
    responses,
    rows,
    send,
    take,
    texts_of,
    try_claim,
)
from tests.schedules.plans import outcomes, plan, runs, see, wait
from tests.stores import START, FakeClock, Stores


def history(store: Store, schedule: Schedule) -> list[ScheduleRun]:
    with store.read() as tx:
        return list_schedule_runs(tx, schedule.id, None, 100)


def test_the_scheduler_logs_each_schedule_that_fires(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    hire(store)
    made = plan(store)
    with caplog.at_level(logging.INFO):
        wait(store, clock, HOUR - 1)
        assert caplog.text == ""
        wait(store, clock, 1)
    assert f"schedule {made.id} fired for {AGENT}" in caplog.text


def test_it_says_its_text_when_it_is_due_and_not_before(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store)
    wait(store, clock, HOUR - 1)
    assert try_claim(store) is None
    wait(store, clock, 1)
    found = take(store)
    assert texts_of(found) == ["look at the build"]
    assert found.primary.message_id.startswith("schedule_")
    assert [row["due_at"] for row in runs(store, made)] == [START + HOUR]
    assert see(store, made.id).due_at == START + 2 * HOUR
    (told_,) = events(store, "schedule_fired")
    assert (told_["agent"], told_["message_id"]) == (AGENT, found.primary.message_id)


def test_the_answer_goes_to_its_place_and_the_history_has_the_receipt(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    made = plan(store, place=parse_address("telegram:-100123/7", store.settings))
    wait(store, clock)
    usage = Usage(provider="echo", input_tokens=7, output_tokens=5, cost=0.25)
    done(store, take(store).token, Outcome(answers=(Answer(message="green"),), usage=usage))
    (row,) = responses(store)
    assert (row["channel"], row["sender_id"]) == ("telegram", "-100123")
    assert ReplyTo.parse(row["reply_to"]) == ReplyTo("-100123", "7")
    (run,) = history(store, made)
    assert (run.state, run.cost, run.tokens) == ("completed", 0.25, 12)
    assert [(each.status, each.receipts) for each in run.deliveries] == [("pending", ())]
    with store.write() as tx:
        (sent,) = lease_responses(tx, "telegram", "client", 1)
    for verb, given in ((begin_part, ()), (end_part, (PartReceipt("message 99"),)), (ack, ())):
        do(store, verb, sent.claim_token, *given)
    (run,) = history(store, made)
    assert [(each.status, each.receipts) for each in run.deliveries] == [("acked", ("message 99",))]
    assert run.deliveries[0].acked_at == clock.now()


def test_the_history_outlives_the_archive(store: Store, clock: FakeClock) -> None:
    from bullpen.core.maintenance.retention import run_retention

    hire(store)
    made = plan(store, timing=once_timing(START + HOUR, "UTC", START))
    wait(store, clock)
    done(store, take(store).token)
    clock.advance(3 * DAY)
    run_retention(store, "archive")
    assert rows(store, MESSAGES) == []
    assert [run.state for run in history(store, made)] == ["completed"]


def test_a_run_is_not_mixed_with_what_people_wrote_from_the_same_place(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    place = parse_address("telegram:42", store.settings)
    plan(store, place=place)
    send(store, "a question", channel="telegram", sender_id="42", reply_to=ReplyTo("42"))
    wait(store, clock)
    assert texts_of(take(store)) == ["a question"]


def test_the_scheduler_is_nobody_whom_one_could_write_to(store: Store, clock: FakeClock) -> None:
    hire(store)
    plan(store, place=parse_address("telegram:42", store.settings))
    plan(store)
    wait(store, clock)
    with store.read() as tx:
        assert list_people(tx) == []


@pytest.mark.parametrize("last", ["waits", "runs", "is held", "went on"])
def test_it_is_skipped_while_the_last_run_is_not_through(
    store: Store, clock: FakeClock, last: str
) -> None:
    team(store, AGENT, "reviewer")
    made = plan(store)
    wait(store, clock)
    match last:
        case "runs":
            take(store)
        case "is held":
            from bullpen.core.queue.manage import hold

            do(store, hold, runs(store, made)[0]["message_id"], "too expensive")
        case "went on":
            answer(store, AGENT, "[@reviewer: look at it]")
    wait(store, clock)
    assert outcomes(store, made) == ["fired", "skipped"]
    assert "is not finished" in runs(store, made)[1]["reason"]
    assert len(events(store, "schedule_skipped")) == 1


def test_it_goes_on_when_the_last_run_is_through_or_dead(store: Store, clock: FakeClock) -> None:
    from bullpen.core.message import ErrorKind

    hire(store)
    made = plan(store)
    wait(store, clock)
    done(store, take(store).token)
    wait(store, clock)
    failed(store, take(store).token, ErrorKind.PERMANENT)
    wait(store, clock)
    assert outcomes(store, made) == ["fired"] * 3
    assert [run.state for run in history(store, made)] == ["pending", "dead", "completed"]


def test_it_queues_up_if_that_is_wanted(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, overlap=OverlapPolicy.QUEUE)
    for _ in range(3):
        wait(store, clock)
    assert outcomes(store, made) == ["fired"] * 3


def test_a_full_or_closed_lane_is_told_and_stops_nothing(store: Store, clock: FakeClock) -> None:
    hire(store, policy=LanePolicy(max_depth=0, overflow=Overflow.REJECT))
    hire(store, "other")
    made = plan(store)
    closed = plan(store, agent="other")
    do(store, archive_lane, "other")
    wait(store, clock)
    assert outcomes(store, made) == outcomes(store, closed) == ["skipped"]
    assert "already has 0 pending messages, the limit is 0" in runs(store, made)[0]["reason"]
    assert "archived" in runs(store, closed)[0]["reason"]


def test_jitter_comes_later_by_chance_and_never_sooner(
    stores: Stores, settings: Settings, clock: FakeClock
) -> None:
    with stores.opened(settings, clock) as store:
        hire(store)
        store.chance = lambda: 0.5
        plan(store, jitter=10 * MINUTE)
        wait(store, clock)
        assert try_claim(store) is None
        clock.advance(5 * MINUTE)
        assert try_claim(store) is not None


def test_a_team_is_asked_by_its_leader_of_then(store: Store, clock: FakeClock) -> None:
    team(store, AGENT, "reviewer")
    made = plan(store, team_id="dev", overlap=OverlapPolicy.QUEUE)
    wait(store, clock)
    do(store, change_team, "dev", leader="reviewer")
    wait(store, clock)
    asked = [(row["agent"], row["team_id"]) for row in rows(store, MESSAGES)]
    assert asked == [(AGENT, "dev"), ("reviewer", "dev")]
    assert outcomes(store, made) == ["fired"] * 2
    assert len(events(store, "team_chain_start")) == 2


@pytest.mark.parametrize(("late", "outcome"), [(MINUTE, "fired"), (MINUTE + 1, "missed")])
def test_what_is_a_minute_late_was_not_missed(
    store: Store, clock: FakeClock, late: int, outcome: str
) -> None:
    hire(store)
    made = plan(store, missed=MissedPolicy.SKIP)
    wait(store, clock, HOUR + late)
    assert outcomes(store, made) == [outcome]


def test_once_is_done_afterwards_and_cannot_be_resumed(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, timing=once_timing(START + HOUR, "UTC", START))
    wait(store, clock)
    assert see(store, made.id).state is ScheduleState.DONE
    assert see(store, made.id).due_at is None
    refused(store, IllegalMove, resume_schedule, made.id)
    later = once_timing(clock.now() + HOUR, "UTC", clock.now())
    do(store, change_schedule, made.id, timing=later)
    done(store, take(store).token)
    wait(store, clock)
    assert outcomes(store, made) == ["fired", "fired"]


@pytest.mark.parametrize(
    ("missed", "expected"),
    [(MissedPolicy.SKIP, ["missed"]), (MissedPolicy.ONE, ["fired"]), (MissedPolicy.ALL, ["fired"])],
)
def test_once_that_was_missed_follows_its_policy(
    store: Store, clock: FakeClock, missed: MissedPolicy, expected: list[str]
) -> None:
    hire(store)
    made = plan(store, timing=once_timing(START + HOUR, "UTC", START), missed=missed)
    wait(store, clock, DAY)
    assert outcomes(store, made) == expected
    assert see(store, made.id).state is ScheduleState.DONE


def test_one_that_cannot_be_decided_is_paused_and_holds_up_no_other(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    bad, good = plan(store), plan(store, overlap=OverlapPolicy.QUEUE)
    with store.engine.begin() as connection:
        changed = SCHEDULES.update().where(SCHEDULES.c.id == bad.id)
        connection.execute(changed.values(kind="cron", cron="0 9 * * *", zone="Gone/Away"))
    wait(store, clock)
    assert see(store, bad.id).state is ScheduleState.PAUSED
    assert "Gone/Away" in (see(store, bad.id).reason or "")
    assert outcomes(store, good) == ["fired"]
    assert len(told(store)) == 1


def test_the_scheduler_sleeps_until_the_next_is_due(store: Store, clock: FakeClock) -> None:
    hire(store)
    assert fire_due_schedules(store) == 5.0
    plan(store)
    assert fire_due_schedules(store) == 5.0
    clock.advance(HOUR - 2 * SECOND)
    assert fire_due_schedules(store) == 2.0
    clock.advance(2 * SECOND)
    assert fire_due_schedules(store) == 0.0
