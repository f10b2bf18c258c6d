"""A child sees what it needs, and nobody else's secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.roster.providers import Harness
from bullpen.processor.children.child import Launcher
from bullpen.processor.providers.base import Reply
from bullpen.processor.providers.claude import Claude
from bullpen.processor.providers.codex import CUSTOM_KEY, Codex
from bullpen.processor.providers.command_line import COMMON, CliProvider, child_environment
from tests.processor.turns import (
    ANSWERS,
    CLAUDE,
    PROVIDERS,
    Place,
    agent,
    custom,
    ignore,
    launching,
    reply,
)

HERE = str(Path(sys.executable).parent)


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """One fork server for all."""
    with launching() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, launcher: Launcher) -> Iterator[Place]:
    """A scratch directory."""
    with Place(tmp_path, launcher) as made:
        yield made


def test_only_what_is_named_passes() -> None:
    environ = {
        **{"HOME": "/home", "LC_ALL": "C", "XDG_DATA_HOME": "/data", "https_proxy": "p"},
        **{"SLACK_BOT_TOKEN": "s", "MY_HOME": "m", "LC": "l", "HOMES": "h", "X": "x"},
        **{"CLAUDE_CONFIG_DIR": "c", "CLAUDES": "c", "EXACT": "e", "EXACTLY": "e"},
    }
    seen = child_environment(environ, ("CLAUDE_*", "EXACT"), {})
    assert seen.keys() - {"PATH"} == {
        *("HOME", "LC_ALL", "XDG_DATA_HOME", "https_proxy", "CLAUDE_CONFIG_DIR", "EXACT"),
    }


def test_nothing_of_bullpens_and_nothing_that_looks_like_a_secret_is_common() -> None:
    for name in ("BULLPEN_HOME", "BULLPEN_DATABASE_URL", "API_KEY", "TOKEN", "AWS_SECRET"):
        assert name not in child_environment({name: "secret"}, (), {})
    assert "*" not in COMMON


def test_a_runs_own_goes_before_what_is_inherited() -> None:
    seen = child_environment({"HOME": "/theirs", "LANG": "C"}, (), {"HOME": "/own", "OWN": "1"})
    assert (seen["HOME"], seen["LANG"], seen["OWN"]) == ("/own", "C", "1")


def test_what_is_hidden_does_not_pass_unless_a_person_says_so() -> None:
    environ = {"A_KEY": "1", "A_PLACE": "2", "A_OLD_KEY": "3", "B_KEY": "4"}
    seen = child_environment(environ, ("A_*",), {}, hidden=("A_KEY", "A_OLD_*"))
    assert seen.keys() - {"PATH"} == {"A_PLACE"}
    seen = child_environment(environ, ("A_*",), {}, hidden=("A_*",), more=("A_KEY", "B_*"))
    assert seen.keys() - {"PATH"} == {"A_KEY", "B_KEY"}


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("/a:/b", f"/a:/b:{HERE}"),
        (None, f"/usr/local/bin:/usr/bin:/bin:{HERE}"),
        ("", f"/usr/local/bin:/usr/bin:/bin:{HERE}"),
    ],
)
def test_bullpens_command_is_found_and_what_is_in_the_directory_is_not(
    path: str | None, seen: str
) -> None:
    environ = {} if path is None else {"PATH": path}
    assert child_environment(environ, (), {})["PATH"] == seen


SECRETS = {
    "SLACK_BOT_TOKEN": "slack-secret",
    "TWILIO_AUTH_TOKEN": "twilio-secret",
    "BULLPEN_DATABASE_URL": "database-secret",
    "BULLPEN_OPENAI_API_KEY": "bullpen-secret",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
    "GITHUB_TOKEN": "github-secret",
    "PYTHONPATH": "path-secret",
    "ANTHROPIC_API_KEY": "anthropic-secret",
    "ANTHROPIC_AUTH_TOKEN": "anthropic-secret",
    "ANTHROPIC_CUSTOM_HEADERS": "anthropic-secret",
    "CLAUDE_CODE_OAUTH_TOKEN": "anthropic-secret",
    "OPENAI_API_KEY": "openai-secret",
    "CODEX_API_KEY": "openai-secret",
    "OPENROUTER_API_KEY": "router-secret",
}
OWN = {
    "claude": {"anthropic-secret"},
    "codex": {"openai-secret"},
    "opencode": {"anthropic-secret", "openai-secret", "router-secret"},
}


def leaked(place: Place) -> set[str]:
    """The secrets that the last run could see."""
    return set(place.seen.values()) & set(SECRETS.values())


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_program_sees_the_secrets_of_its_own_service_alone(place: Place, name: str) -> None:
    place.environ |= {**SECRETS, "LANG": "C.UTF-8", "https_proxy": "http://proxy"}
    place.prints(name, *ANSWERS[name])
    assert reply(place, PROVIDERS[name]).text == "Hello!"
    assert leaked(place) == OWN[name]
    assert place.seen["BULLPEN_HOME"] == str(place.settings.home)
    assert place.seen["BULLPEN_RUN"] == ""
    assert (place.seen["LANG"], place.seen["https_proxy"]) == ("C.UTF-8", "http://proxy")


def test_the_commands_of_its_skills_know_the_settings_that_are_no_secrets(place: Place) -> None:
    place.environ |= {
        "BULLPEN_TIME_ZONE": "Asia/Kathmandu",
        "BULLPEN_OWNER_CHANNEL": "telegram",
        "BULLPEN_ANTHROPIC_API_KEY": "bullpen-secret",
        "BULLPEN_DATABASE_URL": "postgresql://ann:bullpen-secret@db/bullpen",
    }
    place.prints("claude", *ANSWERS["claude"])
    assert isinstance(reply(place, PROVIDERS["claude"]), Reply)
    assert place.seen["BULLPEN_TIME_ZONE"] == "Asia/Kathmandu"
    assert place.seen["BULLPEN_OWNER_CHANNEL"] == "telegram"
    assert not [value for value in place.seen.values() if "bullpen-secret" in value]


@pytest.mark.parametrize("harness", Harness)
def test_the_program_of_another_service_sees_that_services_key_alone(
    place: Place, harness: Harness
) -> None:
    settings = replace(
        place.settings,
        anthropic_api_key="our-secret",
        anthropic_oauth_token="our-secret",
        openai_api_key="our-secret",
    )
    place.environ |= {**SECRETS, "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/c"}
    place.prints(harness.value, *ANSWERS[harness.value])
    knows = Claude(settings) if harness is Harness.CLAUDE else Codex(settings)
    asked = place.turn(agent(provider="custom:other"), custom=custom(harness))
    assert isinstance(place.run(knows, asked), Reply)
    assert leaked(place) == set()
    assert "our-secret" not in place.seen.values()
    key = "ANTHROPIC_AUTH_TOKEN" if harness is Harness.CLAUDE else CUSTOM_KEY
    assert {name for name, value in place.seen.items() if value == "own"} == {key}
    where = "CLAUDE_CONFIG_DIR" if harness is Harness.CLAUDE else "CODEX_HOME"
    assert place.seen[where] == "/c"


def test_a_key_of_the_settings_is_the_only_one(place: Place) -> None:
    settings = replace(place.settings, anthropic_oauth_token="token", anthropic_api_key="key")
    place.environ |= SECRETS
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, Claude(settings)).text == "Hello!"
    assert place.seen["CLAUDE_CODE_OAUTH_TOKEN"] == "token"
    assert "ANTHROPIC_API_KEY" not in place.seen
    assert "ANTHROPIC_AUTH_TOKEN" not in place.seen


@pytest.mark.parametrize(
    ("url", "passes"),
    [
        ("", False),
        ("postgresql+psycopg://ada@/bullpen", True),
        ("postgresql+psycopg://ada:secret@localhost/bullpen", False),
    ],
)
def test_its_commands_find_the_database_if_no_password_says_where(
    place: Place, url: str, passes: bool
) -> None:
    place.settings = replace(place.settings, database_url=url)
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE).text == "Hello!"
    assert place.seen.get("BULLPEN_DATABASE_URL") == (url if passes else None)


def test_what_a_person_lets_pass_passes(place: Place) -> None:
    place.settings = replace(place.settings, pass_environment="AWS_*, GITHUB_TOKEN,,")
    place.environ |= SECRETS
    place.prints("claude", *ANSWERS["claude"])
    assert reply(place, CLAUDE).text == "Hello!"
    assert leaked(place) == {"aws-secret", "github-secret", "anthropic-secret"}


def test_the_environment_is_the_processors_unless_said_otherwise(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.prints("claude", *ANSWERS["claude"])
    monkeypatch.setenv("PATH", f"{place.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "slack-secret")
    line = CliProvider(CLAUDE, place.launcher, place.settings)
    assert isinstance(line.run(place.turn(), place.stop, ignore), Reply)
    assert leaked(place) == set()
