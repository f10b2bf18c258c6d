"""bullpen schedule: made, changed, looked at, run, by people and by agents in their own right."""

from __future__ import annotations

import re
import time
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.message import Answer, Outcome, Usage
from bullpen.core.outbox.delivery import ack, begin_part, end_part
from bullpen.core.outbox.leases import lease_responses
from bullpen.core.outbox.parts import PartReceipt
from bullpen.core.queue.claim import claim
from bullpen.core.queue.finish import finish
from bullpen.core.schedules.fire import fire_due_schedules
from bullpen.core.schedules.model import list_schedules
from tests.cli.command import Bullpen
from tests.cli.open_store import at_work, company, direct
from tests.cli.terminal import terminal

MINE = ("--agent", "coder", "--to", "nowhere")
BERLIN = ZoneInfo("Europe/Berlin")
# Half a day away: no test sees it come.
AWAY = (datetime.now(BERLIN).hour + 12) % 24
CRON = ("--cron", f"0 {AWAY} * * 1-5")


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """The command, and three agents."""
    return company(bullpen)


def add(office: Bullpen, *args: str, **environ: str) -> Any:  # noqa: ANN401 - a JSON document
    """Make a schedule; gives it as it is shown."""
    return office.ok("schedule", "add", "Stand-up!", *args, "--json", **environ).json


def shown(office: Bullpen, name: str) -> Any:  # noqa: ANN401 - a JSON document
    return office.ok("schedule", "show", name, "--json").json


def answer(office: Bullpen, cost: float) -> None:
    """The agent answers, and telegram takes the answer."""
    with direct(office) as store:
        with store.write() as tx:
            work = claim(tx, "worker", agent="coder")
            assert work is not None
            usage = Usage(cost=cost)
            finish(tx, work, Outcome(answers=(Answer(message="done"),), usage=usage))
        with store.write() as tx:
            (delivery,) = lease_responses(tx, "telegram", "sender", 1)
            token = str(delivery.claim_token)
            begin_part(tx, token)
            end_part(tx, token, PartReceipt("platform-7"))
            ack(tx, token)


def now() -> int:
    return time.time_ns() // 1_000_000


def test_a_schedule_is_made_and_says_what_it_means_and_when_it_comes(on_both: Bullpen) -> None:
    office = company(on_both)
    args = (*CRON, "--zone", "Europe/Berlin", "--to", "telegram:4711", "--label", "stand-up")
    out = office.ok("schedule", "add", "Stand-up!", "--team", "dev", *args).out
    assert re.match(
        rf"Created schedule schedule_\w+ \(stand-up\) for @dev\.\nAt {AWAY:02}:00 on Monday",
        out,
    )
    assert "telegram:4711" in out
    assert len(re.findall(rf"^  \d{{4}}-\d\d-\d\d {AWAY:02}:00 CES?T$", out, re.MULTILINE)) == 5
    found = shown(office, "stand-up")
    assert (found["team_id"], found["agent"], found["message"]) == ("dev", None, "Stand-up!")
    assert (found["to"], found["made_by"], found["state"]) == ("telegram:4711", "owner", "active")
    assert (found["missed"], found["overlap"], found["jitter"]) == ("one", "skip", 0)
    assert found["due_at"] == found["next"][0]
    for each in found["next"]:
        wall = datetime.fromtimestamp(each / SECOND, BERLIN)
        assert (wall.hour, wall.minute, wall.weekday() < 5) == (AWAY, 0, True)
    assert office.ok("schedule", "show", found["id"], "--json").json == found
    text = office.ok("schedule", "show", "stand-up").out
    for part in ("stand-up", "@dev", CRON[1], "Europe/Berlin", "telegram:4711", "active"):
        assert part in text
    listed = office.ok("schedule", "list").out
    assert "stand-up" in listed
    assert f"{CRON[1]} Europe/Berlin" in listed


