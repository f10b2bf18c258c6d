"""Runs in a sandbox: what a program sees of the machine, and what it does not."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bullpen.core.message import ErrorKind
from bullpen.core.roster.agents import Agent, Permission, Sandbox
from bullpen.core.roster.programs import BUBBLEWRAP
from bullpen.processor.children.sandbox import View, bubblewrap
from bullpen.processor.providers.base import CliAdapter, Reply, RunRequest
from bullpen.processor.providers.codex import Codex
from tests.processor.turns import ANSWERS, CLAUDE, PROVIDERS, Place, living, mark
from tests.processor.working import eventually


@pytest.fixture
def office(place: Place) -> Place:
    """A home with secrets, another agent's workspace, and an agent to be run."""
    if problem := BUBBLEWRAP.problem():
        pytest.skip(problem)
    place.settings = replace(place.settings, workspace=place.path / "workspace")
    for name in ("home/files", "workspace/coder", "workspace/other", ".ssh", ".claude", ".codex"):
        (place.path / name).mkdir(parents=True)
    for name in (
        *("home/token", "home/bullpen.db", "workspace/other/AGENTS.md", ".ssh/id_rsa"),
        *(".claude/.credentials.json", ".claude/history.jsonl", "home/files/a.txt"),
        *("home/files/b.txt", ".codex/auth.json", ".codex/config.toml", "workspace/coder/mine"),
    ):
        (place.path / name).write_text(f"secret of {name}\n")
    return place


def asked(
    place: Place,
    provider: str = "claude",
    permission: Permission = Permission.FULL,
    directory: Path | None = None,
    files: Sequence[Path] = (),
) -> RunRequest:
    """A turn of an agent in a sandbox."""
    who = Agent(id="coder", provider=provider, permission=permission, sandbox=Sandbox.BUBBLEWRAP)
    home = place.settings.workspace / "coder"
    return replace(place.turn(who, home=home, directory=directory or home), files=tuple(files))


def program(place: Place, *commands: str, name: str = "claude") -> None:
    """A program that runs these commands, keeps what they say in its directory, and answers."""
    answers = "\n".join(f"echo '{line}'" for line in ANSWERS[name])
    run = "\n".join(f"{{ {each} ; }} >> seen 2>> refused" for each in commands)
    place.program(name, f"{run}\n{answers}\n")


def ran(place: Place, knows: CliAdapter = CLAUDE, request: RunRequest | None = None) -> str:
    """What the commands said in a run that succeeded."""
    found = place.run(knows, request or asked(place))
    assert isinstance(found, Reply), found
    return (place.settings.workspace / "coder" / "seen").read_text()


def test_a_sandboxed_run_sees_its_own_directory_and_nobody_elses_files(office: Place) -> None:
    program(
        office,
        "cat mine",
        "cat $here/home/token $here/home/bullpen.db $here/workspace/other/* $here/.ssh/*",
        "cat $here/.claude/history.jsonl $here/home/files/*",
        "ls -A $here/home $here/workspace",
        "cat $here/home/run/prompts/coder.md",
        "touch /usr/here && echo wrote",
        "echo kept > made",
    )
    seen = ran(office)
    assert seen.count("secret of") == 1
    assert "secret of workspace/coder/mine" in seen
    assert "You are the sheep." in seen
    assert "other" not in seen
    assert "token" not in seen
    assert "wrote" not in seen
    assert (office.settings.workspace / "coder" / "made").read_text() == "kept\n"


def test_a_sandboxed_run_sees_no_other_process(office: Place) -> None:
    program(office, "ls -d /proc/[0-9]*", f"cat /proc/{os.getpid()}/environ && echo environment")
    pids = ran(office).split()
    assert len(pids) < 6
    assert f"/proc/{os.getpid()}" not in pids
    assert "environment" not in pids


def test_a_sandboxed_run_gets_its_login_and_what_it_was_sent(office: Place) -> None:
    program(
        office,
        "cat $here/.claude/.credentials.json",
        "echo renewed > $here/.claude/.credentials.json",
        "cat $here/home/files/a.txt",
        "echo kept > $here/.claude/session",
    )
    sent = [office.path / "home/files/a.txt", office.path / "home/token"]
    seen = ran(office, request=asked(office, files=sent))
    assert seen.splitlines() == [
        "secret of .claude/.credentials.json",
        "secret of home/files/a.txt",
    ]
    assert (office.path / ".claude/.credentials.json").read_text() == "renewed\n"
    # Its sessions are its own, and are there again in its next run.
    assert not (office.path / ".claude/session").exists()
    program(office, "cat $here/.claude/session")
    assert ran(office).endswith("kept\n")


