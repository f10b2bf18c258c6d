"""Every command says what it does, with an example that is itself a command."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from bullpen import __version__
from bullpen.cli.lazy import LazyGroup, walk_commands
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
                assert re.search(rf"^  {name}\b.*  \S", text, flags=re.MULTILINE), (path, name)
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
        ("queue", "show"),
        ("queue", "nonsense"),
        ("send", "hi", "--timeout", "soon"),
    ],
    ids=" ".join,
)
def test_what_does_not_exist_is_a_mistake_of_usage(bullpen: Bullpen, args: Path) -> None:
    result = bullpen(*args)
    assert result.status == 2
    assert result.out == ""
    said, hint = result.err.splitlines()
    assert re.fullmatch(r"Error: [a-z].*[^.]", said)
    assert re.fullmatch(r"  Run `bullpen( [a-z]+)* --help` for usage\.", hint)


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("stauts",), "status"),
        (("agents",), "agent"),
        (("agent", "shwo", "coder"), "show"),
        (("queue", "lst"), "list"),
        (("config", "chek"), "check"),
        (("team", "remov", "dev"), "remove"),
        (("run", "procesor"), "processor"),
    ],
)
def test_for_a_misspelt_command_the_right_one_is_suggested(
    empty: Bullpen, args: Path, meant: str
) -> None:
    result = empty(*args)
    assert result.status == 2
    assert f"does not exist. Did you mean '{meant}'?" in result.err


def test_a_verb_without_an_object_is_answered_with_objects(empty: Bullpen) -> None:
    result = empty("ls")
    assert result.status == 2
    assert "Error: command 'ls' needs an object\n  For example `bullpen agent ls`" in result.err


def test_an_option_before_its_command_is_answered_with_the_right_order(empty: Bullpen) -> None:
    result = empty("--json", "agent", "list")
    assert result.status == 2
    assert "option '--json' belongs after the command" in result.err
    assert "Run `bullpen agent list --json`." in result.err
    assert result.json["code"] == "usage"


@pytest.mark.parametrize(
    "path", [path for path, each in COMMANDS.items() if isinstance(each, click.Group)], ids=" ".join
)
def test_a_group_alone_prints_its_help_and_succeeds(empty: Bullpen, path: Path) -> None:
    group = COMMANDS[path]
    assert isinstance(group, LazyGroup)
    asked = empty.ok(*path, "-h").out
    assert asked == empty.ok(*path, "--help").out
    assert asked == empty.ok("help", *path).out
    if not group.invoke_without_command:
        assert asked == empty.ok(*path).out


def test_help_names_a_command_that_does_not_exist(empty: Bullpen) -> None:
    result = empty("help", "agent", "ad")
    assert (result.status, result.out) == (2, "")
    assert "Did you mean 'add'?" in result.err
    assert "has no command 'x'" in empty("help", "send", "x").err


def test_python_m_bullpen_is_the_command(empty: Bullpen) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bullpen", "version"],
        env=empty.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"bullpen {__version__}\n"


@pytest.mark.parametrize(
    ("alias", "path"),
    [
        (("ps",), ("status",)),
        (("start",), ("up",)),
        (("stop",), ("down",)),
        (("agent", "ls"), ("agent", "list")),
        (("agent", "create"), ("agent", "add")),
        (("agent", "edit"), ("agent", "set")),
        (("agent", "describe"), ("agent", "show")),
        (("team", "rm"), ("team", "remove")),
        (("key", "rm"), ("key", "revoke")),
        (("queue", "rm"), ("queue", "drop")),
        (("heartbeat", "rm"), ("heartbeat", "off")),
        (("schedule", "run"), ("schedule", "now")),
        (("schedule", "enable"), ("schedule", "resume")),
        (("db", "migrate"), ("db", "upgrade")),
        (("config", "show"), ("config", "list")),
    ],
)
def test_the_words_of_other_tools_work_and_the_help_names_them(alias: Path, path: Path) -> None:
    text = help_of(alias)
    assert text == help_of(path)
    named = re.search(r"^  Aliases: (.*)$", text, flags=re.MULTILINE)
    assert named
    assert alias[-1] in named[1].split(", ")


def test_an_alias_names_one_command_at_the_most_and_hides_none() -> None:
    for path, group in COMMANDS.items():
        if isinstance(group, LazyGroup):
            names = [each[-1] for each in COMMANDS if each[:-1] == path and each]
            aliases = [alias for name in names for alias in group.aliases_of(name)]
            assert len({*names, *aliases}) == len(names) + len(aliases), path