def test_every_in_and_at_say_when_it_is_due(office: Bullpen) -> None:
    start = now()
    every = add(office, *MINE, "--every", "1h30m")
    assert (every["kind"], every["every"]) == ("every", 90 * MINUTE)
    assert 90 * MINUTE <= every["due_at"] - start < 100 * MINUTE
    assert every["next"][4] - every["next"][0] == 4 * 90 * MINUTE
    within = add(office, *MINE, "--in", "20m")
    assert within["kind"] == "once"
    assert 20 * MINUTE <= within["due_at"] - start < 25 * MINUTE
    assert within["next"] == [within["due_at"]]
    day = datetime.fromtimestamp(start / SECOND + 30 * DAY / SECOND, BERLIN).date()
    at = add(office, *MINE, "--at", f"{day}T18:00", "--zone", "Europe/Berlin")
    wall = datetime.fromtimestamp(at["due_at"] / SECOND, BERLIN)
    assert (wall.date(), wall.hour) == (day, 18)
    out = office.ok("schedule", "add", "x", *MINE, "--every", "2h").out
    assert "Every 2h" in out


def test_without_a_zone_it_is_the_owners(office: Bullpen) -> None:
    found = add(office, *MINE, *CRON, BULLPEN_TIME_ZONE="Asia/Kathmandu")
    assert found["zone"] == "Asia/Kathmandu"


def test_what_is_named_is_changed_and_the_rest_stays(office: Bullpen) -> None:
    more = ("--zone", "Europe/Berlin", "--missed", "all", "--overlap", "queue", "--jitter", "5m")
    made = add(office, *CRON, *more, "--agent", "coder", "--to", "owner", "--label", "daily")
    assert (made["missed"], made["overlap"], made["jitter"]) == ("all", "queue", 5 * MINUTE)
    changed = office.ok("schedule", "set", "daily", "--cron", "30 10 * * *", "--json").json
    assert (changed["cron"], changed["zone"]) == ("30 10 * * *", "Europe/Berlin")
    kept = ("id", "message", "agent", "to", "label", "missed", "overlap", "jitter", "made_by")
    assert {name: changed[name] for name in kept} == {name: made[name] for name in kept}
    moved = office.ok("schedule", "set", "daily", "--zone", "Asia/Kathmandu", "--json").json
    assert (moved["cron"], moved["zone"]) == ("30 10 * * *", "Asia/Kathmandu")
    assert moved["due_at"] != changed["due_at"]
    args = ("--team", "dev", "--text", "new", "--to", "sms:+491701234567", "--label", "")
    other = office.ok("schedule", "set", "daily", *args, "--json").json
    assert (other["team_id"], other["agent"], other["message"]) == ("dev", None, "new")
    assert (other["to"], other["label"], other["cron"]) == (
        "sms:+491701234567",
        None,
        "30 10 * * *",
    )
    often = office.ok("schedule", "set", made["id"], "--every", "2h", "--json").json
    assert (often["kind"], often["cron"], often["every"]) == ("every", None, 2 * HOUR)
    shifted = office.ok("schedule", "set", made["id"], "--zone", "UTC", "--json").json
    assert (shifted["zone"], shifted["due_at"]) == ("UTC", often["due_at"])


def test_one_that_is_paused_is_not_due_until_it_is_resumed(office: Bullpen) -> None:
    made = add(office, *MINE, *CRON, "--paused")
    assert (made["state"], made["due_at"]) == ("paused", None)
    assert len(made["next"]) == 5
    (resumed,) = office.ok("schedule", "resume", made["id"], "--json").json
    assert resumed["state"] == "active"
    told = office.ok("schedule", "pause", made["id"], "--reason", "on holiday").out
    assert f"bullpen schedule resume {made['id']}" in told
    assert "on holiday" in office.ok("schedule", "list", "--state", "paused").out
    assert "on holiday" in office.ok("schedule", "show", made["id"]).out
    assert office.ok("schedule", "list", "--state", "active", "--json").json == []
    would_be = office.ok("schedule", "next", made["id"])
    assert len(would_be.out.splitlines()) == 5
    assert "is paused" in would_be.err
    office.ok("schedule", "resume", made["id"])
    assert len(office.ok("schedule", "next", made["id"], "--count", "12", "--json").json) == 12


