"""What `bullpen config set` is given: names with their values, secrets never among the words."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bullpen.core.errors import BadSetting
from bullpen.core.settings import DEFAULTS, is_secret
from bullpen.core.settings_problems import hint_for

STANDARD_INPUT = "-"


def parse_assignments(words: Sequence[str]) -> dict[str, str]:
    """The settings that these words name: `NAME VALUE` or `NAME=VALUE`, one after another."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in DEFAULTS:
            raise BadSetting(f"there is no setting {name[:60]!r}", hint=hint_for(name))
        if name in found:
            raise click.UsageError(f"{name} is given twice.")
        if is_secret(name):
            found[name] = _secret(name, value if equals else _secret_argument(rest))
        elif equals:
            found[name] = value
        elif rest:
            found[name] = _plain(name, rest.pop(0))
        else:
            raise click.UsageError(f"Give a value for {name}.")
    return found


def _secret_argument(rest: list[str]) -> str:
    """The word after a secret's name, if it is meant as its value: a name may follow at once."""
    following = rest[0].partition("=")[0] if rest else ""
    return rest.pop(0) if rest and following not in DEFAULTS else STANDARD_INPUT


def _secret(name: str, value: str) -> str:
    if value != STANDARD_INPUT:
        raise click.UsageError(
            f"{name} is a secret: what stands on the command line is in the shell's history, and "
            f"every program sees it. Leave the value away to be asked for it, or give it on "
            f"standard input with `{name} -`."
        )
    if sys.stdin.isatty():
        asked: str = click.prompt(name, hide_input=True, err=True)
        return asked.strip()
    return _read_value(name)


def _plain(name: str, value: str) -> str:
    return _read_value(name) if value == STANDARD_INPUT and not sys.stdin.isatty() else value


def _read_value(name: str) -> str:
    line = sys.stdin.readline().strip()
    if not line:
        raise click.UsageError(f"There is nothing on standard input for {name}.")
    return line
