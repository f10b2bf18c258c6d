"""A message is answered, the next goes on where it ended, and a lost session loses no message."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.roster.agents import Permission
from bullpen.core.roster.teams import Team, add_team
from tests.conformance.verbs import events
from tests.real.clis import KEY, Cli
from tests.real.office import Office
from tests.real.reply import Body, Refuse, Reply, Say


def test_a_first_message_is_answered_and_accounted_for(office: Office, cli: Cli) -> None:
    office.hire("ann", cli, system_prompt="You count sheep.")
    cli.server.answers(Say("Seven.", input_tokens=123, output_tokens=45))
    with office.processor():
        asked = office.ask("ann", "How many?")
        office.becomes(asked, "completed")
    assert office.answers(asked) == ["Seven."]
    (request,) = cli.server.requests
    assert cli.server.prompt(request.body) == "How many?"
    assert request.body["model"] == cli.model
    assert cli.server.session(request) == office.session()
    assert KEY in request.headers.get("x-api-key", request.headers.get("authorization", ""))
    (attempt,) = office.attempts()
    assert attempt["outcome"] == "completed"
    assert attempt["provider"] == cli.provider
    assert attempt["model"] == cli.model
    assert (attempt["input_tokens"], attempt["output_tokens"]) == (123, 45)
    # codex does not say what it cost.
    assert (attempt["cost"] > 0) is (cli.name == "claude")
    told = [row["type"] for row in events(office.store) if row["message_id"] == asked]
    assert told.index("chain_step_start") < told.index("agent_progress")
    assert told.index("agent_progress") < told.index("chain_step_done")


def test_an_agent_is_told_the_protocol_its_team_and_its_own_text(office: Office, cli: Cli) -> None:
    for agent in ("ann", "bob"):
        office.hire(agent, cli, system_prompt=f"I am only {agent}'s.")
    with office.store.write() as tx:
        add_team(tx, Team(id="shepherds", leader="bob", members=("ann", "bob")))
    cli.server.answers(Say("Yes."))
    with office.processor():
        office.answer("ann", "Who are you?")
    told = cli.server.told(cli.server.requests[0].body)
    assert "[@teammate: your message]" in told
    assert "#shepherds" in told
    assert "@bob: leader" in told
    assert "I am only ann's." in told
    assert "I am only bob's." not in told


def test_a_second_message_goes_on_in_the_same_session(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.answers(
        Say("I will keep it.", input_tokens=100, output_tokens=10),
        Say("It is 41.", input_tokens=200, output_tokens=5),
    )
    with office.processor():
        office.answer("ann", "Remember 41.")
        session = office.session()
        assert office.answer("ann", "Which number?") == "It is 41."
    assert office.session() == session
    first, second = cli.server.requests
    assert cli.server.session(first) == cli.server.session(second) == session
    history = json.dumps(second.body)
    assert "Remember 41." in history
    assert "I will keep it." in history
    assert cli.server.prompt(second.body) == "Which number?"
    assert "[@teammate: your message]" in cli.server.told(second.body)
    used = [(each["input_tokens"], each["output_tokens"]) for each in office.attempts()]
    assert used == [(100, 10), (200, 5)]


def test_a_message_whose_session_is_gone_is_answered_in_a_new_one(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.answers(Say("One."), Say("Two."), Say("Three."))
    with office.processor():
        office.answer("ann", "first")
        lost = office.session()
        (file,) = cli.sessions()
        file.unlink()
        assert office.answer("ann", "second") == "Two."
        kept = office.session()
        assert kept != lost
        assert office.answer("ann", "third") == "Three."
    assert office.session() == kept
    (event,) = events(office.store, "session_lost")
    assert event["agent"] == "ann"
    assert [each["outcome"] for each in office.attempts()] == ["completed"] * 3
    assert cli.server.session(cli.server.requests[2]) == kept


def test_what_is_said_around_a_tool_is_one_answer(office: Office, cli: Cli, tmp_path: Path) -> None:
    yard = tmp_path / "yard"
    yard.mkdir()
    office.hire("ann", cli, Permission.FULL, directory=yard)
    cli.server.answers(
        replace(cli.shell("pwd; echo ${BULLPEN_RUN%.*}"), say="I look."), Say("Here.")
    )
    with office.processor():
        assert office.answer("ann", "Where?") == "I look.\n\nHere."
    result = cli.server.tool_result(cli.server.requests[1].body)
    assert f"{yard}\nann" in (result or "")


def test_a_session_that_has_become_too_long_is_begun_anew(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    if cli.name == "claude":
        full = Refuse(400, "prompt is too long: 215123 tokens > 200000 maximum")
    else:
        full = Refuse(400, "Your input exceeds the context window.", "context_length_exceeded")

    def script(body: Body) -> Reply:
        said = json.dumps(body)
        return full if "Isegrim" in said and "Fenris" in said else Say("Yes.")

    cli.server.script = script
    with office.processor():
        office.answer("ann", "One wolf is Isegrim.")
        session = office.session()
        assert office.answer("ann", "Another is Fenris.") == "Yes."
    assert office.session() != session
    assert len(events(office.store, "session_lost")) == 1


@pytest.mark.postgres
@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_it_is_the_same_on_postgresql(office: Office, cli: Cli) -> None:
    office.hire("ann", cli)
    cli.server.answers(Say("One."), Say("Two."))
    with office.processor():
        assert office.answer("ann", "first") == "One."
        assert office.answer("ann", "second") == "Two."
    assert "first" in json.dumps(cli.server.requests[1].body)
