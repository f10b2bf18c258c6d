"""Every command says what it does, with an example that is itself a command."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from bullpen import __version__
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli
from tests.cli.command import Bullpen

Path = tuple[str, ...]


COMMANDS = dict(walk_commands(cli))


def help_of(path: Path) -> str:
    """What `--help` prints."""
    result = CliRunner().invoke(cli, [*path, "--help"], prog_name="bullpen")
    assert result.exit_code == 0, result.output
    return result.output


def test_every_command_has_help_with_an_example(subtests: pytest.Subtests) -> None:
    for path in COMMANDS:
        with subtests.test(path=path):
            text = help_of(path)
            assert COMMANDS[path].help
            found = re.findall(r"^ *(?:echo .*\| )?bullpen ([a-z].*)$", text, flags=re.MULTILINE)
            assert found, text
            for each in found:
                words = re.findall(r'"[^"]*"|\S+', each)
                named = [
                    known for known in COMMANDS if known and list(known) == words[: len(known)]
                ]
                assert named, f"`bullpen {each}` names no command"


def test_every_option_says_what_it_is_for(subtests: pytest.Subtests) -> None:
    for path in COMMANDS:
        with subtests.test(path=path):
            for each in COMMANDS[path].params:
                if isinstance(each, click.Option):
                    assert each.help, f"{' '.join(path)} {each.opts}"


def test_every_command_is_listed_with_a_line_of_its_own() -> None:
    for path, command in COMMANDS.items():
        if isinstance(command, click.Group):
            text = help_of(path)
            inside = [each for each in COMMANDS if len(each) == len(path) + 1]
            for name, each in ((at[-1], COMMANDS[at]) for at in inside if at[:-1] == path):
                assert re.search(rf"^  {name} +\S", text, flags=re.MULTILINE), (path, name)
                assert each.get_short_help_str(limit=200)


def test_the_version_is_told(empty: Bullpen) -> None:
    assert empty.ok("--version").out.split() == ["bullpen,", "version", __version__]


def test_help_needs_no_home_and_makes_none(empty: Bullpen) -> None:
    assert "bullpen send" in empty.ok("--help").out
    assert "bullpen send" in empty.ok("--help").out
    assert "bullpen queue status" in empty.ok("queue", "status", "--help").out
    assert list(empty.home.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("send", "--nonsense"),
        ("queue", "cancel"),
        ("queue", "nonsense"),
        ("send", "hi", "--timeout", "soon"),
    ],
    ids=" ".join,
)
def test_what_does_not_exist_is_a_mistake_of_usage(bullpen: Bullpen, args: Path) -> None:
    result = bullpen(*args)
    assert result.status == 2
    assert result.out == ""
    assert "Usage:" in result.err or "Error" in result.err
