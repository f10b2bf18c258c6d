"""bullpen setup: from nothing to an answer, with a person at a terminal and without."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.models import AGENTS, CUSTOM_PROVIDERS, TEAMS
from tests.cli.command import Bullpen, without_agents
from tests.cli.open_store import direct
from tests.cli.terminal import COLUMNS, CTRL_C, CTRL_D, Terminal, terminal
from tests.conformance.verbs import rows
from tests.ports import free_port
from tests.processor.working import eventually

STANDIN = Path(__file__).with_name("standin.py")
GOOD, BAD = "sk-good", "sk-ant-of-nobody"
BY_ITSELF = ("setup", "--no-input", "--no-start")


@pytest.fixture
def new(empty: Bullpen, tmp_path: Path) -> Bullpen:
    """The command on a machine with a stand-in for claude, in a home with nothing in it."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n{STANDIN.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    # Nothing else of this machine's own is found.
    path = f"{program.parent}:{without_agents(empty.environment()['PATH'])}"
    home = empty.home / "home"
    environ = {"PATH": path, "BULLPEN_API_PORT": str(free_port())}
    return replace(empty, home=home, environ=environ)


def files(bullpen: Bullpen) -> dict[str, str]:
    """What is set: the settings, and who is there. Nothing is made by looking."""
    found = {}
    settings = bullpen.home / "settings.toml"
    if settings.exists():
        found["settings"] = settings.read_text()
    if (bullpen.home / "bullpen.db").exists():
        with direct(bullpen) as store:
            for table in (AGENTS, TEAMS, CUSTOM_PROVIDERS):
                found[table.name] = str(rows(store, table))
    return found


def test_without_a_terminal_it_says_how_to_do_without_questions(new: Bullpen) -> None:
    result = new("setup")
    assert result.status == 2
    assert "bullpen setup --no-input --provider claude" in result.err
    assert new("setup", "--json").status == 2
    assert files(new) == {}


def test_by_itself_it_makes_all_there_is_to_make_and_twice_is_as_once(new: Bullpen) -> None:
    given = ("--provider", "claude", "--agent", "coder", "--team", "dev", "--member", "reviewer")
    made = new.ok(*BY_ITSELF, *given, "--json", BULLPEN_ANTHROPIC_API_KEY=GOOD)
    assert made.out.count("\n") == 1
    assert (made.json["agent"], made.json["provider"], made.json["team"]) == (
        *("coder", "claude", "dev"),
    )
    assert made.json["probe"]["answer"] == "pong"
    assert made.json["settings"] == ["default_agent"]
    assert made.json["test"] is None
    before = files(new)
    assert 'default_agent = "coder"' in before["settings"]
    again = new.ok(*BY_ITSELF, *given, "--json", BULLPEN_ANTHROPIC_API_KEY=GOOD)
    assert again.json["changed"] == []
    assert "Nothing changed" in new.ok(*BY_ITSELF).out
    assert files(new) == before


def test_a_provider_that_does_not_answer_is_refused_and_nothing_is_made(new: Bullpen) -> None:
    refused = new(*BY_ITSELF, "--provider", "claude")
    assert refused.status == 1
    assert "claude does not answer: Invalid API key" in refused.err
    assert "--no-probe" in refused.err
    assert files(new) == {}
    wrong = new(*BY_ITSELF, "--model", "unheard-of", "--json", BULLPEN_ANTHROPIC_API_KEY=GOOD)
    assert wrong.status == 1
    assert "does not exist" in wrong.json["error"]
    new.ok(*BY_ITSELF, "--provider", "claude", "--no-probe")
    assert "'claude'" in files(new)["agents"]


