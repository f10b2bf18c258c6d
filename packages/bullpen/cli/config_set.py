"""bullpen config set, unset and restore: commands that change settings.toml."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, read_transaction
from bullpen.cli.errors import UsageError
from bullpen.cli.options import yes
from bullpen.cli.output import confirm
from bullpen.core.errors import BadSetting, BullpenError, UnknownAgent
from bullpen.core.roster.agents import get_agent
from bullpen.core.settings import Settings
from bullpen.core.settings.file import SettingsFile, Value, services_reading, setting_variable
from bullpen.core.settings.parse import DATABASE_SETTING, UNKNOWN_SETTING_HINT, load_lenient
from bullpen.core.settings.values import is_secret, setting_exists
from bullpen.core.store.open import parse_database_url
from bullpen.core.text import describe_unknown
from bullpen.ops.services.supervisor import CORE_SERVICES, Supervisor

STANDARD_INPUT = "-"


@command(people_only="change settings", ignore_unknown_options=True)
@click.argument(
    "words", metavar="NAME VALUE...", nargs=-1, required=True, shell_complete=completion.settings
)
def set_(settings: Settings, words: tuple[str, ...]) -> Result:
    """Change settings in settings.toml.

    If one value is invalid, nothing is changed. NAME=VALUE works as well. Comments in the file
    stay, and the previous file is kept as settings.toml.bak. The command asks for the value of a
    secret; with the value `-` it reads it from standard input.

    \b
    Examples:
      bullpen config set max_hops 5 max_cost 2.50
      bullpen config set time_zone=Europe/Berlin
      bullpen config set anthropic_api_key
      bullpen config set slack.default_agent coder
      echo "$KEY" | bullpen config set openai_api_key -
    """
    values = parse_assignments(words, _open_file(settings))
    if values.get(DATABASE_SETTING):
        parse_database_url(values[DATABASE_SETTING])
    return _change(settings, values)


@command(people_only="change settings")
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.settings
)
def unset(settings: Settings, names: tuple[str, ...]) -> Result:
    """Reset settings to their defaults.

    They are removed from settings.toml, unknown names as well.

    \b
    Example:
      bullpen config unset max_hops max_cost
    """
    return _change(settings, dict.fromkeys(names))


@command(people_only="change settings")
@yes
def restore(settings: Settings, yes: bool) -> Result:
    """Undo the last change of settings.toml.

    The file and settings.toml.bak are swapped, so a second `restore` undoes the first.

    \b
    Example:
      bullpen config restore
    """
    file = _open_file(settings)
    if not file.backup.exists():
        raise BadSetting(
            f"{file.backup} does not exist", hint="It is created by the first change of a setting."
        )
    confirm(f"Replace {file.path} with {file.backup}", yes)
    before = _values(file)
    with file.locked():
        file.restore()
    after = _values(file)
    names = sorted(each for each in after if after[each] != before[each])
    empty = "No setting changed; the file was restored."
    return _changed(settings, file, names, before, empty)


def parse_assignments(words: Sequence[str], file: SettingsFile) -> dict[str, str]:
    """Return the settings that a list of `NAME VALUE` or `NAME=VALUE` assigns."""
    values: dict[str, str] = {}
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not setting_exists(name):
            unknown = describe_unknown("setting", name, file.names())
            raise BadSetting(unknown, hint=UNKNOWN_SETTING_HINT)
        if name in values:
            raise click.UsageError(f"{name} is given twice")
        if is_secret(name):
            values[name] = _secret(name, value if equals else _secret_argument(rest))
        elif equals:
            values[name] = value
        elif rest:
            values[name] = _plain(name, rest.pop(0))
        else:
            raise click.UsageError(f"missing value for {name}")
    return values


def _secret_argument(rest: list[str]) -> str:
    """Take the word after a secret's name as its value, unless it is the next setting's name."""
    following = rest[0].partition("=")[0] if rest else ""
    return rest.pop(0) if rest and not setting_exists(following) else STANDARD_INPUT


def _secret(name: str, value: str) -> str:
    if value != STANDARD_INPUT:
        raise UsageError(
            f"{name} is a secret and cannot be given as an argument, because it would be in the "
            "shell's history and in the list of processes",
            f"Run `bullpen config set {name}` to be asked for it, or add `-` to read it from "
            "standard input.",
        )
    return read_secret(name)


def read_secret(name: str) -> str:
    """Ask for a secret at a terminal, or read it from standard input."""
    if sys.stdin.isatty():
        asked: str = click.prompt(name, hide_input=True, err=True)
        return asked.strip()
    return read_value(name)


def _plain(name: str, value: str) -> str:
    return read_value(name) if value == STANDARD_INPUT and not sys.stdin.isatty() else value


def read_value(name: str) -> str:
    """Read a value from a line of standard input."""
    line = sys.stdin.readline().strip()
    if not line:
        raise click.UsageError(f"standard input has no value for {name}")
    return line


def _change(settings: Settings, values: Mapping[str, Value | None]) -> Result:
    file = _open_file(settings)
    before = _values(file, values)
    with file.locked():
        changes = file.check(values)
        file.write(changes)
    notes = []
    if changes.keys() & {"owner_channel", "owner_id"}:
        notes += _owner_notes()
    if isinstance(agent := changes.get("default_agent"), str):
        notes += _unknown_agent_notes(settings, agent)
    empty = "Nothing changed: the settings have these values already."
    return _changed(settings, file, sorted(changes), before, empty, notes)


def _open_file(settings: Settings) -> SettingsFile:
    """Open the file without the environment, in which the services do not run."""
    return SettingsFile(settings.home, {}, here=True)


def _values(file: SettingsFile, names: Iterable[str] = ()) -> dict[str, Value]:
    """Return the values of all settings, and of the named ones of channels that are not set up."""
    values = {each.name: each.value for each in file.list_settings()}
    for name in names:
        if name not in values and (view := file.find_setting(name)):
            values[name] = view.value
    return values


def _changed(
    settings: Settings,
    file: SettingsFile,
    names: list[str],
    before: Mapping[str, Value],
    empty: str,
    notes: Sequence[str] = (),
) -> Result:
    """Return the changes, and the services that must be restarted."""
    after = _values(file, names)
    changed = {name: {"before": before.get(name), "after": after.get(name)} for name in names}
    restart, restart_notes = _services_to_restart(settings, names)
    return Result(
        {"changed": changed, "path": str(file.path), "restart": restart},
        [_describe_change(name, before, after) for name in names] or empty,
        notes=[*notes, *_environment_notes(names), *(restart_notes if names else [])],
    )


def _environment_notes(names: Sequence[str]) -> Iterator[str]:
    for variable in map(setting_variable, names):
        if os.environ.get(variable):
            yield f"Warning: {variable} in the environment overrides it in this shell."


def _describe_change(name: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    if name not in after:
        return f"Removed {name}."
    if before[name] == after[name]:  # as with a secret, of which only the mask is seen
        return f"Set {name}." if after[name] else f"Reset {name} to its default."
    return f"{name} = {_format_value(after[name])} (was: {_format_value(before[name])})"


def _format_value(value: Value) -> str:
    return str(value) if value != "" else "(empty)"


def _services_to_restart(settings: Settings, names: list[str]) -> tuple[list[str], list[str]]:
    """Return the services that read one of these settings when they start, and what to do."""
    supervisor = Supervisor(settings)
    running: list[str] = []
    with suppress(BullpenError):
        if supervisor.alive():
            running = [each["name"] for each in supervisor.services()]
    services = services_reading(names, running or CORE_SERVICES)
    if not running or not services:
        return services, []
    if len(services) == len(running):
        return services, ["Takes effect after a restart. Next: bullpen restart"]
    return services, [f"Takes effect after a restart. Next: bullpen restart {' '.join(services)}"]


def _owner_notes() -> list[str]:
    """Warn if notices cannot reach the owner with the new settings."""
    from bullpen.core.inspect.channels import owner_channel_problem  # loads the models

    problem = owner_channel_problem(load_lenient(os.environ)[0])
    return [f"Warning: {problem}. Next: bullpen channel list --all"] if problem else []


def _unknown_agent_notes(settings: Settings, agent: str) -> list[str]:
    """Warn if the default agent does not exist, as far as the database can be read."""
    try:
        with read_transaction(settings) as tx:
            get_agent(tx, agent)
    except UnknownAgent:
        return [f"Warning: agent {agent!r} does not exist. Next: bullpen agent add {quote(agent)}"]
    except (BullpenError, OSError):
        pass
    return []
