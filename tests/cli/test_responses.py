"""bullpen response: what goes out, and what came to whoever sits here."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from bullpen.core.message import Answer
from bullpen.core.outbox.write import send_to_owner, send_to_person
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from tests.cli.command import PROGRAM, Bullpen
from tests.conformance.verbs import do, done, hire, send, take


@pytest.fixture
def store(on_both: Bullpen) -> Store:
    """The store of the command, with a notice, an answer, and something for another channel."""
    with closing(open_store(Settings.load(on_both.environment()))) as opened:
        hire(opened)
        do(opened, send_to_owner, "The heartbeat of @coder is paused.")
        send(opened, "hello", channel="cli", sender="owner")
        done(opened, take(opened).token)
        with opened.write() as tx:
            send_to_person(
                tx, Answer(message="far away"), channel="telegram", sender="Ann", sender_id="4711"
            )
        return opened


@pytest.mark.usefixtures("store")
def test_what_came_is_read_once_the_oldest_first(on_both: Bullpen) -> None:
    assert on_both("status", "--json").json["unread"] == 2
    first, second = on_both.ok("response", "read").out.splitlines()
    assert first.endswith("Bullpen: The heartbeat of @coder is paused.")
    assert second.endswith("@coder: done")
    assert "No unread responses" in on_both.ok("response", "read").out
    assert on_both("status", "--json").json["unread"] == 0


@pytest.mark.usefixtures("store")
def test_what_could_not_be_shown_was_not_read(on_both: Bullpen) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*PROGRAM, "response", "read"]
        shown = subprocess.run(
            command, env=on_both.environment(), stdout=full, stderr=subprocess.PIPE
        )
    assert shown.returncode == 1
    assert on_both("status", "--json").json["unread"] == 2


@pytest.mark.usefixtures("store")
def test_what_came_is_read_as_json(on_both: Bullpen) -> None:
    found = on_both.ok("response", "read", "--json").json
    assert [each["message"] for each in found] == ["The heartbeat of @coder is paused.", "done"]
    assert on_both.ok("response", "read", "--json").json == []


@pytest.mark.usefixtures("store")
def test_what_a_client_delivers_is_not_read_here(on_both: Bullpen) -> None:
    refused = on_both("response", "read", "--channel", "telegram")
    assert refused.status == 2
    assert "telegram" in refused.err


@pytest.mark.usefixtures("store")
def test_an_agent_does_not_read_what_is_for_people(on_both: Bullpen) -> None:
    refused = on_both("response", "read", BULLPEN_RUN="coder.0")
    assert refused.status == 1
    assert "@coder may not" in refused.err
    assert on_both("status", "--json").json["unread"] == 2


@pytest.mark.usefixtures("store")
def test_what_goes_out_is_listed_by_what_it_has_in_common(on_both: Bullpen) -> None:
    far, answer, notice = on_both.ok("response", "list", "--json").json
    assert [each["message"] for each in (far, answer)] == ["far away", "done"]
    assert notice["agent"] == ""
    (only,) = on_both.ok("response", "list", "--channel", "telegram", "--json").json
    assert only == far
    shown = on_both.ok("response", "list", "--agent", "coder").out
    assert "@coder" in shown
    assert "far away" not in shown
    on_both.ok("response", "read")
    listed = on_both.ok("response", "list", "--state", "acked", "--json").json
    assert [each["id"] for each in listed] == [answer["id"], notice["id"]]
    assert "No responses match" in on_both.ok("response", "list", "--state", "dead").out
