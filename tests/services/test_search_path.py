"""The PATH of runs: a program that is installed after `bullpen up`, and shells with other PATHs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bullpen.core.settings import Settings
from bullpen.ops.services import SUPERVISED_VARIABLE
from bullpen.ops.services.search_path import (
    FILE,
    choose_path,
    read_recorded_path,
    record_at_start,
    record_change,
    run_environment,
    search_path,
)
from tests.cli.command import Bullpen, without_agents

NARROW = "/usr/bin:/bin"
"""As cron has it."""
ANSWER = '{"type":"result","subtype":"success","is_error":false,"result":"pong","session_id":"s"}'


def install_claude(bullpen: Bullpen) -> str:
    """Install a program that answers; returns the PATH on which it is."""
    program = bullpen.home / "later" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{ANSWER}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{program.parent}:{without_agents(os.environ['PATH'])}"


def answer(bullpen: Bullpen) -> str:
    return bullpen("send", "@coder hello").out


@pytest.fixture
def paused(up: Bullpen) -> Bullpen:
    """An agent that is paused because its program was not installed."""
    up.ok("agent", "add", "coder", "--provider", "claude")
    assert up("send", "@coder hello").status == 75
    return up


@pytest.mark.slow
def test_a_program_installed_after_up_is_found_once_its_agent_is_resumed(paused: Bullpen) -> None:
    later = install_claude(paused)
    resumed = paused.ok("agent", "resume", "coder", PATH=later)
    assert f"Agents now find claude on this shell's PATH: {paused.home}/later/claude" in resumed.err
    assert "@coder: pong" in answer(paused)

    for command in (("agent", "resume", "coder"), ("restart", "processor"), ("up",), ("restart",)):
        said = paused.ok(*command, PATH=NARROW)
        assert "Agents now find" not in said.err
        assert "@coder: pong" in answer(paused), command
    assert "lacks claude" in paused.ok("restart", "processor", PATH=NARROW).err

    listed = paused.ok("provider", "show", "claude", "--json", PATH=NARROW).json
    assert listed["path"] == f"{paused.home}/later/claude"
    found = paused("doctor", "--json", PATH=NARROW).json
    assert "provider.not_installed" not in str(
        [each for each in found["checks"] if each["state"] == "problem"]
    )


@pytest.mark.slow
def test_restart_processor_applies_a_changed_path(paused: Bullpen) -> None:
    later = install_claude(paused)
    listed = paused.ok("provider", "list", PATH=later)
    assert "claude is on this shell's PATH" in listed.err
    assert "Next: bullpen restart processor" in listed.err
    assert not paused.ok("provider", "show", "claude", "--json", PATH=later).json["installed"]
    paused.ok("restart", "processor", PATH=later)
    paused.ok("agent", "resume", "coder", PATH=NARROW)
    assert "@coder: pong" in answer(paused)
    assert "claude is on this shell's PATH" not in paused.ok("provider", "list", PATH=later).err


def directory_with(tmp_path: Path, name: str, *programs: str) -> str:
    """A directory with programs of these names."""
    made = tmp_path / name
    made.mkdir()
    for each in programs:
        (made / each).write_text("#!/bin/sh\n")
        (made / each).chmod(0o755)
    return str(made)


def test_no_program_of_agents_is_lost_or_replaced_by_a_narrow_path(tmp_path: Path) -> None:
    both = directory_with(tmp_path, "both", "claude", "codex")
    claude = directory_with(tmp_path, "claude", "claude")
    codex = directory_with(tmp_path, "codex", "codex")
    narrow = directory_with(tmp_path, "narrow")
    assert choose_path(claude, both) == both
    assert choose_path(narrow, claude) == claude
    assert choose_path(both, narrow) == both
    assert choose_path(both, codex) == both
    assert choose_path(f"{claude}:{narrow}", f"{codex}:{narrow}") == f"{claude}:{narrow}:{codex}"
    assert choose_path(claude, "") == claude


def test_services_in_the_foreground_keep_the_path_of_their_environment(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.run.mkdir()
    unit = directory_with(tmp_path, "unit")
    shell = directory_with(tmp_path, "shell", "claude")
    assert record_at_start(settings, {"PATH": unit}, foreground=True) == []
    (line,) = record_change(settings, {"PATH": shell}, ["claude"])
    assert f"Add {shell} to the PATH of the service unit" in line
    supervised = {"PATH": shell, SUPERVISED_VARIABLE: "processor"}
    assert run_environment(settings, supervised)["PATH"] == unit
    assert run_environment(settings, {"PATH": shell})["PATH"] == shell
    assert record_at_start(settings, {"PATH": shell}, foreground=False) == []
    assert run_environment(settings, supervised)["PATH"] == shell


def test_a_damaged_record_counts_as_none(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    settings.run.mkdir()
    for text in ("", "[]", '{"path": 1}', "{"):
        (settings.run / FILE).write_text(text)
        assert read_recorded_path(settings) is None
        assert search_path(settings, {"PATH": "/usr/bin"}).runs == "/usr/bin"
