"""bullpen team: who is in it, who leads, and what goes with it."""

from __future__ import annotations

import pytest

from tests.cli.command import Bullpen
from tests.cli.open_store import company

WHEN = ("--every", "1h", "--to", "nowhere")


@pytest.fixture
def office(on_both: Bullpen) -> Bullpen:
    """Three agents, two of them in a team."""
    return company(on_both)


def members(office: Bullpen) -> list[str]:
    """Who is in the team, in order."""
    found: list[str] = office.ok("team", "show", "dev", "--json").json["members"]
    return found


def test_agents_join_a_team_and_leave_it(office: Bullpen) -> None:
    told = office.ok("team", "add-member", "dev", "stranger", "coder").out
    assert told == "Members of @dev: @coder, @tester, @stranger. Leader: @coder.\n"
    assert office.ok("team", "add-member", "dev", "stranger").status == 0
    assert members(office) == ["coder", "tester", "stranger"]
    office.ok("team", "remove-member", "dev", "tester")
    assert members(office) == ["coder", "stranger"]


def test_who_is_next_leads_when_the_leader_leaves_or_whom_you_say(office: Bullpen) -> None:
    office.ok("team", "add-member", "dev", "stranger")
    assert office.ok("team", "remove-member", "dev", "coder", "--json").json["leader"] == "tester"
    office.ok("team", "add-member", "dev", "coder")
    changed = office.ok("team", "remove-member", "dev", "tester", "--leader", "coder", "--json")
    assert (changed.json["leader"], changed.json["members"]) == ("coder", ["stranger", "coder"])


def test_the_names_that_others_use_are_understood(office: Bullpen) -> None:
    for add, remove in (
        ("add-agent", "remove-agent"),
        ("agent-add", "agent-remove"),
        ("member-add", "member-remove"),
    ):
        office.ok("team", add, "dev", "stranger")
        office.ok("team", remove, "dev", "stranger")
    assert "dev" in office.ok("team", "ls").out
    office.ok("team", "rm", "dev")
    assert "team ls" not in office.ok("team", "--help").out


@pytest.mark.parametrize(
    "args",
    [
        ("remove-member", "dev", "stranger"),
        ("remove-member", "dev", "coder", "tester"),
        ("remove-member", "dev", "coder", "--leader", "coder"),
        ("remove-member", "dev", "coder", "--leader", "stranger"),
    ],
    ids=" ".join,
)
def test_what_no_team_can_be_is_refused(office: Bullpen, args: tuple[str, ...]) -> None:
    result = office("team", *args)
    assert result.status == 2
    assert "\n  " in result.err
    assert members(office) == ["coder", "tester"]


def test_who_is_not_there_neither_joins_nor_leaves(office: Bullpen) -> None:
    assert office("team", "add-member", "dev", "nobody").status == 1
    assert office("team", "add-member", "nowhere", "coder").status == 1
    assert office("team", "remove-member", "nowhere", "coder").status == 1
    assert office("team", "show", "nowhere").status == 1
    assert members(office) == ["coder", "tester"]


def test_a_team_is_shown_with_its_limits_and_what_its_members_are_at(office: Bullpen) -> None:
    office.ok("team", "set", "dev", "--max-hops", "3")
    office.ok("send", "@tester hello", "--no-wait")
    found = office.ok("team", "show", "dev", "--json").json
    assert (found["max_hops"], found["max_messages"]) == (3, None)
    assert found["limits"] == {"max_hops": 3, "max_messages": 50, "max_cost": 0.0}
    assert [(each["id"], each["state"]) for each in found["agents"]] == [
        *(("coder", "idle"), ("tester", "idle")),
    ]
    assert "3 in a row" in office.ok("team", "show", "dev").out
    assert office.ok("team", "set", "dev", "--usual-limits", "--json").json["max_hops"] is None


def test_teams_are_disbanded_with_what_was_for_them_paused(office: Bullpen) -> None:
    office.ok("team", "add", "ops", "stranger")
    made = office.ok("schedule", "add", "x", "--team", "dev", *WHEN, "--json").json["id"]
    gone = office.ok("team", "remove", "dev", "ops", "--json").json
    assert gone == {"removed": ["dev", "ops"], "schedules": [made]}
    assert office.ok("schedule", "show", made, "--json").json["state"] == "paused"
    assert office.ok("team", "list", "--json").json == []


def test_of_several_teams_all_are_disbanded_or_none(office: Bullpen) -> None:
    assert office("team", "remove", "dev", "nowhere").status == 1
    assert members(office) == ["coder", "tester"]


def test_members_may_be_separated_by_commas(bullpen: Bullpen) -> None:
    for name in ("coder", "tester", "writer"):
        bullpen.ok("agent", "add", name, "--provider", "echo")
    made = bullpen.ok("team", "add", "ops", "coder,tester", "writer", "--json").json
    assert made["members"] == ["coder", "tester", "writer"]
    bullpen.ok("team", "remove-member", "ops", "coder,writer")
    assert bullpen.ok("team", "add-member", "ops", "writer,", "--json").json["members"] == [
        "tester",
        "writer",
    ]
    assert bullpen("team", "add", "none", ",").status == 2


def test_a_change_of_nothing_is_refused(bullpen: Bullpen) -> None:
    bullpen.ok("agent", "add", "coder", "--provider", "echo")
    bullpen.ok("team", "add", "dev", "coder")
    refused = bullpen("team", "set", "dev")
    assert (refused.status, refused.out) == (2, "")
    assert "Error: nothing to change: give at least one option\n" in refused.err
    bullpen.ok("team", "set", "dev", "--max-cost", "0")
    bullpen.ok("team", "set", "dev", "--usual-limits")
