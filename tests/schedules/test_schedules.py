"""Schedules as people and agents handle them, and what comes of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.errors import (
    BadPlace,
    BadSchedule,
    BadText,
    IllegalMove,
    NameTaken,
    OutOfReach,
    TooMany,
    UnknownAgent,
    UnknownSchedule,
    UnknownTeam,
)
from bullpen.core.history.search import list_people
from bullpen.core.message import ReplyTo
from bullpen.core.models import MESSAGES, SCHEDULES
from bullpen.core.outbox.deliver import ack, begin_part, end_part
from bullpen.core.outbox.lease import lease_responses
from bullpen.core.outbox.place import NOWHERE, Place, parse_place
from bullpen.core.outcome import Answer, Outcome, Usage
from bullpen.core.queue.lane import Overflow
from bullpen.core.queue.lanes import LanePolicy, archive_lane, pause_lane
from bullpen.core.roster.agent import Scheduling
from bullpen.core.roster.agents import add_agent, change_agent, get_agent, remove_agent
from bullpen.core.roster.teams import change_team, remove_team
from bullpen.core.schedules.author import check_own
from bullpen.core.schedules.find import list_schedules
from bullpen.core.schedules.fire import run_now
from bullpen.core.schedules.here import place_here
from bullpen.core.schedules.history import ScheduleRun, list_runs, next_times
from bullpen.core.schedules.plan import Missed
from bullpen.core.schedules.schedule import Overlap, Schedule, ScheduleState
from bullpen.core.schedules.schedules import (
    add_schedule,
    change_schedule,
    remove_schedule,
    resume_schedule,
)
from bullpen.core.schedules.stop import pause_schedule
from bullpen.core.schedules.tick import tick
from bullpen.core.schedules.timing import cron_timing, every_timing, once_timing
from bullpen.core.schedules.when import duration, lasting, moment
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from tests.answers.talk import answer, team, told, write
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
from tests.schedules.plans import new, outcomes, plan, runs, see, wait
from tests.stores import START, FakeClock, Stores

CODER = "agent:coder"


def history(store: Store, schedule: Schedule) -> list[ScheduleRun]:
    with store.read() as tx:
        return list_runs(tx, schedule.id, None, 100)


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
    made = plan(store, place=parse_place("telegram:-100123/7", store.settings))
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
    for verb, given in ((begin_part, ()), (end_part, ("message 99",)), (ack, ())):
        do(store, verb, sent.claim_token, *given)
    (run,) = history(store, made)
    assert [(each.status, each.receipts) for each in run.deliveries] == [("acked", ("message 99",))]
    assert run.deliveries[0].acked_at == clock.now()


def test_the_history_outlives_the_archive(store: Store, clock: FakeClock) -> None:
    from bullpen.core.maintenance.archive import archive

    hire(store)
    made = plan(store, timing=once_timing(START + HOUR, "UTC", START))
    wait(store, clock)
    done(store, take(store).token)
    clock.advance(3 * DAY)
    archive(store)
    assert rows(store, MESSAGES) == []
    assert [run.state for run in history(store, made)] == ["completed"]


def test_a_run_is_not_mixed_with_what_people_wrote_from_the_same_place(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    place = parse_place("telegram:42", store.settings)
    plan(store, place=place)
    send(store, "a question", channel="telegram", sender_id="42", reply_to=ReplyTo("42"))
    wait(store, clock)
    assert texts_of(take(store)) == ["a question"]


def test_the_scheduler_is_nobody_whom_one_could_write_to(store: Store, clock: FakeClock) -> None:
    hire(store)
    plan(store, place=parse_place("telegram:42", store.settings))
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
            from bullpen.core.queue.hold import hold

            do(store, hold, runs(store, made)[0]["message_id"], "too expensive")
        case "went on":
            answer(store, AGENT, "[@reviewer: look at it]")
    wait(store, clock)
    assert outcomes(store, made) == ["fired", "skipped"]
    assert "not through" in runs(store, made)[1]["reason"]
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
    made = plan(store, overlap=Overlap.QUEUE)
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
    assert "holds 0 of 0" in runs(store, made)[0]["reason"]
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
    made = plan(store, team_id="dev", overlap=Overlap.QUEUE)
    wait(store, clock)
    do(store, change_team, "dev", leader="reviewer")
    wait(store, clock)
    asked = [(row["agent"], row["team_id"]) for row in rows(store, MESSAGES)]
    assert asked == [(AGENT, "dev"), ("reviewer", "dev")]
    assert outcomes(store, made) == ["fired"] * 2
    assert len(events(store, "team_chain_start")) == 2


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
    [(Missed.SKIP, ["missed"]), (Missed.ONE, ["fired"]), (Missed.ALL, ["fired"])],
)
def test_once_that_was_missed_follows_its_policy(
    store: Store, clock: FakeClock, missed: Missed, expected: list[str]
) -> None:
    hire(store)
    made = plan(store, timing=once_timing(START + HOUR, "UTC", START), missed=missed)
    wait(store, clock, DAY)
    assert outcomes(store, made) == expected
    assert see(store, made.id).state is ScheduleState.DONE


def test_what_comes_due_while_it_is_paused_was_not_missed(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store, missed=Missed.ALL)
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
    made = plan(store, overlap=Overlap.QUEUE)
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
    do(store, run_now, "build")
    do(store, pause_schedule, made.id)
    do(store, run_now, made.id)
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
    from bullpen.core.schedules.fire import fire
    from bullpen.core.schedules.plan import plan as decide

    hire(store)
    made = plan(store)
    clock.advance(HOUR)
    assert made.due_at is not None
    decided = decide(made.timing, made.due_at, clock.now(), made.missed)
    do(store, change_schedule, made.id, message="something else")
    do(store, fire, made, decided)
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
    assert see(store, made.id).reason == "the team dev was disbanded"


def test_one_that_cannot_be_decided_is_paused_and_holds_up_no_other(
    store: Store, clock: FakeClock
) -> None:
    hire(store)
    bad, good = plan(store), plan(store, overlap=Overlap.QUEUE)
    with store.engine.begin() as connection:
        changed = SCHEDULES.update().where(SCHEDULES.c.id == bad.id)
        connection.execute(changed.values(kind="cron", cron="0 9 * * *", zone="Gone/Away"))
    wait(store, clock)
    assert see(store, bad.id).state is ScheduleState.PAUSED
    assert "Gone/Away" in (see(store, bad.id).reason or "")
    assert outcomes(store, good) == ["fired"]
    assert len(told(store)) == 1


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


def test_an_agent_schedules_for_whom_it_may(store: Store) -> None:
    team(store, AGENT, "reviewer")
    hire(store, "stranger")
    assert plan(store, CODER).made_by == CODER
    refused(store, OutOfReach, add_schedule, new(store, agent="reviewer"), CODER)
    refused(store, OutOfReach, add_schedule, new(store, agent=None, team_id="dev"), CODER)
    do(store, change_agent, AGENT, scheduling=Scheduling.TEAM)
    plan(store, CODER, agent="reviewer")
    plan(store, CODER, team_id="dev")
    refused(store, OutOfReach, add_schedule, new(store, agent="stranger"), CODER)
    do(store, change_agent, AGENT, scheduling=Scheduling.NONE)
    refused(store, OutOfReach, add_schedule, new(store), CODER)


def test_a_teammate_hears_who_made_the_schedule(store: Store, clock: FakeClock) -> None:
    team(store, AGENT, "reviewer")
    do(store, change_agent, AGENT, scheduling=Scheduling.TEAM)
    plan(store, CODER, agent="reviewer")
    plan(store, CODER)
    wait(store, clock)
    asked = {row["agent"]: row["from_agent"] for row in rows(store, MESSAGES)}
    assert asked == {"reviewer": AGENT, AGENT: None}


def test_an_agent_has_so_many_at_once(stores: Stores, kind: str, clock: FakeClock) -> None:
    with stores.opened(stores.settings(kind, agent_schedules=2), clock) as store:
        hire(store)
        first = plan(store, CODER)
        plan(store, CODER, timing=once_timing(START + HOUR, "UTC", START))
        refused(store, TooMany, add_schedule, new(store), CODER)
        plan(store)
        wait(store, clock)
        plan(store, CODER)
        refused(store, TooMany, add_schedule, new(store), CODER)
        do(store, remove_schedule, first.id)
        plan(store, CODER)


def test_an_agent_touches_what_it_made_and_nothing_else(store: Store) -> None:
    hire(store)
    mine, others = plan(store, CODER), plan(store)
    check_own(CODER, mine)
    check_own("owner", mine)
    with pytest.raises(OutOfReach):
        check_own(CODER, others)


def test_what_an_agent_schedules_goes_where_its_answer_goes(store: Store) -> None:
    hire(store)
    with store.read() as tx:
        assert place_here(tx, AGENT)[0] == NOWHERE
    write(store, "@coder remind me")
    take(store)
    with store.read() as tx:
        place, sender = place_here(tx, AGENT)
    assert (place.channel, place.sender_id, sender) == ("slack", "U1", "Ada")
    assert place.reply_to == ReplyTo("C1", "T1", "M1")


def test_the_next_times_are_those_that_come(store: Store, clock: FakeClock) -> None:
    hire(store)
    made = plan(store)
    assert next_times(made, clock.now()) == [START + n * HOUR for n in range(1, 6)]
    do(store, pause_schedule, made.id)
    clock.advance(10 * HOUR)
    assert next_times(see(store, made.id), clock.now(), 1) == [START + 11 * HOUR]


def test_the_scheduler_sleeps_until_the_next_is_due(store: Store, clock: FakeClock) -> None:
    hire(store)
    assert tick(store) == 5.0
    plan(store)
    assert tick(store) == 5.0
    clock.advance(HOUR - 2 * SECOND)
    assert tick(store) == 2.0
    clock.advance(2 * SECOND)
    assert tick(store) == 0.0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("nowhere", NOWHERE),
        ("owner", Place("cli")),
        ("telegram:123", Place("telegram", "123", ReplyTo("123"))),
        ("telegram:-100123/7", Place("telegram", "-100123", ReplyTo("-100123", "7"))),
        ("slack:C0123456789", Place("slack", "C0123456789", ReplyTo("C0123456789"))),
        ("discord:123456789012345678",
         Place("discord", "123456789012345678", ReplyTo("123456789012345678"))),
        ("sms:+491701234567", Place("sms", "+491701234567")),
        ("whatsapp:+491701234567", Place("whatsapp", "+491701234567")),
        ("cli:", Place("cli")),
        ("web:ann", Place("web", "ann")),
    ],
)  # fmt: skip
def test_places_are_read_and_written_alike(text: str, place: Place) -> None:
    assert parse_place(text, Settings()) == place
    assert parse_place(str(place), Settings()) == place


@pytest.mark.parametrize(
    "text",
    [
        *("", "here", "telegram", "telegram:", "telegram:ann", "telegram:0", "telegram:1/x"),
        *("slack:general", "slack:C0123456789/x", "discord:12", "sms:0170", "sms:+49 170"),
        *("carrier-pigeon:7", "telegram:1\n", "telegram:٣", "web:a b", "sms:+491701234567/1"),
        *("telegram:" + "1" * 5000, "telegram:tinyagi-schedule:x", "slack:\x1fC0123456789"),
    ],
)
def test_an_address_that_its_channel_cannot_read_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadPlace) as caught:
        parse_place(text, Settings())
    assert ":" in caught.value.hint or "nowhere" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30m", 30 * MINUTE),
        ("1h30m", 90 * MINUTE),
        (" 2 D ", 2 * DAY),
        ("1w", 7 * DAY),
        ("90s", 90 * SECOND),
    ],
)
def test_lengths_of_time(text: str, milliseconds: int) -> None:
    assert duration(text) == milliseconds
    assert duration(lasting(milliseconds)) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "m", "30", "-5m", "1.5h", "5 minutes", "1h 2x", "9" * 400 + "h"]
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        duration(text)


def test_moments_have_an_offset_or_a_zone() -> None:
    assert moment("2026-12-24T18:00Z", "Europe/Berlin") == moment(
        "2026-12-24T19:00", "Europe/Berlin"
    )
    assert moment("2026-12-24 18:00+01:00", "UTC") == moment("2026-12-24T17:00", "UTC")


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "25:00", "0000-00-00T00:00", "9" * 400]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        moment(text, "UTC")


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
