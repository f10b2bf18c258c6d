"""The PATH of runs: a program that is installed after `bullpen up`, and shells with other PATHs."""

from __future__ import annotations

import os
import stat

import pytest

from tests.cli.command import Bullpen, without_agents

pytestmark = pytest.mark.slow

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