def test_a_sandboxed_codex_has_its_instructions_and_its_settings(office: Place) -> None:
    program(office, "cat $here/.codex/*.toml", name="codex")
    seen = ran(office, Codex(office.settings), asked(office, "codex"))
    assert "secret of .codex/config.toml" in seen
    assert 'developer_instructions = "You are the sheep.\\n"' in seen
    assert [each.name for each in (office.path / ".codex").iterdir()].count("config.toml") == 1
    assert not list(office.path.rglob("bullpen-*.config.toml"))


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_runs_in_a_sandbox(office: Place, name: str) -> None:
    program(office, "echo $HOME", name=name)
    assert ran(office, PROVIDERS[name], asked(office, name)) == f"{office.path}\n"


def test_an_agent_that_may_only_read_changes_nothing_in_its_sandbox(office: Place) -> None:
    answers = "\n".join(f"echo '{line}'" for line in ANSWERS["claude"])
    office.program("claude", f"echo x > mine\nrm mine\n{answers}\n")
    assert isinstance(office.run(CLAUDE, asked(office, permission=Permission.READ)), Reply)
    assert "secret" in (office.settings.workspace / "coder/mine").read_text()


def test_the_command_of_bullpen_is_not_there_in_a_sandbox(office: Place) -> None:
    program(office, "command -v bullpen || echo none", "echo $PATH")
    assert ran(office).splitlines() == ["none", office.environ["PATH"]]


def test_a_sandboxed_run_is_asked_to_end_and_leaves_nothing_behind(office: Place) -> None:
    word = mark()
    office.program(
        "claude",
        f"trap 'echo asked > ended; exit 3' INT\nexport MARK={word}\nsetsid sleep 999 &\n"
        "echo ready > ready\nwhile :; do sleep 0.05; done\n",
    )
    home = office.settings.workspace / "coder"
    thread = threading.Thread(target=office.run, args=(CLAUDE, asked(office)))
    thread.start()
    eventually((home / "ready").exists, "it runs")
    eventually(lambda: bool(living(word)), "what it started runs")
    office.stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert (home / "ended").read_text() == "asked\n"
    assert living(word) == []


def test_a_directory_that_has_the_home_in_it_is_refused(office: Place) -> None:
    program(office, "echo here")
    for directory in (office.path, office.path / "home"):
        kind, error = office.fails(CLAUDE, asked(office, directory=directory))
        assert kind is ErrorKind.SETUP
        assert f"{directory} contains a directory that the sandbox hides" in error
    assert not list(office.path.rglob("seen"))


def test_a_run_does_not_start_without_its_sandbox(
    office: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BUBBLEWRAP, "program", "")
    program(office, "echo here")
    tools = office.path / "tools"
    tools.mkdir()
    broken = tools / "bwrap"
    monkeypatch.setenv("PATH", str(tools))
    kind, error = office.fails(CLAUDE, asked(office))
    assert (kind, "bubblewrap is not installed" in error) == (ErrorKind.SETUP, True)
    assert "bullpen agent set coder --sandbox none" in error
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    kind, error = office.fails(CLAUDE, asked(office))
    assert kind is ErrorKind.SETUP
    assert "does not work on this machine: bwrap: No permissions" in error
    # It worked when it was tried, and does not when it is needed.
    monkeypatch.setattr(BUBBLEWRAP, "program", str(broken))
    kind, error = office.fails(CLAUDE, asked(office))
    assert (kind, "cannot be set up: bwrap: No permissions" in error) == (ErrorKind.SETUP, True)
    assert not list(office.path.rglob("seen"))


def test_a_home_in_a_directory_of_the_system_is_hidden_too(office: Place) -> None:
    home = Path("/opt/bullpen")
    view = View(
        directory=office.yard, writable=(office.yard,), readable=(), private=(), hidden=(home,)
    )
    argv = bubblewrap(["sh"], office.environ, view)
    hides = [at for at in range(len(argv)) if argv[at : at + 2] == ["--tmpfs", str(home)]]
    shows = [at for at in range(len(argv)) if argv[at : at + 3] == ["--ro-bind", "/opt", "/opt"]]
    assert len(hides) == 1
    assert not shows or shows[0] < hides[0]
