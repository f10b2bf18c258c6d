"""The rules for the help of every command: short summaries, defaults and metavars in one form."""

from __future__ import annotations

import re

import click
from click.testing import CliRunner

from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli

Path = tuple[str, ...]

COMMANDS = dict(walk_commands(cli))
SUMMARY_CHARS = 55
COLUMNS = 80

METAVARS = {
    *("ADDRESS", "AGENT", "BACKUP", "CHANNEL", "CODE", "COMMAND", "CRON", "DATE", "DAYS"),
    *("DURATION", "FILE", "REPORT"),
    "HOURS",
    *("ID", "MODEL", "N", "NAME", "PATH", "PROVIDER", "SERVICE", "SHELL", "TEAM", "TEXT", "TIME"),
    *("TYPE", "URL", "VALUE", "ZONE"),
}
"""The kinds of values: `DURATION`, and never an example such as `2h`."""

DEFAULT_IN_PROSE = re.compile(r"\bby default\b|\bdefaults? (?:is|to)\b|\bnot (?:said|given)\b")


def context_of(path: Path) -> click.Context:
    """The context in which a command's help is made."""
    context = click.Context(cli, info_name="bullpen")
    for at, name in enumerate(path, 1):
        context = click.Context(COMMANDS[path[:at]], info_name=name, parent=context)
    return context


def options() -> list[tuple[str, click.Option]]:
    """Every option that the help shows, and what its command and it are called."""
    return [
        (f"{' '.join(path)} {each.opts[-1]}", each)
        for path, command in COMMANDS.items()
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]


def test_every_summary_is_one_short_line() -> None:
    summaries = {path: (each.help or "").split("\n\n")[0] for path, each in COMMANDS.items()}
    pattern = re.compile(r"[A-Z][^;\n]*[^.\n]\.")
    wrong = {
        path: summary
        for path, summary in summaries.items()
        if len(summary.rstrip(".")) > SUMMARY_CHARS or not pattern.fullmatch(summary)
    }
    assert wrong == {}


def test_no_list_of_commands_is_cut_or_broken_in_80_columns() -> None:
    wrong = {}
    for path, command in COMMANDS.items():
        if isinstance(command, click.Group):
            result = CliRunner().invoke(
                cli, [*path, "--help"], terminal_width=COLUMNS, prog_name="bullpen"
            )
            text = result.output
            names = command.list_commands(context_of(path))
            whole = [
                each
                for each in names
                if re.search(rf"^  {each}\b.*  [A-Z].*\.$", text, re.MULTILINE)
            ]
            if whole != names:
                wrong[path] = sorted({*names} - {*whole})
    assert wrong == {}


def test_the_help_of_every_option_is_a_phrase() -> None:
    pattern = re.compile(r"(?:[A-Z]|--).*[^.]\.")
    wrong = [
        (name, each.help) for name, each in options() if not pattern.fullmatch(each.help or "")
    ]
    assert wrong == []


def test_every_default_is_shown_in_one_form() -> None:
    shown = [
        (name, each.default, each.help)
        for name, each in options()
        if DEFAULT_IN_PROSE.search(each.help or "")
        or (
            isinstance(each.default, (str, int, float))
            and each.default not in ("", False)
            and not each.show_default
        )
    ]
    assert shown == []


def test_every_metavar_is_the_kind_of_a_value() -> None:
    wrong = []
    for path, command in COMMANDS.items():
        context = context_of(path)
        for each in command.params:
            if isinstance(each.type, click.Choice) or getattr(each, "is_flag", False):
                continue
            metavar = each.make_metavar(context)
            if not set(re.findall(r"[^\[\]| .]+", metavar)) <= METAVARS:
                wrong.append((" ".join(path), each.opts[-1], metavar))
    assert wrong == []


def test_every_list_has_the_options_of_lists() -> None:
    wrong = [
        " ".join(path)
        for path, command in COMMANDS.items()
        if path[-1:] == ("list",)
        and not {"-q", "-w"} <= {option for each in command.params for option in each.opts}
    ]
    assert wrong == []


def test_every_limit_has_a_short_form() -> None:
    assert [
        name for name, each in options() if "--limit" in each.opts and "-n" not in each.opts
    ] == []
