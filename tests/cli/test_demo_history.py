"""bullpen demo history: a home with a month of work, which every command can show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import TypeAdapter

from tests.cli.command import Bullpen
from tests.cli.entries import SHOWN_ELSEWHERE

SMALL = ("--attempts", "1500", "--days", "10", "--seed", "3")
REFUSED = 2
ABOUT_THE_STORE = ("queue.", "db.", "agent.", "channel.", "fs.")
WAITING = {"queue.dead_letters", "queue.held", "queue.unattended"}
"""What doctor says of messages that wait for a person, or for a processor."""


@pytest.fixture
def written(empty: Bullpen) -> Bullpen:
    """A home with a small history."""
    shown = empty.ok("demo", "history", *SMALL, "--json")
    TypeAdapter(SHOWN_ELSEWHERE["demo history"]).validate_json(shown.out)
    return empty


def test_every_list_shows_the_history_and_doctor_finds_no_contradiction(written: Bullpen) -> None:
    status = written("status", "--json").json["queue"]
    assert (status["dead"] >= 4, status["held"] >= 3, status["pending"] >= 2) == (True,) * 3
    dead = written.ok("queue", "dead", "--json").json
    trace = written.ok("trace", dead[0]["message_id"]).out
    assert dead[0]["message_id"] in trace
    listed = written.ok("queue", "list", "--limit", "100", "--json").json
    assert len(listed) == 100
    for each in ("events", "response list", "agent list", "team list", "history people"):
        assert written.ok(*each.split(), "--json").json, each
    checks = written("doctor", "--json").json["checks"]
    found = {each["id"] for each in checks if each["state"] == "found"}
    assert {each for each in found if each.startswith(ABOUT_THE_STORE)} == WAITING
    assert written.ok("db", "check").status == 0
    before = written.ok("queue", "list", "--json").out
    refused = written("demo", "history", *SMALL)
    assert refused.status == 1
    assert "the store is not empty" in refused.err
    assert written.ok("queue", "list", "--json").out == before


def test_a_day_in_the_future_or_before_1970_is_refused_before_anything_is_written(
    empty: Bullpen,
) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    refused = empty("demo", "history", "--until", tomorrow)
    assert (refused.status, "is in the future" in refused.err) == (REFUSED, True)
    for early in ("1970-01-28", "0001-01-01"):
        refused = empty("demo", "history", "--until", early)
        assert (refused.status, "before 1970" in refused.err) == (REFUSED, True), early
    assert not (empty.home / "bullpen.db").exists()
