"""What destroys says how much of it, asks at a terminal, and can be looked at before."""

from __future__ import annotations

import pytest

from tests.cli.command import Bullpen
from tests.cli.open_store import company
from tests.cli.terminal import terminal

WHEN = ("--every", "1h", "--to", "nowhere")


@pytest.fixture
def office(on_both: Bullpen) -> Bullpen:
    """Three agents, two of them in a team; the third has work, a schedule and a heartbeat."""
    company(on_both)
    for text in ("one", "two"):
        on_both.ok("send", f"@stranger {text}", "--no-wait")
    on_both.ok("schedule", "add", "x", "--agent", "stranger", "--label", "mine", *WHEN)
    on_both.ok("heartbeat", "on", "stranger")
    return on_both


def agents(office: Bullpen) -> list[str]:
    """Who is there."""
    return [each["id"] for each in office.ok("agent", "list", "--json").json]


COUNTS = "2 pending messages cancelled, 1 schedule paused, 1 heartbeat removed"


def test_what_would_go_with_an_agent_is_counted_and_nothing_is_done(office: Bullpen) -> None:
    said = office.ok("agent", "remove", "stranger", "--force", "--dry-run").out
    assert said == f"Would remove @stranger ({COUNTS})\n"
    (found,) = office.ok("agent", "remove", "stranger", "--force", "--dry-run", "--json").json
    assert (found["waiting"], found["heartbeat"], found["removed"]) == (2, True, False)
    assert "stranger" in agents(office)
    assert office.ok("queue", "status", "--json").json["pending"] == 2


def test_without_a_terminal_what_is_named_is_done_and_said(office: Bullpen) -> None:
    told = office.ok("agent", "remove", "stranger", "coder", "--force").out
    assert "Cancelled 2 messages." in told
    assert "Paused 1 schedule without an agent" in told
    assert agents(office) == ["tester"]
    assert office.ok("queue", "status", "--json").json["pending"] == 0


def test_of_several_agents_all_are_removed_or_none(office: Bullpen) -> None:
    assert office("agent", "remove", "coder", "stranger").status == 75
    assert office("agent", "remove", "coder", "nobody").status == 1
    assert agents(office) == ["coder", "stranger", "tester"]
    told = office.ok("agent", "remove", "coder", "tester", "--json").json
    assert [(each["agent"], each["teams"], each["disbanded"]) for each in told] == [
        *(("coder", ["dev"], []), ("tester", ["dev"], ["dev"])),
    ]
    assert office.ok("team", "list", "--json").json == []


@pytest.mark.parametrize("answer", ["n", "y"])
def test_at_a_terminal_a_person_is_asked(bullpen: Bullpen, answer: str) -> None:
    company(bullpen).ok("send", "@stranger hello", "--no-wait")
    with terminal(bullpen, "agent", "remove", "stranger", "--force") as screen:
        screen.until("Remove @stranger (1 pending message cancelled)? [y/N]:")
        screen.type(f"{answer}\n")
        assert screen.end() == (0 if answer == "y" else 1)
    assert ("stranger" in agents(bullpen)) == (answer == "n")


def test_yes_asks_nobody(bullpen: Bullpen) -> None:
    company(bullpen)
    with terminal(bullpen, "team", "remove", "dev", "--yes") as screen:
        assert screen.end() == 0
    assert bullpen.ok("team", "list", "--json").json == []


def test_schedules_are_removed_by_id_or_label_once(office: Bullpen) -> None:
    made = office.ok("schedule", "show", "mine", "--json").json["id"]
    other = office.ok("schedule", "add", "y", "--agent", "coder", *WHEN, "--json").json["id"]
    assert office("schedule", "remove", "mine", "nothing").status == 1
    told = office.ok("schedule", "remove", "mine", other, made, "--json").json
    assert told == {"removed": [made, other]}
    assert office.ok("schedule", "list", "--json").json == []


def test_schedules_are_paused_and_resumed_together(office: Bullpen) -> None:
    office.ok("schedule", "add", "y", "--agent", "coder", "--label", "yours", *WHEN)
    for verb, state in (("pause", "paused"), ("resume", "active")):
        told = office.ok("schedule", verb, "mine", "yours", "--json").json
        assert [(each["label"], each["state"]) for each in told] == [
            *(("mine", state), ("yours", state)),
        ]


def test_keys_are_taken_back_together_or_not_at_all(office: Bullpen) -> None:
    for name in ("one", "two"):
        office.ok("key", "add", name, "--scope", "read")
    keys = [each["id"] for each in office.ok("key", "list", "--json").json]
    assert office("key", "revoke", *keys, "key_nonsense").status == 1
    assert all(each["valid"] for each in office.ok("key", "list", "--json").json)
    assert office.ok("key", "revoke", *keys, "--json").json == {"revoked": keys}
    assert not any(each["valid"] for each in office.ok("key", "list", "--json").json)


def test_agents_are_paused_together_and_listed_with_what_they_are_at(office: Bullpen) -> None:
    office.ok("agent", "pause", "coder", "tester", "--reason", "on holiday")
    lanes = {each["id"]: each["lane"] for each in office.ok("agent", "list", "--json").json}
    assert (lanes["coder"]["state"], lanes["coder"]["reason"]) == ("paused", "on holiday")
    assert (lanes["stranger"]["state"], lanes["stranger"]["pending"]) == ("active", 2)
    assert "on holiday" in office.ok("agent", "show", "coder").out
    office.ok("agent", "resume", "coder", "tester")
    assert [line.split()[-2:] for line in office.ok("agent", "list").out.splitlines()[1:]] == [
        *(["idle", "0"], ["idle", "2"], ["idle", "0"]),
    ]


def test_the_lane_of_one_who_was_removed_stays_closed(office: Bullpen) -> None:
    office.ok("agent", "remove", "coder")
    for verb in ("pause", "resume"):
        assert office("agent", verb, "coder").status == 1
    assert office("send", "@coder hello", "--no-wait").status == 1
