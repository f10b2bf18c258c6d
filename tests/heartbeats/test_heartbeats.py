"""Heartbeats: off unless wanted, never above their rate, silent if there is nothing to say."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import datetime

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND, get_zone
from bullpen.core.company import remove_agent
from bullpen.core.errors import BadHeartbeat, UnknownAgent
from bullpen.core.heartbeats.manage import change_heartbeat
from bullpen.core.heartbeats.model import MAX_ERRORS, ActiveHours, HeartbeatState
from bullpen.core.heartbeats.run import send_due_heartbeats, send_heartbeat, strip_silent_answer
from bullpen.core.message import ErrorKind
from bullpen.core.models import AGENT_MESSAGES, HEARTBEATS, MESSAGES, RESPONSES
from bullpen.core.outbox.addresses import parse_address
from bullpen.core.queue.lanes import pause_lane
from bullpen.core.queue.timers import run_timers
from bullpen.core.store.base import Store
from bullpen.core.workspace.contents import heartbeat_path, write_heartbeat_text
from tests.answers.talk import answer, said, told
from tests.conformance.verbs import (
    AGENT,
    do,
    events,
    failed,
    hire,
    refused,
    responses,
    rows,
    send,
    status,
    take,
    texts_of,
    try_claim,
)
from tests.heartbeats.hearts import TEXT, awake, beats, outcomes, see, turn, wait
from tests.stores import FakeClock, Stores


def test_nobody_is_woken_unless_somebody_says_so(store: Store, clock: FakeClock) -> None:
    hire(store)
    wait(store, clock, 30 * DAY)
    assert see(store).state is HeartbeatState.OFF
    assert rows(store, MESSAGES) == []


def test_it_is_told_what_its_file_says_each_time_its_interval_is_over(
    store: Store, clock: FakeClock
) -> None:
    awake(store, every=10 * MINUTE)
    wait(store, clock, 10 * MINUTE - 1)
    assert try_claim(store) is None
    wait(store, clock, 1)
    found = take(store)
    assert texts_of(found) == [TEXT]
    assert found.primary.channel == "heartbeat"
    assert found.primary.message_id.startswith("heartbeat_")
    said(store, found, "HEARTBEAT_OK")
    wait(store, clock, 10 * MINUTE - 1)
    assert try_claim(store) is None
    wait(store, clock, 1)
    assert try_claim(store) is not None


@pytest.mark.parametrize(
    "word", ["HEARTBEAT_OK", " HEARTBEAT_OK\n", "**HEARTBEAT_OK**", "`HEARTBEAT_OK`."]
)
def test_the_agreed_word_is_told_to_nobody(store: Store, clock: FakeClock, word: str) -> None:
    awake(store)
    wait(store, clock)
    answer(store, AGENT, word)
    assert responses(store) == []
    assert outcomes(store) == ["silent"]
    assert len(events(store, "heartbeat_silent")) == 1


def test_what_it_has_to_say_goes_to_the_owner_without_the_word(
    stores: Stores, kind: str, clock: FakeClock
) -> None:
    made = stores.settings(kind, owner_channel="telegram", owner_id="42")
    with stores.opened(made, clock) as store:
        awake(store)
        wait(store, clock)
        answer(store, AGENT, "The build is red.\n\nHEARTBEAT_OK")
        (row,) = responses(store)
        assert (row["channel"], row["sender_id"]) == ("telegram", "42")
        assert row["message"] == "The build is red."
        assert outcomes(store) == ["said"]


def test_it_says_it_where_it_is_told_to(store: Store, clock: FakeClock) -> None:
    awake(store, place=parse_address("slack:C0123456789/1700000000.000100", store.settings))
    wait(store, clock)
    answer(store, AGENT, "The build is red.")
    (row,) = responses(store)
    assert (row["channel"], row["sender_id"]) == ("slack", "C0123456789")
    assert row["reply_to"].split("\x1f") == ["C0123456789", "1700000000.000100", ""]


def test_its_session_is_reminded_of_what_it_said(store: Store, clock: FakeClock) -> None:
    awake(store)
    wait(store, clock)
    answer(store, AGENT, "The build is red.")
    notes = [row["content"] for row in rows(store, AGENT_MESSAGES) if row["role"] == "note"]
    assert notes == ["in a heartbeat you wrote to the owner: The build is red."]


def test_one_that_is_busy_is_left_in_peace(store: Store, clock: FakeClock) -> None:
    awake(store)
    send(store)
    wait(store, clock)
    take(store)
    wait(store, clock)
    assert [(row["outcome"], row["reason"]) for row in beats(store)] == [
        ("skipped", "the agent is busy"),
        ("skipped", "the agent is busy"),
    ]
    assert len(rows(store, MESSAGES)) == 1


def test_one_whose_lane_is_paused_is_not_woken(store: Store, clock: FakeClock) -> None:
    awake(store)
    do(store, pause_lane, AGENT, "on holiday")
    wait(store, clock)
    assert [(row["outcome"], row["reason"]) for row in beats(store)] == [
        ("skipped", "the agent is paused")
    ]


@pytest.mark.parametrize("text", ["", "  \n\t"])
def test_an_empty_file_costs_no_run(store: Store, clock: FakeClock, text: str) -> None:
    awake(store)
    write_heartbeat_text(store.settings, AGENT, text)
    wait(store, clock)
    assert outcomes(store) == ["skipped"]
    heartbeat_path(store.settings, AGENT).unlink()
    wait(store, clock)
    assert outcomes(store) == ["skipped", "skipped"]
    assert rows(store, MESSAGES) == []


def test_an_agent_that_never_ran_is_told_what_all_are_told(store: Store, clock: FakeClock) -> None:
    hire(store)
    turn(store, on=True)
    wait(store, clock)
    assert "HEARTBEAT_OK" in texts_of(take(store))[0]


@pytest.mark.parametrize("kind_of_error", list(ErrorKind))
def test_three_errors_in_a_row_pause_it_and_tell_the_owner_once(
    store: Store, clock: FakeClock, kind_of_error: ErrorKind
) -> None:
    awake(store)
    pausing = kind_of_error in (ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.SETUP)
    for _ in range(1 if pausing else MAX_ERRORS):
        wait(store, clock)
        failed(store, take(store).token, kind_of_error, "no such luck")
        assert try_claim(store) is None
        clock.advance(30 * MINUTE)
        do(store, run_timers)
        assert try_claim(store) is None, "it was tried again"
    if pausing:
        assert len(told(store)) == 1, "the lane is paused, and its owner knows"
        assert see(store).errors == 1
        return
    assert set(outcomes(store)) == {"failed"}
    now = see(store)
    assert now.state is HeartbeatState.PAUSED
    assert "no such luck" in (now.reason or "")
    ((_, notice),) = told(store)
    assert "bullpen heartbeat on coder" in notice
    wait(store, clock, 30 * DAY)
    assert len(beats(store)) == MAX_ERRORS


@pytest.mark.parametrize("text", ["HEARTBEAT_OK", "The build is red."])
def test_an_error_between_is_forgotten(store: Store, clock: FakeClock, text: str) -> None:
    awake(store)
    for _ in range(MAX_ERRORS):
        for _ in range(MAX_ERRORS - 1):
            wait(store, clock)
            failed(store, take(store).token)
        wait(store, clock)
        answer(store, AGENT, text)
    assert see(store).state is HeartbeatState.ON


def test_too_many_silent_beats_pause_it_and_something_to_say_counts_anew(
    store: Store, clock: FakeClock
) -> None:
    awake(store, max_silent=3, budget=1440)
    for text in ["HEARTBEAT_OK", "HEARTBEAT_OK", "The build is red.", *["HEARTBEAT_OK"] * 3]:
        wait(store, clock)
        answer(store, AGENT, text)
    assert see(store).state is HeartbeatState.PAUSED
    assert len(told(store)) == 2
    wait(store, clock, DAY)
    assert len(beats(store)) == 6
    turn(store, on=True)
    assert (see(store).silent, see(store).reason) == (0, None)
    wait(store, clock)
    assert len(beats(store)) == 7


def test_never_paused_for_silence_if_that_is_wanted(store: Store, clock: FakeClock) -> None:
    awake(store, max_silent=0)
    for _ in range(60):
        wait(store, clock)
        if (found := try_claim(store)) is not None:
            said(store, found, "HEARTBEAT_OK")
    assert see(store).state is HeartbeatState.ON


def test_a_day_has_its_budget(stores: Stores, kind: str) -> None:
    midnight = int(datetime.fromisoformat("2026-03-28T00:00:00+01:00").timestamp()) * SECOND
    clock = FakeClock(midnight)
    made = stores.settings(kind, time_zone="Europe/Berlin")
    with stores.opened(made, clock) as store:
        awake(store, every=MINUTE, budget=5, max_silent=0)
        for _ in range(71 * 60 - 1):
            wait(store, clock, MINUTE)
            if (found := try_claim(store)) is not None:
                said(store, found, "HEARTBEAT_OK")
        berlin = get_zone("Europe/Berlin")
        sent = [row["fired_at"] for row in beats(store) if row["outcome"] == "silent"]
        days = Counter(datetime.fromtimestamp(each / SECOND, berlin).day for each in sent)
        # The 29th has 23 hours; what is spent is said once a day, not each minute.
        assert days == {28: 5, 29: 5, 30: 5}
        assert outcomes(store).count("skipped") == 3


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_the_budget_begins_anew_at_the_owners_midnight(
    stores: Stores, kind: str, zone: str
) -> None:
    """Not at that of UTC, which comes in the evening of New York and in the morning of Tokyo."""
    evening = datetime(2026, 11, 18, 23, 30, tzinfo=get_zone(zone))
    clock = FakeClock(int(evening.timestamp()) * SECOND)
    with stores.opened(stores.settings(kind, time_zone=zone), clock) as store:
        awake(store, every=MINUTE, budget=5, max_silent=0)
        for _ in range(24 * 60):
            wait(store, clock, MINUTE)
            if (found := try_claim(store)) is not None:
                said(store, found, "HEARTBEAT_OK")
        sent = [row["fired_at"] for row in beats(store) if row["outcome"] == "silent"]
        shown = [datetime.fromtimestamp(each / SECOND, get_zone(zone)) for each in sent]
        assert [each.strftime("%d %H:%M") for each in shown] == [
            *(f"18 23:3{minute}" for minute in range(1, 6)),
            *(f"19 00:0{minute}" for minute in range(5)),
        ]


def test_it_is_left_in_peace_outside_of_its_hours(stores: Stores, kind: str) -> None:
    begin = int(datetime.fromisoformat("2026-11-18T12:00:00+01:00").timestamp()) * SECOND
    clock = FakeClock(begin)
    made = stores.settings(kind, time_zone="Europe/Berlin")
    with stores.opened(made, clock) as store:
        awake(store, every=HOUR, hours=ActiveHours.parse("08:30-18:00"), max_silent=0)
        for _ in range(2 * 24 * 60):
            wait(store, clock, MINUTE)
            if (found := try_claim(store)) is not None:
                said(store, found, "HEARTBEAT_OK")
        shown = [
            datetime.fromtimestamp(row["fired_at"] / SECOND, get_zone("Europe/Berlin")).strftime(
                "%H:%M"
            )
            for row in beats(store)
        ]
        day = [f"{hour:02}:30" for hour in range(8, 18)]
        assert shown == [f"{hour}:00" for hour in range(13, 18)] + day + day[:4]


def test_hours_may_go_past_midnight() -> None:
    night = ActiveHours.parse("22:00-06:00")
    at = {
        hour: int(datetime.fromisoformat(f"2026-11-18T{hour}:00+00:00").timestamp()) * SECOND
        for hour in ("05:59", "06:00", "21:59", "22:00")
    }
    held = {hour: night.contains(moment, get_zone("UTC")) for hour, moment in at.items()}
    assert held == {"05:59": True, "06:00": False, "21:59": False, "22:00": True}
    assert night.next(at["06:00"], get_zone("UTC")) == at["22:00"]
    assert str(night) == "22:00-06:00"


@pytest.mark.parametrize("text", ["", "8-18", "08:00", "25:00-26:00", "08:60-09:00", "08:00-08:00"])
def test_what_are_no_hours_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadHeartbeat) as caught:
        ActiveHours.parse(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "change",
    [
        *({"every": MINUTE - 1}, {"every": 0}, {"every": 1 << 70}, {"budget": 0}),
        *({"budget": 1441}, {"max_silent": -1}, {"max_silent": 1 << 70}),
    ],
    ids=str,
)
def test_what_no_heartbeat_can_be_is_refused(store: Store, change: dict[str, int]) -> None:
    hire(store)
    with pytest.raises(BadHeartbeat), store.write() as tx:
        change_heartbeat(tx, AGENT, on=True, **change)  # type: ignore[arg-type]
    refused(store, UnknownAgent, change_heartbeat, "nobody")


def test_a_beat_that_nobody_answers_expires_before_the_next(store: Store, clock: FakeClock) -> None:
    awake(store)
    wait(store, clock)
    (first,) = (row["message_id"] for row in rows(store, MESSAGES))
    clock.advance(HOUR)
    do(store, run_timers)
    assert status(store, first) == "expired"
    assert rows(store, RESPONSES) == []


def test_what_it_asks_others_by_itself_is_told_to_nobody(store: Store, clock: FakeClock) -> None:
    awake(store)
    hire(store, "reviewer")
    wait(store, clock)
    answer(store, AGENT, "[@reviewer: is it red?]")
    answer(store, "reviewer", "It is.")
    assert [row["channel"] for row in rows(store, MESSAGES)] == ["heartbeat", "internal"]
    assert [row["channel"] for row in responses(store)] == ["cli"]
    assert responses(store)[0]["message"] == "@coder → @reviewer: is it red?"


def test_an_agent_that_is_let_go_takes_its_heartbeat_along(store: Store, clock: FakeClock) -> None:
    awake(store)
    do(store, remove_agent, AGENT)
    wait(store, clock, DAY)
    assert rows(store, HEARTBEATS) == []
    refused(store, UnknownAgent, change_heartbeat, AGENT)
    hire(store)
    assert see(store).state is HeartbeatState.OFF


def test_turning_it_off_and_on_wakes_nobody_sooner(store: Store, clock: FakeClock) -> None:
    awake(store)
    wait(store, clock)
    answer(store, AGENT, "HEARTBEAT_OK")
    for _ in range(59):
        turn(store, on=False)
        turn(store, on=True)
        wait(store, clock, MINUTE)
    assert len(beats(store)) == 1


def test_neither_does_a_clock_that_was_set_back(store: Store, clock: FakeClock) -> None:
    awake(store)
    wait(store, clock)
    answer(store, AGENT, "HEARTBEAT_OK")
    last = see(store).last_at
    assert last is not None
    clock.advance(-10 * HOUR)
    turn(store, on=False)
    assert turn(store, on=True).due_at == last + HOUR


def test_of_two_schedulers_that_come_with_the_same_beat_one_wakes_it(
    store: Store, clock: FakeClock
) -> None:
    awake(store)
    clock.advance(HOUR)
    due = see(store)
    with store.write() as tx:
        assert send_heartbeat(tx, due, TEXT, get_zone("UTC"))
    answer(store, AGENT, "HEARTBEAT_OK")
    with store.write() as tx:
        assert not send_heartbeat(tx, due, TEXT, get_zone("UTC"))
    assert len(rows(store, MESSAGES)) == 1


def test_a_shorter_interval_counts_from_the_last_beat(store: Store, clock: FakeClock) -> None:
    awake(store, every=DAY)
    turn(store, every=HOUR)
    wait(store, clock)
    assert len(beats(store)) == 1


def test_the_scheduler_logs_each_heartbeat_that_it_sends(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    awake(store)
    with caplog.at_level(logging.INFO):
        wait(store, clock)
    assert f"sent a heartbeat to @{AGENT}" in caplog.text


def test_the_scheduler_sleeps_until_the_next_beat(store: Store, clock: FakeClock) -> None:
    assert send_due_heartbeats(store) == 5.0
    awake(store)
    assert send_due_heartbeats(store) == 5.0
    clock.advance(HOUR - 3 * SECOND)
    assert send_due_heartbeats(store) == 3.0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("HEARTBEAT_OK", ""),
        ("HEARTBEAT_OK\nHEARTBEAT_OK", ""),
        ("All is well: HEARTBEAT_OK was said.", "All is well: HEARTBEAT_OK was said."),
        ("Red.\nHEARTBEAT_OK", "Red."),
        ("HEARTBEAT_OKAY", "HEARTBEAT_OKAY"),
    ],
)
def test_the_word_counts_on_a_line_of_its_own(text: str, left: str) -> None:
    assert strip_silent_answer(text) == left
