"""bullpen provider, model and agent provider: what answers for whom, and who is given another."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import LIMIT_SECONDS, Bullpen
from tests.cli.open_store import company
from tests.processor.working import eventually

SERVICE = ("local", "--harness", "claude", "--base-url", "http://127.0.0.1:9/v1")
KEY = "a-secret-key"


@pytest.fixture
def office(on_both: Bullpen) -> Bullpen:
    """Three agents with echo, and a service that was added."""
    company(on_both).ok("provider", "add", *SERVICE, stdin=f"{KEY}\n")
    return on_both


def answering(office: Bullpen) -> dict[str, tuple[str, str]]:
    """What answers for each agent, and with which model."""
    found = office.ok("agent", "list", "--json").json
    return {each["id"]: (each["provider"], each["model"]) for each in found}


def provider(office: Bullpen, name: str, **environ: str) -> Any:  # noqa: ANN401 - a document
    return office.ok("provider", "show", name, "--json", **environ).json


def program(home: Path, name: str, script: str) -> str:
    """Install a program; gives the search path on which it is found."""
    path = home / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"{path.parent}:{os.environ['PATH']}"


def test_all_agents_of_a_provider_are_given_another(office: Bullpen) -> None:
    office.ok("provider", "use", "claude", "--agent", "stranger", "--model", "opus")
    looked = office.ok("provider", "use", "codex", "--from", "echo", "--dry-run")
    assert looked.out.splitlines() == [
        "Would change @coder: codex (before: echo)",
        "Would change @tester: codex (before: echo)",
    ]
    asked = office("provider", "use", "codex", "--from", "echo")
    assert (asked.status, "Change 2 agents: add --yes" in asked.err) == (2, True)
    assert answering(office)["coder"] == ("echo", "")
    done = office.ok("provider", "use", "codex", "--from", "echo", "--yes", "--json").json
    assert [each["agent"] for each in done["agents"]] == ["coder", "tester"]
    assert answering(office) == {
        "coder": ("codex", ""),
        "stranger": ("claude", "opus"),
        "tester": ("codex", ""),
    }


def test_another_provider_knows_other_models(office: Bullpen) -> None:
    office.ok("agent", "provider", "coder", "anthropic", "--model", "opus")
    assert office.ok("agent", "provider", "coder").out == "@coder: claude with opus\n"
    office.ok("agent", "provider", "coder", "codex")
    assert answering(office)["coder"] == ("codex", "")
    told = office.ok("agent", "set", "coder", "--provider", "claude", "--model", "opus").err
    assert "--model ''" not in told
    told = office.ok("agent", "set", "coder", "--provider", "codex").err
    assert "bullpen agent set coder --model ''" in told
    assert answering(office)["coder"] == ("codex", "opus")


def test_a_model_is_given_to_agents_by_name_or_by_provider(office: Bullpen) -> None:
    office.ok("model", "set", "small", "--agent", "coder")
    office.ok("model", "set", "large", "--provider", "echo", "--yes")
    assert set(answering(office).values()) == {("echo", "large")}
    same = office.ok("model", "set", "large", "--provider", "echo")
    assert same.out == "Nothing to change.\n"
    office.ok("model", "set", "", "--agent", "coder")
    assert office.ok("model", "list", "--json").json == [
        {"provider": "echo", "model": "", "agents": ["coder"]},
        {"provider": "echo", "model": "large", "agents": ["stranger", "tester"]},
    ]


REFUSED: list[tuple[tuple[str, ...], int]] = [
    (("agent", "add", "x", "--provider", "nonsense"), 2),
    (("agent", "set", "coder", "--provider", "custom:nonsense"), 2),
    (("agent", "set", "coder", "--model", "--resume"), 2),
    (("agent", "set", "coder", "--model", "two words"), 2),
    (("agent", "provider", "coder", "nonsense"), 2),
    (("agent", "provider", "nobody", "echo"), 1),
    (("provider", "use", "nonsense", "--agent", "coder"), 2),
    (("provider", "use", "codex", "--from", "nonsense"), 1),
    (("provider", "use", "codex", "--agent", "nobody"), 1),
    (("provider", "use", "codex"), 2),
    (("provider", "use", "codex", "--agent", "coder", "--from", "echo"), 2),
    (("model", "set", "-c", "--agent", "coder"), 2),
    (("model", "set", "x"), 2),
    (("provider", "show", "nonsense"), 1),
    (("provider", "remove", "claude"), 1),
    (("provider", "set", "local", "--base-url", "https://elsewhere.example"), 2),
]


def test_what_cannot_be_is_refused_and_changes_nothing(
    office: Bullpen, subtests: pytest.Subtests
) -> None:
    before = (answering(office), provider(office, "local"))
    for args, status in REFUSED:
        with subtests.test(" ".join(args)):
            result = office(*args)
            assert (result.status, result.out) == (status, "")
            assert (answering(office), provider(office, "local")) == before


def test_a_service_is_changed_and_its_key_is_never_shown(office: Bullpen) -> None:
    office.ok("provider", "set", "custom:local", "--model", "glm", "--name", "Our own")
    found = provider(office, "local")
    assert (found["model"], found["name"], found["program"]) == ("glm", "Our own", "claude")
    moved = ("provider", "set", "local", "--base-url", "https://elsewhere.example", "--key")
    said = office.ok(*moved, stdin="another-key\n")
    assert provider(office, "local")["base_url"] == "https://elsewhere.example"
    shown = said.out + office.ok("provider", "show", "local").out
    assert KEY not in shown
    assert "another-key" not in shown


def test_who_used_a_service_that_was_removed_is_named_and_given_another(office: Bullpen) -> None:
    office.ok("provider", "use", "custom:local", "--agent", "coder")
    assert office.ok("provider", "remove", "local", "--json").json == {
        "removed": ["custom:local"],
        "agents": ["coder"],
    }
    listed = office.ok("provider", "list").out
    assert "custom:local  does not exist" in listed
    office.ok("provider", "use", "echo", "--from", "custom:local", "--yes")
    assert "custom:local" not in office.ok("provider", "list").out
    assert answering(office)["coder"] == ("echo", "")


def test_versions_are_what_the_programs_say_of_themselves(office: Bullpen) -> None:
    path = program(office.home, "codex", "echo 'codex-cli 1.2.3'; echo more")
    found = provider(office, "codex", PATH=path)
    assert (found["installed"], found["path"]) == (True, str(office.home / "bin" / "codex"))

    # A version that comes too late is left out: a busy machine may need more than one look.
    def told(*args: str) -> bool:
        return "codex-cli 1.2.3" in office.ok("provider", *args, PATH=path).out

    eventually(lambda: told("show", "codex", "--json"), "its version is shown")
    eventually(lambda: told("list"), "its version is listed")


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", "printf '\\033[31m\\000'"])
def test_a_program_that_says_nothing_sensible_is_only_installed(
    office: Bullpen, script: str
) -> None:
    path = program(office.home, "codex", script)
    assert "\x1b" not in office.ok("provider", "show", "codex", PATH=path).out
    assert provider(office, "codex", PATH=path)["installed"] is True


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_program_that_hangs_is_waited_for_no_longer_than_others(office: Bullpen) -> None:
    hangs = f"sleep {2 * LIMIT_SECONDS} & wait"
    program(office.home, "opencode", hangs)
    path = program(office.home, "codex", hangs)
    began = time.monotonic()
    found = {
        each["provider"]: each for each in office.ok("provider", "list", "--json", PATH=path).json
    }
    assert time.monotonic() - began < 30
    assert (found["codex"]["installed"], found["codex"]["version"]) == (True, "")


def test_an_agent_changes_none_of_it(office: Bullpen) -> None:
    for args in (
        ("provider", "use", "codex", "--agent", "coder"),
        ("provider", "remove", "local"),
        ("model", "set", "x", "--agent", "coder"),
        ("agent", "provider", "coder", "codex"),
        ("agent", "set", "coder", "--permission", "full"),
        ("agent", "remove", "tester"),
        ("team", "remove", "dev"),
        ("key", "add", "mine", "--scope", "admin"),
        ("key", "list"),
        ("open", "--print"),
    ):
        result = office(*args, BULLPEN_RUN="coder.0")
        assert (result.status, result.out) == (1, ""), args
        assert "Ask a person" in result.err