def test_lists_are_of_what_was_asked_for(office: Bullpen) -> None:
    assert "bullpen schedule add" in office.ok("schedule", "list").out
    mine = add(office, *MINE, *CRON)
    team = add(office, "--team", "dev", "--to", "nowhere", *CRON)

    def ids(*args: str) -> list[str]:
        return [each["id"] for each in office.ok("schedule", "list", *args, "--json").json]

    assert ids() == [mine["id"], team["id"]]
    assert ids("--agent", "coder") == [mine["id"]]
    assert ids("--team", "dev") == [team["id"]]
    office.ok("schedule", "remove", mine["id"])
    assert ids() == [team["id"]]
    assert office("schedule", "show", mine["id"]).status == 1


def test_a_run_by_hand_and_what_became_of_it(on_both: Bullpen) -> None:
    office = company(on_both)
    made = add(office, "--agent", "coder", "--to", "telegram:4711", *CRON, "--label", "daily")
    assert "No runs of " in office.ok("schedule", "history", "daily").out
    told = office.ok("schedule", "now", "daily").out
    assert re.match(r"Enqueued message schedule_\w+ of schedule daily for @coder\. Next: ", told)
    (run,) = office.ok("schedule", "history", "daily", "--json").json
    assert (run["outcome"], run["due_at"], run["state"]) == ("fired", None, "pending")
    assert run["message_id"] in told
    answer(office, cost=0.25)
    (run,) = office.ok("schedule", "history", "daily", "--json").json
    assert (run["state"], run["cost"]) == ("completed", 0.25)
    assert run["deliveries"][0]["status"] == "acked"
    (line,) = office.ok("schedule", "history", "daily").out.splitlines()[1:]
    for part in ("by hand", "fired", run["message_id"], "completed", "$0.2500"):
        assert part in line
    assert "telegram: delivered platform-7" in line
    assert shown(office, "daily")["due_at"] == made["due_at"]


def test_missed_times_are_one_line_of_the_history(office: Bullpen) -> None:
    args = (*MINE, "--every", "1m", "--missed", "skip", "--label", "often")
    made = add(office, *args)
    late = made["due_at"] + 10 * MINUTE + MINUTE // 2
    with direct(office, late) as store:
        fire_due_schedules(store)
    runs = office.ok("schedule", "history", "often", "--json").json
    missed = [each for each in runs if each["outcome"] == "missed"]
    assert [(each["due_at"], each["times"]) for each in missed] == [(made["due_at"], 10)]
    assert missed[0]["until"] == made["due_at"] + 9 * MINUTE
    text = office.ok("schedule", "history", "often").out
    assert re.search(r"\d\d:\d\d UTC to \d{4}-\S+ \d\d:\d\d UTC  missed \(10 times\)", text), text
    assert len(office.ok("schedule", "history", "often", "--limit", "1").out.splitlines()) == 2


