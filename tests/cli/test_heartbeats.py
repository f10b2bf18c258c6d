"""bullpen heartbeat: turned on, changed, looked at and turned off, by people alone."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bullpen.core.answers.complete import fail
from bullpen.core.clock import DAY, HOUR, MINUTE, SECOND
from bullpen.core.heartbeats.run import send_due_heartbeats
from bullpen.core.message import ErrorKind, Failure
from bullpen.core.queue.claim import claim
from tests.cli.command import Bullpen
from tests.cli.open_store import company, direct

UTC_OWNER = {"BULLPEN_TIME_ZONE": "UTC"}


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """The command, and three agents."""
    return company(bullpen)


def shown(office: Bullpen, agent: str = "coder") -> Any:  # noqa: ANN401 - a JSON document
    return office.ok("heartbeat", "show", agent, "--json", **UTC_OWNER).json


def now() -> int:
    return time.time_ns() // 1_000_000


def test_nobody_is_woken_unless_somebody_says_so(on_both: Bullpen) -> None:
    office = company(on_both)
    assert "bullpen heartbeat on" in office.ok("heartbeat", "list").out
    found = shown(office)
    assert (found["state"], found["due_at"], found["last_at"]) == ("off", None, None)
    assert "HEARTBEAT_OK" in found["text"]
    start = now()
    told = office.ok("heartbeat", "on", "coder", "--every", "30m").out
    assert told.startswith("Turned on the heartbeat of @coder.\n")
    found = shown(office)
    assert (found["state"], found["every"], found["to"]) == ("on", 30 * MINUTE, "owner")
    assert 30 * MINUTE <= found["due_at"] - start < 40 * MINUTE
    assert (found["budget"], found["left_today"], found["max_silent"]) == (24, 24, 48)
    (listed,) = office.ok("heartbeat", "list", "--json").json
    assert (listed["agent"], listed["state"]) == ("coder", "on")
    assert re.search(r"^coder +on +30m +all ", office.ok("heartbeat", "list").out, re.MULTILINE)
    office.ok("heartbeat", "off", "coder")
    found = shown(office)
    assert (found["state"], found["every"], found["due_at"]) == ("off", 30 * MINUTE, None)


def test_what_is_named_is_changed_and_the_rest_stays(office: Bullpen) -> None:
    args = ("--hours", "22:00-06:00", "--budget", "5", "--max-silent", "0", "--to", "telegram:4711")
    office.ok("heartbeat", "set", "coder", *args)
    found = shown(office)
    assert found["state"] == "off"
    assert (found["hours"], found["budget"], found["max_silent"]) == ("22:00-06:00", 5, 0)
    assert (found["to"], found["every"]) == ("telegram:4711", HOUR)
    office.ok("heartbeat", "on", "coder", "--hours", "all")
    found = shown(office)
    assert (found["state"], found["hours"], found["budget"]) == ("on", None, 5)
    office.ok("heartbeat", "set", "coder", "--to", "owner", "--every", "2h")
    found = shown(office)
    assert (found["state"], found["to"], found["every"]) == ("on", "owner", 2 * HOUR)


def test_the_next_beat_is_within_its_hours(office: Bullpen) -> None:
    soon = datetime.now(UTC) + timedelta(hours=5)
    hours = f"{soon:%H}:00-{soon:%H}:30"
    office.ok("heartbeat", "on", "coder", "--every", "1m", "--hours", hours, **UTC_OWNER)
    begins = soon.replace(minute=0, second=0, microsecond=0)
    assert shown(office)["next"] == int(begins.timestamp()) * SECOND
    text = office.ok("heartbeat", "show", "coder", **UTC_OWNER).out
    assert f"next         {begins:%Y-%m-%d %H}:00 UTC" in text
    assert f"{hours} (UTC)" in text


def test_what_an_agent_is_told_is_shown_with_its_place(office: Bullpen) -> None:
    path = office.home / "workspace" / "coder" / "heartbeat.md"
    path.parent.mkdir(parents=True)
    path.write_text("Water the plants.\n")
    found = shown(office)
    assert (found["path"], found["text"]) == (str(path), "Water the plants.\n")
    text = office.ok("heartbeat", "show", "coder").out
    assert str(path) in text
    assert "  Water the plants." in text
    path.write_text("")
    assert "empty: no heartbeats are sent" in office.ok("heartbeat", "show", "coder").out


def left_of(beats: list[Any]) -> int:
    """How many of the usual number are left today."""
    midnight = now() // DAY * DAY
    return 24 - len([each for each in beats if each["fired_at"] >= midnight])


def test_beats_and_what_came_of_them_until_it_pauses(on_both: Bullpen) -> None:
    office = company(on_both)
    assert "No heartbeats of @coder yet" in office.ok("heartbeat", "history", "coder").out
    office.ok("heartbeat", "on", "coder", "--every", "1m")
    due = shown(office)["due_at"]
    for number in range(3):
        with direct(office, due + number * 2 * MINUTE) as store:
            send_due_heartbeats(store)
            with store.write() as tx:
                work = claim(tx, "worker", agent="coder")
                assert work is not None
                fail(tx, work.token, Failure(kind=ErrorKind.RETRYABLE, error="it broke"))
    found = shown(office)
    assert found["state"] == "paused"
    assert "3 heartbeats in a row failed" in found["reason"]
    assert found["last_at"] == due + 4 * MINUTE
    text = office.ok("heartbeat", "show", "coder").out
    assert "paused: 3 heartbeats in a row failed" in text
    assert "bullpen heartbeat on coder" in text
    beats = office.ok("heartbeat", "history", "coder", "--json").json
    assert [each["outcome"] for each in beats] == ["failed"] * 3
    line = office.ok("heartbeat", "history", "coder", "--limit", "1").out.splitlines()[1]
    assert "failed" in line
    assert "it broke" in line
    before, left, after = left_of(beats), shown(office)["left_today"], left_of(beats)
    assert left in (before, after)  # it may be midnight between the two
    office.ok("heartbeat", "on", "coder")
    assert (shown(office)["state"], shown(office)["reason"]) == ("on", None)


BAD = {
    "an interval under a minute": (
        ("--every", "30s"),
        "interval of 30 s is out of range",
        "minute",
    ),
    "no interval": (("--every", "often"), "invalid duration 'often'", "30m"),
    "no hours": (("--hours", "morning"), "invalid hours 'morning'", "08:00-18:00"),
    "no such hour": (("--hours", "08:00-25:00"), "invalid hours '08:00-25:00'", "08:00-18:00"),
    "hours that end at once": (("--hours", "08:00-08:00"), "are empty", "whole day"),
    "no beats": (("--budget", "0"), "budget must be between 1 and 1440", "a day"),
    "less than no silence": (("--max-silent", "-1"), "max silent must be between 0", "Use 0"),
    "an address that telegram cannot read": (
        ("--to", "telegram:ann"),
        "invalid address 'ann' for telegram",
        "telegram:123456789",
    ),
    "an unknown channel": (("--to", "pigeon:1"), "channel 'pigeon' does not exist", "telegram"),
}


@pytest.mark.parametrize(("args", "reason", "example"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_with_the_reason_and_an_example(
    office: Bullpen, args: tuple[str, ...], reason: str, example: str
) -> None:
    result = office("heartbeat", "on", "coder", *args)
    assert (result.status, result.out) == (2, "")
    said, hint = result.err.splitlines()
    assert reason in said
    assert example in hint
    assert shown(office)["state"] == "off"


def test_who_does_not_exist_has_no_heartbeat(office: Bullpen) -> None:
    for command in ("show", "on", "set", "off", "now", "history"):
        change = ("--every", "1h") if command == "set" else ()
        result = office("heartbeat", command, "nobody", *change)
        assert (result.status, "bullpen agent list" in result.err) == (1, True), command
    office.ok("agent", "remove", "tester")
    assert office("heartbeat", "on", "tester").status == 1
    assert office.ok("heartbeat", "list", "--json").json == []


def test_in_its_run_an_agent_does_not_change_heartbeats(office: Bullpen) -> None:
    for args in (("on", "coder"), ("set", "coder", "--every", "1m"), ("off", "coder")):
        result = office("heartbeat", *args, BULLPEN_RUN="coder.0")
        assert (result.status, "@coder may not change" in result.err) == (1, True), args
        assert "Ask a person" in result.err
    assert shown(office)["state"] == "off"


def test_a_heartbeat_is_sent_at_once_and_counts(on_both: Bullpen) -> None:
    office = company(on_both)
    office.ok("heartbeat", "set", "coder", "--hours", "00:00-00:01", "--budget", "1")
    sent = office.ok("heartbeat", "now", "coder")
    (message,) = office.ok("queue", "list", "--json").json
    assert sent.out == f"Enqueued message {message['message_id']}: heartbeat of @coder.\n"
    assert f"bullpen trace {message['message_id']} -f" in sent.err
    assert "bullpen up" in sent.err
    assert (message["channel"], message["agent"]) == ("heartbeat", "coder")
    (run,) = office.ok("heartbeat", "history", "coder", "--json").json
    assert (run["outcome"], run["message_id"]) == ("sent", message["message_id"])
    found = shown(office)
    assert (found["state"], found["due_at"], found["left_today"]) == ("off", None, 0)
    assert found["last_at"] == run["fired_at"]


def test_a_heartbeat_that_cannot_be_sent_at_once_says_why(office: Bullpen) -> None:
    office.ok("send", "@coder hello", "--no-wait")
    refused = office("heartbeat", "now", "coder")
    assert (refused.status, refused.out) == (1, "")
    assert "Error: heartbeat of @coder not sent: the agent is busy\n" in refused.err
    heartbeat = office.home / "workspace" / "tester" / "heartbeat.md"
    office.ok("heartbeat", "show", "tester")
    heartbeat.parent.mkdir(parents=True, exist_ok=True)
    heartbeat.write_text("\n")
    assert "heartbeat.md is empty" in office("heartbeat", "now", "tester").err
    assert office.ok("heartbeat", "history", "coder", "--json").json == []


def test_a_heartbeat_is_paused_resumed_and_removed_by_other_names(office: Bullpen) -> None:
    office.ok("heartbeat", "resume", "coder")
    assert shown(office)["state"] == "on"
    office.ok("heartbeat", "pause", "coder")
    assert shown(office)["state"] == "off"
    office.ok("heartbeat", "enable", "coder")
    office.ok("heartbeat", "remove", "coder")
    assert shown(office)["state"] == "off"


def test_a_change_without_an_option_is_refused(office: Bullpen) -> None:
    refused = office("heartbeat", "set", "coder")
    assert (refused.status, "nothing to change" in refused.err) == (2, True)