@pytest.mark.parametrize(
    "args",
    [
        ("--provider", "nonsense"),
        ("--agent", "No Name"),
        ("--team", "assistant"),
        ("--provider", "custom:nowhere"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_is_refused_by_name(new: Bullpen, args: tuple[str, ...]) -> None:
    refused = new(*BY_ITSELF, "--no-probe", *args)
    assert refused.status in (1, 2)
    assert refused.err.splitlines()[-2].startswith("Error: ")


def test_what_is_in_the_settings_stays_there(new: Bullpen) -> None:
    new.home.mkdir()
    text = "# mine\nmax_hops = 3  # enough\nnot_a_setting = 1\n"
    (new.home / "settings.toml").write_text(text)
    new.ok(*BY_ITSELF, "--provider", "echo", "--agent", "coder")
    now = (new.home / "settings.toml").read_text()
    assert now.startswith(text)
    assert 'default_agent = "coder"' in now
    assert (new.home / "settings.toml.bak").read_text() == text
    assert stat.S_IMODE((new.home / "settings.toml").stat().st_mode) == 0o600


def test_who_is_there_is_kept_on_both_databases(on_both: Bullpen) -> None:
    on_both.ok("agent", "add", "assistant", "--provider", "http")
    on_both.ok(*BY_ITSELF, "--team", "dev")
    assert on_both.ok("agent", "show", "assistant", "--json").json["provider"] == "http"
    assert "dev" in on_both.ok("team", "list").out


def test_an_agent_sets_nothing_up(new: Bullpen) -> None:
    assert new(*BY_ITSELF, BULLPEN_RUN="coder.0").status == 1
    assert files(new) == {}


def test_a_person_sees_which_versions_are_there(new: Bullpen) -> None:
    def shown() -> str:
        with terminal(new, "setup") as person:
            return person.until("[claude]: ")

    # A version that comes too late is left out: a busy machine may need more than one look.
    eventually(lambda: "9.9.9 (Stand-in)" in shown(), "the version is shown")


def test_a_person_is_asked_and_each_answer_is_proved(new: Bullpen) -> None:
    with terminal(new, "setup") as person:
        assert "codex      not installed" in person.until("[claude]: ")
        person.type("claude\n")
        person.until("API key for claude")
        person.type(f"{BAD}\n")
        person.until("Failed (auth): Invalid API key")
        person.until("[other]: ")
        assert files(new) == {}
        person.type("again\n")
        person.until("API key for claude")
        person.type(f"{GOOD}\n")
        person.until(": pong")
        person.until("first agent [assistant]: ")
        person.type("no name\n")
        person.until("invalid name 'no name'")
        person.until("first agent [assistant]: ")
        person.type("coder\n")
        person.until("Model (leave empty for the default): ")
        person.type("unheard-of\n")
        person.until("does not exist")
        person.until("[other]: ")
        person.type("\n")
        person.until("Model (leave empty for the default): ")
        person.type("sonnet\n")
        person.until("Testing claude with sonnet")
        person.until("for none): ")
        person.type("coder\n")
        person.until("[coder]: ")
        person.type("\n")
        person.until("agent 'coder' already exists")
        person.until("for none): ")
        person.type("dev\n")
        person.until("[coder]: ")
        person.type("coder reviewer\n")
        person.until("Create @reviewer (provider: claude)?")
        person.type("y\n")
        person.until("Start it? [Y/n]: ")
        person.type("n\n")
        person.until('Next: bullpen send "@dev hello"')
        assert person.end() == 0
    assert GOOD not in person.shown
    assert BAD not in person.shown
    assert [line for line in person.shown.split("\n") if len(line) > COLUMNS] == []
    kept = files(new)
    assert f'anthropic_api_key = "{GOOD}"' in kept["settings"]
    assert 'default_agent = "coder"' in kept["settings"]
    coder = new.ok("agent", "show", "coder", "--json").json
    assert (coder["provider"], coder["model"]) == ("claude", "sonnet")
    (team,) = new.ok("team", "list", "--json").json
    assert (team["leader"], team["members"]) == ("coder", ["coder", "reviewer"])


QUESTIONS = (
    ("[claude]: ", "claude\n"),
    ("API key for claude (leave empty to use its own login): ", f"{GOOD}\n"),
    ("first agent [assistant]: ", "coder\n"),
    ("Model (leave empty for the default): ", "\n"),
    ("for none): ", "dev\n"),
    ("[coder]: ", "coder, reviewer\n"),
    ("Create @reviewer (provider: claude)? [Y/n]: ", "y\n"),
    ("Start it? [Y/n]: ", ""),
)


@pytest.mark.parametrize("last", range(len(QUESTIONS)))
def test_ctrl_c_leaves_all_as_it_was_before_the_question(new: Bullpen, last: int) -> None:
    with terminal(new, "setup") as person:
        for question, answer in QUESTIONS[:last]:
            person.until(question)
            person.type(answer)
        person.until(QUESTIONS[last][0])
        before = files(new)
        person.press(CTRL_C if last % 2 else CTRL_D)
        person.until("Stopped. The unanswered question changed nothing")
        person.until("Next: bullpen setup")
        assert person.end() == 1
    assert files(new) == before
    assert ("settings" in before) == (last > 1)
    assert ("agents" in before) == (last > 3)
    assert ("reviewer" in str(before)) == (last > 6)


def test_the_second_time_all_is_shown_and_kept(new: Bullpen) -> None:
    new.ok(*BY_ITSELF, "--provider", "echo", "--team", "dev")
    before = files(new)
    with terminal(new, "setup") as person:
        person.until("@assistant uses the provider echo. Keep it? [Y/n]: ")
        person.type("\n")
        person.until("Agent @assistant exists (provider: echo).")
        person.until("Existing teams: @dev.")
        person.until("for none): ")
        person.type("\n")
        person.until("Start it? [Y/n]: ")
        person.type("n\n")
        person.until("Nothing changed")
        assert person.end() == 0
    assert files(new) == before


def test_another_provider_for_who_is_there(new: Bullpen) -> None:
    new.ok(*BY_ITSELF, "--provider", "echo")
    with terminal(new, "setup") as person:
        person.until("Keep it? [Y/n]: ")
        person.type("n\n")
        person.until("[claude]: ")
        person.type("claude\n")
        person.until("API key for claude")
        person.type("\n")
        person.until("Invalid API key")
        person.until("[other]: ")
        person.type("anyway\n")
        person.until("first agent [assistant]: ")
        person.type("\n")
        person.until("Model (leave empty for the default): ")
        person.type("\n")
        person.until("for none): ")
        assert "'claude'" in files(new)["agents"]
        person.press(CTRL_C)
        person.until("Stopped")
        assert person.end() == 1
    assert "provider of @assistant: claude" in person.shown


def own_service(person: Terminal, key: str) -> None:
    """Answer the questions about a service of one's own."""
    for question, answer in (
        ("custom:NAME` [own]: ", "local\n"),
        ("(claude, codex) [claude]: ", "claude\n"),
        ("8000: ", "http://127.0.0.1:1\n"),
        ("API key: ", f"{key}\n"),
        ("Model (leave empty for the default): ", "\n"),
    ):
        person.until(question)
        person.type(answer)


def test_a_service_of_ones_own_is_proved_before_it_is_kept(new: Bullpen, tmp_path: Path) -> None:
    with terminal(new, "setup", TMPDIR=str(tmp_path)) as person:
        person.until("[claude]: ")
        person.type("custom\n")
        own_service(person, BAD)
        person.until("Failed (auth)")
        assert files(new) == {}
        person.until("[other]: ")
        person.type("again\n")
        own_service(person, GOOD)
        person.until(": pong")
        person.until("first agent [assistant]: ")
        assert GOOD in files(new)["custom_providers"]
        person.type("\n")
        person.until("Model (leave empty for the default): ")
        person.type("\n")
        person.until("for none): ")
        person.press(CTRL_C)
        person.until("Stopped")
        assert person.end() == 1
    assert GOOD not in person.shown
    assert new.ok("agent", "show", "assistant", "--json").json["provider"] == "custom:local"
    assert list(tmp_path.glob("bullpen-setup-*")) == []


@pytest.mark.slow
def test_it_ends_with_a_message_that_is_answered(new: Bullpen) -> None:
    try:
        made = new.ok("setup", "--yes", "--provider", "echo", "--agent", "coder", "--json")
        assert made.json["test"]["state"] == "answered"
        assert made.json["test"]["answers"][0]["message"].startswith("Say hello")
        assert new("status").status == 0
        with terminal(new, "setup") as person:
            person.until("Keep it? [Y/n]: ")
            person.type("n\n")
            person.until("[claude]: ")
            person.type("claude\n")
            person.until("API key for claude")
            person.type(f"{GOOD}\n")
            person.until("first agent [coder]: ")
            person.type("\n")
            person.until("Model (leave empty for the default): ")
            person.type("\n")
            person.until("for none): ")
            person.type("\n")
            person.until("New settings take effect after a restart. Restart processor")
            person.until("[Y/n]: ")
            person.type("\n")
            person.until("Send a test message to @coder? [Y/n]: ")
            person.type("\n")
            person.until("@coder: pong")
            assert person.end() == 0
    finally:
        new("down")