BAD = {
    "a cron expression that is wrong": (("--cron", "0 99 * * *"), "invalid cron", "0 9 * * 1-5"),
    "a cron expression of four fields": (("--cron", "0 9 * *"), "five fields", "0 9 * * 1-5"),
    "a cron expression that never comes": (("--cron", "0 0 30 2 *"), "", "0 9 * * 1-5"),
    "an unknown zone": ((*CRON, "--zone", "Mars/Base"), "Mars/Base", "Europe/Berlin"),
    "an unknown zone of a moment": (
        ("--at", "2100-01-01T00:00", "--zone", "Mars"),
        "time zone 'Mars' does not exist",
        "Europe/Berlin",
    ),
    "a time that was": (("--at", "2020-01-01T00:00"), "is in the past", "2030-01-31T09:00"),
    "no moment": (("--at", "tomorrow"), "invalid time 'tomorrow'", "2026-12-24T18:00"),
    "an interval under a minute": (("--every", "59s"), "interval of 59 s is out of range", "30m"),
    "no interval": (("--every", "often"), "invalid duration 'often'", "30m"),
    "a time of day that is none": (("--daily", "25:00"), "invalid time of day '25:00'", "09:00"),
    "days that are none": (("--daily", "9:00", "--on", "mo"), "invalid days 'mo'", "mon,wed"),
    "days without a time of day": ((*CRON, "--on", "weekdays"), "--on needs", "--daily 09:00"),
    "no time at all": ((), "missing the time", "--cron '0 9 * * 1-5'"),
    "two times": ((*CRON, "--every", "1h"), "only one option", "--cron '0 9 * * 1-5'"),
    "a jitter that is none": ((*CRON, "--jitter", "x"), "invalid duration 'x'", "30m"),
    "a jitter that is too long": ((*CRON, "--jitter", "2d"), "jitter", "5m"),
    "an address that telegram cannot read": (
        (*CRON, "--to", "telegram:ann"),
        "invalid address 'ann' for telegram",
        "telegram:123456789",
    ),
    "an address that slack cannot read": (
        (*CRON, "--to", "slack:general"),
        "invalid address 'general' for slack",
        "slack:C0123456789",
    ),
    "an unknown channel": (
        (*CRON, "--to", "pigeon:1"),
        "channel 'pigeon' does not exist",
        "telegram",
    ),
    "no channel": ((*CRON, "--to", "ann"), "channel 'ann' does not exist", "telegram:123456789"),
    "an agent and a team": (
        (*CRON, "--team", "dev"),
        "--agent or --team, not both",
        "one recipient",
    ),
}


