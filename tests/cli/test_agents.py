"""bullpen agent, team, room, provider, history and response: who works here, and what was said."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bullpen.core.company import add_agent
from bullpen.core.roster.agents import Agent
from bullpen.core.roster.teams import Team, add_team
from tests.cli.command import Bullpen
from tests.cli.open_store import at_work, direct
from tests.cli.processor import processor
from tests.ports import free_port


@pytest.fixture
def company(bullpen: Bullpen) -> Bullpen:
    """Two agents and their team."""
    return found(bullpen)


def found(bullpen: Bullpen) -> Bullpen:
    """Take them on."""
    with direct(bullpen) as store, store.write() as tx:
        add_agent(tx, Agent(id="coder", name="Code Wizard"))
        add_agent(tx, Agent(id="tester"))
        add_team(tx, Team(id="dev", leader="coder", members=("coder", "tester")))
    return bullpen


def test_without_agents_a_list_says_what_to_do(on_both: Bullpen) -> None:
    assert "bullpen agent add" in on_both.ok("agent", "list").out
    assert on_both.ok("agent", "list", "--json").json == []
    assert "bullpen team add" in on_both.ok("team", "list").out


def test_agents_are_added_changed_and_shown(company: Bullpen) -> None:
    company.ok("agent", "set", "coder", "--provider", "claude", "--model", "sonnet")
    (coder, tester) = company.ok("agent", "list", "--json").json
    assert (coder["id"], coder["name"], coder["provider"], coder["model"]) == (
        *("coder", "Code Wizard", "claude", "sonnet"),
    )
    assert (tester["id"], tester["provider"], tester["permission"]) == ("tester", "echo", "edit")
    assert "Code Wizard" in company.ok("agent", "show", "coder").out
    assert "coder" in company.ok("agent", "list").out


@pytest.mark.parametrize("name", ["..", "A", "a/b", "", "x" * 33, "-a"])
def test_an_id_that_is_none_is_refused(company: Bullpen, name: str) -> None:
    result = company("agent", "add", "--", name)
    assert result.status == 2
    assert result.err.startswith("Error: ")


def test_an_id_that_is_taken_is_refused_for_agents_and_teams_alike(company: Bullpen) -> None:
    assert company("agent", "add", "dev").status == 1
    assert company("team", "add", "tester", "coder").status == 1


def test_nothing_of_an_unknown_agent_can_be_changed(company: Bullpen) -> None:
    for command in ("show", "set", "remove", "reset", "pause", "resume"):
        result = company("agent", command, "nobody")
        assert (result.status, "bullpen agent list" in result.err) == (1, True), command


def test_removing_keeps_the_files_unless_they_are_to_go_and_were_made_by_bullpen(
    company: Bullpen,
) -> None:
    workspace = company.home / "workspace"
    for name in ("coder", "tester"):
        (workspace / name / ".bullpen").mkdir(parents=True)
        (workspace / name / "work.txt").write_text("hours of it")
    (workspace / "coder" / ".bullpen" / "made_by_bullpen").touch()
    kept = company.ok("agent", "remove", "tester", "--delete-files")
    assert "stays because Bullpen did not create it" in kept.err
    assert (workspace / "tester" / "work.txt").exists()
    company.ok("agent", "add", "third")
    assert (workspace / "third" / "AGENTS.md").is_file()
    assert "stay in" in company.ok("agent", "remove", "third").out
    company.ok("agent", "remove", "coder", "--delete-files")
    assert not (workspace / "coder").exists()
    assert company.ok("team", "list", "--json").json == []


def test_an_agent_with_work_is_removed_only_by_force(company: Bullpen) -> None:
    sent = company.ok("send", "@coder hello", "--no-wait").out.strip()
    assert company("agent", "remove", "coder").status == 75
    company.ok("agent", "remove", "coder", "--force")
    assert company("queue", "cancel", sent).status == 1


def test_pause_and_resume(company: Bullpen) -> None:
    company.ok("agent", "pause", "coder", "--reason", "on holiday")
    assert "on holiday" in company.ok("queue", "status").out
    company.ok("agent", "resume", "coder")
    assert "on holiday" not in company.ok("queue", "status").out


def test_a_message_for_a_paused_agent_waits_and_send_says_so_at_once(company: Bullpen) -> None:
    company.ok("agent", "pause", "coder", "--reason", "on holiday")
    result = company("send", "@coder hello")
    assert result.status == 75
    assert "@coder is paused (on holiday)" in result.err


def test_a_missing_program_pauses_the_agent_and_the_owner_reads_why(company: Bullpen) -> None:
    company.ok("agent", "set", "coder", "--provider", "claude")
    with processor(company):
        result = company("send", "@coder hello")
    assert result.status == 75
    assert "claude is not installed" in result.out
    assert "bullpen agent resume coder" in result.out


def test_an_agent_whose_program_is_missing_is_created_with_the_steps_to_set_it_up(
    company: Bullpen,
) -> None:
    added = company.ok("agent", "add", "writer", "--provider", "claude")
    assert added.out == "Created @writer (provider: claude).\n"
    assert "claude is not installed, so @writer cannot answer yet" in added.err
    assert "npm install -g @anthropic-ai/claude-code" in added.err
    assert "bullpen config set anthropic_api_key" in added.err
    assert "bullpen agent resume writer" in added.err
    assert str(company.home / "workspace" / "writer" / "AGENTS.md") in added.err
    assert "codex login" in company.ok("agent", "set", "coder", "--provider", "codex").err


def test_an_installed_program_without_a_login_is_reported(company: Bullpen) -> None:
    program = Path(company.home, "bin", "claude")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(company.home)}
    without = company.ok("agent", "add", "one", "--provider", "claude", **environ)
    assert "no login or key was found" in without.err
    assert "bullpen provider test claude" in without.err
    company.ok("config", "set", "anthropic_api_key", stdin="sk-ant-api03-nothing\n", **environ)
    ready = company.ok("agent", "add", "two", "--provider", "claude", **environ)
    assert "Warning" not in ready.err


def test_another_provider_ends_the_pause_of_a_missing_one(company: Bullpen) -> None:
    company.ok("agent", "set", "coder", "--provider", "claude")
    with processor(company):
        assert company("send", "@coder hello").status == 75
        changed = company.ok("provider", "use", "echo", "--agent", "coder")
        assert "Resumed @coder." in changed.out
        assert "@coder: again" in company.ok("send", "@coder again").out


REFUSED = [
    (("agent", "set", "coder"), 2, "nothing to change"),
    (("agent", "lane", "coder"), 2, "nothing to change"),
    (
        ("agent", "set", "coder", "--directory", "/nowhere"),
        2,
        "directory '/nowhere' does not exist",
    ),
    (("agent", "add", "new", "--directory", "/etc/passwd"), 2, "is not a directory"),
    (("agent", "set", "coder", "--provider", "clude"), 2, "Did you mean 'claude'?"),
    (("agent", "show", "codre"), 1, "agent 'codre' does not exist. Did you mean 'coder'?"),
    (("provider", "show", "clude"), 1, "Did you mean 'claude'?"),
    (("team", "show", "dve"), 1, "team 'dve' does not exist. Did you mean 'dev'?"),
]


def test_what_is_named_must_exist(company: Bullpen, subtests: pytest.Subtests) -> None:
    for args, status, text in REFUSED:
        with subtests.test(" ".join(args)):
            refused = company(*args)
            assert (refused.status, refused.out) == (status, "")
            assert text in refused.err


def test_a_relative_directory_becomes_absolute(company: Bullpen) -> None:
    company.ok("agent", "set", "coder", "--directory", ".")
    assert Path(company.ok("agent", "show", "coder", "--json").json["directory"]).is_absolute()


def test_a_provider_is_tested_with_one_real_run(company: Bullpen) -> None:
    assert "echo answered" in company.ok("provider", "test", "echo").out
    failed = company("provider", "test", "claude")
    assert (failed.status, "claude is not installed" in failed.err) == (1, True)


def test_a_change_of_a_lane_keeps_what_it_does_not_name(company: Bullpen) -> None:
    company.ok("agent", "lane", "coder", "--batching", "one", "--max-depth", "3")
    told = company.ok("agent", "lane", "coder", "--ordering", "priority").out
    assert "ordering: priority, batching: one, max depth: 3" in told
    assert "max depth: unlimited" in company.ok("agent", "lane", "coder", "--max-depth", "0").out


def test_a_number_that_no_column_can_keep_is_refused_as_the_api_does(
    company: Bullpen, subtests: pytest.Subtests
) -> None:
    for option in ("--max-depth", "--max-attempts"):
        for number in ("99999999999999999999", "3000000000"):
            with subtests.test(option=option, number=number):
                refused = company("agent", "lane", "coder", option, number)
                assert refused.status == 2
                assert "is not between" in refused.err


def test_teams_are_changed_and_disbanded(bullpen: Bullpen) -> None:
    company = bullpen
    company.ok("agent", "add", "coder", "--name", "Code Wizard")
    company.ok("agent", "add", "tester")
    company.ok("team", "add", "dev", "coder", "tester", "--leader", "coder")
    company.ok("team", "set", "dev", "--delivery", "aggregate", "--max-hops", "3")
    (team,) = company.ok("team", "list", "--json").json
    assert (team["leader"], team["delivery"], team["max_hops"]) == ("coder", "aggregate", 3)
    assert team["members"] == ["coder", "tester"]
    company.ok("team", "remove", "dev")
    assert company.ok("team", "list", "--json").json == []
    assert len(company.ok("agent", "list", "--json").json) == 2


def test_a_conversation_is_sent_answered_by_all_and_found_again(on_both: Bullpen) -> None:
    company = found(on_both)
    with processor(company):
        told = company.ok("send", "@coder: !say mine [@tester: !say yours]")
        assert told.out.splitlines() == [
            "@coder: mine @coder → @tester: !say yours",
            "@tester: yours",
        ]
        both = company.ok("send", "[@coder: !say one] [@tester: !say two]", "--json").json
        assert sorted(each["message"] for each in both["answers"]) == ["one", "two"]
    assert "yours" in company.ok("history", "search", "YOURS").out
    assert company.ok("history", "search", "no such words", "--json").json == []
    (person,) = company.ok("history", "people", "--json").json
    assert (person["channel"], person["sender"]) == ("cli", "owner")


def test_an_unknown_name_is_answered_with_who_exists(company: Bullpen) -> None:
    result = company("send", "@nobody hello")
    assert result.status == 1
    assert "@coder (Code Wizard)" in result.err
    assert "@dev" in result.err


def test_a_room_is_posted_to_and_read(company: Bullpen) -> None:
    assert "No posts in #dev yet" in company.ok("room", "read", "dev").out
    company.ok("room", "post", "dev", "stand-up!")
    assert company.ok("room", "read", "dev").out == "@owner: stand-up!\n"
    (post,) = company.ok("room", "read", "dev", "--json").json
    assert (post["from_agent"], post["message"]) == ("owner", "stand-up!")
    assert company.ok("queue", "status", "--json").json["pending"] == 2
    assert company("room", "post", "nowhere", "hello").status == 1


def test_a_provider_of_ones_own_is_added_and_its_key_never_shown(company: Bullpen) -> None:
    company.ok(
        *("provider", "add", "local", "--harness", "claude", "--base-url", "http://127.0.0.1:1"),
        stdin="a-secret-key\n",
    )
    listed = company.ok("provider", "list")
    assert "custom:local" in listed.out
    assert "a-secret-key" not in listed.out + company.ok("provider", "list", "--json").out
    company.ok("provider", "remove", "local")
    assert "custom:local" not in company.ok("provider", "list").out


@pytest.mark.parametrize(("url", "key"), [("ftp://x", "k"), ("http://x", ""), ("nonsense", "k")])
def test_a_provider_without_an_address_or_a_key_is_refused(
    company: Bullpen, url: str, key: str
) -> None:
    result = company("provider", "add", "x", "--harness", "codex", "--base-url", url, stdin=key)
    assert result.status == 2


def test_an_agent_writes_to_a_person_of_its_own_accord(company: Bullpen) -> None:
    """As the skill says that comes with every agent."""
    run = at_work(company, "coder", channel="slack", sender="Una", sender_id="U1")
    send = ("response", "send", "--channel", "slack", "--to", "U1")
    told = company.ok(*send, "the report is ready", **run)
    assert told.out.startswith("Enqueued response 1 to slack:U1. ")
    assert company.ok("queue", "status", "--json").json["outgoing"] == 1
    secret = company.home / "settings.toml"
    secret.write_text("")
    refused = company(*send, "x", "--file", str(secret), **run)
    assert refused.status == 2
    assert "outside" in refused.err


def test_a_held_message_is_listed_with_the_reason_and_let_go(company: Bullpen) -> None:
    company.ok("team", "set", "dev", "--max-hops", "0")
    with processor(company):
        sent = company("send", "@dev !say [@tester: !say hi]", "--json")
    assert sent.status == 75
    conversation = sent.json
    assert "to other agents are held" in conversation["answers"][-1]["message"]
    (held,) = company.ok("queue", "held", "--json").json
    assert held["conversation_id"] == conversation["message_id"]
    assert "handoffs" in company.ok("queue", "held").out
    assert company.ok("queue", "dead", "--json").json == []
    company.ok("queue", "resume", "--conversation", conversation["message_id"])
    assert company.ok("queue", "held", "--json").json == []
    company.ok("queue", "cancel", "--conversation", conversation["message_id"], "-y")
    assert company("queue", "cancel").status == 2
    assert company.ok("queue", "dead", "--json").json == []


def test_up_takes_the_real_command_line_if_there_is_one(bullpen: Bullpen) -> None:
    program = Path(bullpen.home, "bin", "claude")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = f"{program.parent}:{os.environ['PATH']}"
    bullpen.ok("up", PATH=path, BULLPEN_API_PORT=str(free_port()))
    (agent,) = bullpen.ok("agent", "list", "--json").json
    assert (agent["id"], agent["provider"]) == ("assistant", "claude")
    bullpen.ok("down")


def test_up_without_one_answers_all_the_same_and_says_how_to_connect_it(bullpen: Bullpen) -> None:
    bullpen.ok("up", BULLPEN_API_PORT=str(free_port()))
    answer = bullpen.ok("send", "hello").out
    assert answer.startswith("@assistant: hello\n")
    assert "install claude or codex" in answer
    assert "bullpen agent set assistant --provider claude" in answer
    bullpen.ok("down")
