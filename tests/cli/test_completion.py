"""Completion: a real bash completes commands, options and the ids of the home, without noise."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.core.roster.providers import CustomProvider, Harness, add_custom_provider
from tests.cli.command import LIMIT_SECONDS, PROGRAM, Bullpen
from tests.cli.open_store import company, direct

BASH = shutil.which("bash")
ASK = """
eval "$LOAD"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_bullpen_completion bullpen
printf '%s\\n' "${COMPREPLY[@]}"
"""


def ask(bullpen: Bullpen, *words: str, load: str = 'source "$SCRIPT"') -> list[str]:
    """What bash would offer for the last of these words; nothing else may be said."""
    assert BASH is not None
    program = bullpen.home / "bin" / "bullpen"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{PROGRAM[-1]}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    script = program.with_name("script")
    if not script.exists():
        script.write_text(bullpen.ok("completion", "bash").out)
    environ = bullpen.environment(
        PATH=f"{program.parent}:{os.environ['PATH']}", SCRIPT=str(script), LOAD=load
    )
    found = subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", ASK, "bash", "bullpen", *words],
        env=environ,
        capture_output=True,
        check=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert found.stderr == ""
    return found.stdout.split()


@pytest.fixture
def office(bullpen: Bullpen) -> Bullpen:
    """Three agents, a team, and services that were added."""
    with direct(company(bullpen)) as store, store.write() as tx:
        for name in ("local", "lab"):
            service = CustomProvider(
                id=name, harness=Harness.CODEX, base_url="http://127.0.0.1:9", api_key="key"
            )
            add_custom_provider(tx, service)
    return bullpen


pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash here")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("agent", "show", ""), ["coder", "stranger", "tester"]),
        (("agent", "show", "st"), ["stranger"]),
        (("agent", "pause", "coder", "t"), ["tester"]),
        (("team", "set", "dev", "--leader", "c"), ["coder"]),
        (("team", "add-member", "dev", "s"), ["stranger"]),
        (
            ("agent", "set", "coder", "--provider", "c"),
            ["claude", "codex", "custom:lab", "custom:local"],
        ),
        (("agent", "set", "coder", "--provider", "=", "ec"), ["echo"]),
        (("provider", "show", "custom", ":", "lo"), ["local"]),
        (("provider", "show", "custom", ":"), ["lab", "local"]),
        (("provider", "remove", "l"), ["lab", "local"]),
        (("agent", "re"), ["remove", "reset", "resume"]),
        (("agent", "add", "x", "--perm"), ["--permission"]),
        (("agent", "add", "x", "--model", "so"), ["sonnet"]),
        (("agent", "add", "x", "--permission", "f"), ["full"]),
        (("agent", "show", "nobody"), []),
        (("completion", "z"), ["zsh"]),
    ],
    ids=" ".join,
)
def test_bash_completes(office: Bullpen, words: tuple[str, ...], offered: list[str]) -> None:
    assert ask(office, *words) == offered


def test_bash_completes_every_command(office: Bullpen) -> None:
    found = ask(office, "", load='eval "$(bullpen completion bash)"')
    assert {"agent", "team", "queue", "up"} <= set(found)


def test_without_a_database_there_is_nothing_to_complete_and_none_is_made(empty: Bullpen) -> None:
    for words in (("agent", "show", ""), ("schedule", "pause", ""), ("queue", "show", "")):
        assert ask(empty, *words) == []
    assert [each.name for each in empty.home.iterdir()] == ["bin"]


def test_a_database_that_is_none_is_no_noise(empty: Bullpen) -> None:
    (empty.home / "bullpen.db").write_bytes(b"this is no database" * 1000)
    assert ask(empty, "agent", "show", "") == []


def modules_loaded(office: Bullpen, words: str, expected: str) -> set[str]:
    """The modules that a process loads to complete these words."""
    program = (
        "import sys; from bullpen.cli.main import main\n"
        "try:\n sys.argv[0] = 'bullpen'; main()\n"
        "finally:\n print(*sys.modules, file=sys.stderr)"
    )
    environ = office.environment(
        COMP_WORDS=words, COMP_CWORD=str(words.count(" ")), _BULLPEN_COMPLETE="bash_complete"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        check=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert expected in found.stdout
    return set(found.stderr.split())


def test_completing_the_names_of_commands_loads_none_of_them(office: Bullpen) -> None:
    loaded = modules_loaded(office, "bullpen ", "plain,status")
    assert not {"bullpen.cli.agent", "bullpen.cli.status", "sqlalchemy", "rich"} & loaded


def test_completing_the_commands_of_a_group_loads_no_other_module(office: Bullpen) -> None:
    loaded = modules_loaded(office, "bullpen agent ", "plain,show")
    assert "bullpen.cli.agent" in loaded
    others = {f"bullpen.cli.{each}" for each in ("agent_remove", "queue_actions", "team")}
    assert not {*others, "rich"} & loaded


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed_for_each_shell(empty: Bullpen, shell: str) -> None:
    script = empty.ok("completion", shell).out
    assert "_BULLPEN_COMPLETE" in script
    assert f"{shell}_complete" in script
    assert list(empty.home.iterdir()) == []
    program = shutil.which(shell)
    if program is not None:
        path = Path(empty.home, "script")
        path.write_text(script)
        subprocess.run([program, "-n", str(path)], check=True, timeout=LIMIT_SECONDS)