@pytest.mark.parametrize(("args", "reason", "example"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_with_the_reason_and_an_example(
    office: Bullpen, args: tuple[str, ...], reason: str, example: str
) -> None:
    to = () if "--to" in args else ("--to", "nowhere")
    result = office("schedule", "add", "x", "--agent", "coder", *to, *args)
    assert (result.status, result.out) == (2, "")
    said, hint = result.err.splitlines()
    assert said.startswith("Error: ")
    assert reason in said
    assert example in hint
    with direct(office) as store, store.read() as tx:
        assert list_schedules(tx) == []


def test_a_person_says_whom_and_where(office: Bullpen) -> None:
    result = office("schedule", "add", "x", "--agent", "coder", *CRON)
    assert result.status == 2
    for form in ("--to telegram:123456789", "--to owner", "--to nowhere"):
        assert form in result.err
    result = office("schedule", "add", "x", "--to", "owner", *CRON)
    assert result.status == 2
    assert "--agent coder" in result.err


def test_who_does_not_exist_cannot_be_asked(office: Bullpen) -> None:
    for whom, hint in (("--agent", "bullpen agent list"), ("--team", "bullpen team list")):
        result = office("schedule", "add", "x", whom, "nobody", "--to", "nowhere", *CRON)
        assert (result.status, hint in result.err) == (1, True), result
    for command in ("show", "set", "pause", "resume", "remove", "now", "next", "history"):
        change = ("--text", "x") if command == "set" else ()
        result = office("schedule", command, "nothing", *change)
        assert (result.status, "bullpen schedule list" in result.err) == (1, True), command


def test_a_time_every_day_or_on_some_days_is_said_without_cron(office: Bullpen) -> None:
    for label, on, cron in (
        ("daily", (), "0 9 * * *"),
        ("work", ("--on", "weekdays"), "0 9 * * 1-5"),
        ("rest", ("--on", "weekends"), "0 9 * * 0,6"),
        ("some", ("--on", "wed,Monday"), "0 9 * * 1,3"),
    ):
        made = add(office, *MINE, "--daily", "09:00", *on, "--label", label)
        assert (made["kind"], made["cron"]) == ("cron", cron)
    changed = office.ok("schedule", "set", "work", "--daily", "9:30", "--on", "sat", "--json").json
    assert changed["cron"] == "30 9 * * 6"


def test_a_change_without_an_option_is_refused(office: Bullpen) -> None:
    add(office, *MINE, *CRON, "--label", "daily")
    refused = office("schedule", "set", "daily")
    assert (refused.status, "nothing to change" in refused.err) == (2, True)


def test_a_list_of_schedules_has_one_line_a_row_at_80_columns(office: Bullpen) -> None:
    for label in ("stand-up", "weekly-report", ""):
        named = ("--label", label) if label else ()
        to = ("--agent", "coder", "--to", "telegram:123456789")
        add(office, *to, "--cron", "*/30 9-17 * * 1-5", *named)
    with terminal(office, "schedule", "list") as person:
        assert person.end() == 0
    lines = [each for each in person.shown.splitlines() if each.strip()]
    assert len(lines) == 5, person.shown
    assert max(map(len, lines)) <= 80
    assert len(office.ok("schedule", "list", "-q").out.split()) == 3


def test_a_filter_for_an_agent_or_team_that_does_not_exist_is_refused(office: Bullpen) -> None:
    for option in ("--agent", "--team"):
        assert office("schedule", "list", option, "nobody").status == 1


def test_a_label_is_taken_once(office: Bullpen) -> None:
    add(office, *MINE, *CRON, "--label", "daily")
    assert office("schedule", "add", "x", *MINE, *CRON, "--label", "daily").status == 1


def test_what_is_over_cannot_be_resumed_but_given_another_time(office: Bullpen) -> None:
    made = add(office, *MINE, "--in", "1m", "--label", "soon")
    with direct(office, made["due_at"]) as store:
        fire_due_schedules(store)
    assert shown(office, "soon")["state"] == "done"
    assert "has no due times left" in office.ok("schedule", "pause", "soon").out
    assert "No due times left" in office.ok("schedule", "show", "soon").out
    assert office.ok("schedule", "set", "soon", "--in", "1h", "--json").json["state"] == "active"


# Agents ----------------------------------------------------------------------------------------


def test_an_agent_schedules_itself_and_handles_what_it_made(office: Bullpen) -> None:
    coder = at_work(office, "coder")
    made = add(office, "--in", "20m", "--label", "later", **coder)
    assert (made["agent"], made["made_by"]) == ("coder", "agent:coder")
    assert office.ok("schedule", "set", "later", "--in", "1h", "--json", **coder).json["at"]
    office.ok("schedule", "pause", "later", **coder)
    assert shown(office, "later")["reason"] == "paused by @coder"
    office.ok("schedule", "resume", "later", **coder)
    # Of a run that asks for the next one there would be no end.
    refused = office("schedule", "now", "later", **coder)
    assert (refused.status, "may not run schedules at once" in refused.err) == (1, True)
    assert office.ok("schedule", "history", "later", "--json", **coder).json == []
    office.ok("schedule", "remove", "later", **coder)
    assert office.ok("schedule", "list", "--json", **coder).json == []


def test_an_agent_sees_what_is_for_it_and_changes_only_what_it_made(office: Bullpen) -> None:
    for each in ("coder", "tester", "stranger"):
        office.ok("agent", "set", each, "--reach", "people")
    coder, tester, stranger = (at_work(office, each) for each in ("coder", "tester", "stranger"))
    owners = add(office, *MINE, *CRON)["id"]
    teams = add(office, "--team", "dev", "--to", "nowhere", *CRON)["id"]
    own = add(office, "--in", "1h", **tester)["id"]

    def ids(environ: dict[str, str]) -> list[str]:
        found = office.ok("schedule", "list", "--json", **environ).json
        return [each["id"] for each in found]

    assert ids(coder) == [owners, teams]
    assert ids(tester) == [teams, own]
    assert ids(stranger) == []
    for command in ("show", "next", "history"):
        office.ok("schedule", command, owners, **coder)
        result = office("schedule", command, owners, **stranger)
        assert (result.status, "neither by @stranger nor for @stranger" in result.err) == (
            1,
            True,
        ), command
    changes = (("set", "--text", "x"), ("pause",), ("resume",), ("remove",))
    for command, *args in changes:
        result = office("schedule", command, owners, *args, **coder)
        assert (result.status, "was not created by @coder" in result.err) == (1, True), command
    assert shown(office, owners)["message"] == "Stand-up!"
    assert office.ok("schedule", "history", owners, "--json").json == []


def test_an_agent_asks_others_only_where_it_may(office: Bullpen) -> None:
    coder = at_work(office, "coder", channel="heartbeat", sender="heartbeat")
    for_mate = ("schedule", "add", "x", "--agent", "tester", "--in", "1h", "--to", "nowhere")
    refused = office(*for_mate, **coder)
    assert (refused.status, "only for itself" in refused.err) == (1, True)
    assert "--scheduling team" in refused.err
    office.ok("agent", "set", "coder", "--scheduling", "team")
    assert "team" in office.ok("agent", "show", "coder").out
    made = office.ok(*for_mate, "--json", **coder).json
    assert (made["agent"], made["made_by"]) == ("tester", "agent:coder")
    assert office.ok("schedule", "add", "x", "--team", "dev", "--in", "1h", **coder).out
    stranger = office("schedule", "add", "x", "--agent", "stranger", "--in", "1h", **coder)
    assert (stranger.status, "is not a teammate" in stranger.err) == (1, True)
    assert office("schedule", "set", made["id"], "--agent", "stranger", **coder).status == 1
    office.ok("agent", "set", "coder", "--scheduling", "none")
    assert office("schedule", "add", "x", "--in", "1h", **coder).status == 1
    # What it made it may still end, and not set going again.
    office.ok("schedule", "pause", made["id"], **coder)
    assert office("schedule", "resume", made["id"], **coder).status == 1
    office.ok("schedule", "remove", made["id"], **coder)


def test_an_agent_is_taken_on_with_its_right(office: Bullpen) -> None:
    office.ok("agent", "add", "idle", "--scheduling", "none")
    assert office.ok("agent", "show", "idle", "--json").json["scheduling"] == "none"
    assert office("agent", "set", "idle", "--scheduling", "everybody").status == 2


def test_an_agent_cannot_ask_itself_again_and_again_without_rest(office: Bullpen) -> None:
    coder = at_work(office, "coder")
    for when in (("--in", "30s"), ("--every", "30s")):
        result = office("schedule", "add", "x", *when, **coder)
        assert (result.status, "minute" in result.err) == (2, True), when
    add(office, *MINE, "--in", "30s")
    settings = {"BULLPEN_AGENT_SCHEDULES": "1", **coder}
    add(office, "--in", "1m", **settings)
    result = office("schedule", "add", "x", "--in", "1m", **settings)
    assert (result.status, "the limit is 1" in result.err) == (1, True)


def test_an_agent_that_does_not_exist_does_nothing(office: Bullpen) -> None:
    assert office("schedule", "add", "x", "--in", "1h", BULLPEN_RUN="ghost.0").status == 1
    assert office.ok("schedule", "list", "--json").json == []


# Removal ---------------------------------------------------------------------------------------


def test_who_is_removed_pauses_what_was_for_it_and_that_is_said(office: Bullpen) -> None:
    mine = add(office, *MINE, *CRON)["id"]
    team = add(office, "--team", "dev", "--to", "nowhere", *CRON)["id"]
    other = add(office, "--agent", "stranger", "--to", "nowhere", *CRON)["id"]
    told = office.ok("team", "remove", "dev").out
    assert f"Paused 1 schedule without an agent: {team}" in told
    told = office.ok("agent", "remove", "coder").out
    assert f"Paused 1 schedule without an agent: {mine}" in told
    assert "paused" not in office.ok("agent", "remove", "tester").out
    states = {each["id"]: each["state"] for each in office.ok("schedule", "list", "--json").json}
    assert states == {mine: "paused", team: "paused", other: "active"}
    assert office("schedule", "resume", mine).status == 1
    assert office("schedule", "now", mine).status == 1
    office.ok("schedule", "set", mine, "--agent", "stranger")
    office.ok("schedule", "resume", mine)
