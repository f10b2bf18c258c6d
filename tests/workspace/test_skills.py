"""The skills that come with every agent name commands that exist, and that its runs may use."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from bullpen.core.roster.agents import Permission
from bullpen.core.settings import Settings
from bullpen.core.workspace.templates import templates
from bullpen.processor.providers.claude import Claude
from tests.processor.turns import agent, turn

COMMANDS = {" ".join(path): command for path, command in walk_commands(cli, "bullpen")}
SKILLS = {name: text for name, text in templates() if name.startswith("skills/")}
LINES = [
    (name, line.strip())
    for name, text in SKILLS.items()
    for line in text.splitlines()
    if line.startswith("    bullpen ")
]


def command_of(line: str) -> tuple[str, click.Command]:
    """The command that a line calls, and its name."""
    words = shlex.split(line)
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if name in COMMANDS:
            return name, COMMANDS[name]
    raise AssertionError(line)


@pytest.mark.parametrize(("name", "line"), LINES)
def test_a_command_that_a_skill_names_is_one_with_its_options(name: str, line: str) -> None:
    _, command = command_of(line)
    assert not isinstance(command, click.Group), f"{name}: {line}"
    known = {each for parameter in command.params for each in parameter.opts}
    assert {each for each in shlex.split(line) if each.startswith("--")} <= known


def test_what_an_agent_needs_to_schedule_itself_is_said() -> None:
    text = SKILLS["skills/schedule/SKILL.md"]
    used = {command_of(line)[0] for name, line in LINES if name == "skills/schedule/SKILL.md"}
    assert {f"bullpen schedule {each}" for each in ("add", "list", "pause", "remove")} <= used
    add = {each for option in COMMANDS["bullpen schedule add"].params for each in option.opts}
    assert set(re.findall(r"`(--[a-z]+)", text)) <= add
    assert "without this conversation" in text
    assert re.match(r"---\nname: schedule\ndescription: .{20,120}\n---\n", text)


@pytest.mark.parametrize("line", [line for _, line in LINES])
def test_claude_may_run_what_the_skills_name_without_asking(tmp_path: Path, line: str) -> None:
    asked = turn(agent(permission=Permission.EDIT))
    argv = Claude(Settings(home=tmp_path)).command(asked, tmp_path / "system.md").argv
    allowed = argv[argv.index("--allowedTools") + 1].split(",")
    prefixes = [each.removeprefix("Bash(").removesuffix(":*)") for each in allowed]
    assert any(line.startswith(f"{prefix} ") for prefix in prefixes)
