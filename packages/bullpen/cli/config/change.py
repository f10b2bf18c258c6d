"""bullpen config set, unset and restore: the settings as they are to be."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.config.given import parse_assignments
from bullpen.cli.confirm import confirm, yes
from bullpen.cli.output import as_json, print_result, read_transaction
from bullpen.core.errors import BadSetting, BullpenError, UnknownAgent
from bullpen.core.roster.find import get_agent
from bullpen.core.services.supervisor import CORE_SERVICES, Supervisor
from bullpen.core.settings import ENVIRONMENT_PREFIX, Settings
from bullpen.core.settings_file import SettingsFile, Value, services_reading
from bullpen.core.settings_text import DATABASE_SETTING
from bullpen.core.store.url import parse_database_url


@click.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument(
    "words", metavar="NAME VALUE...", nargs=-1, required=True, shell_complete=ids.settings
)
@as_json
@click.pass_obj
def set_(settings: Settings, words: tuple[str, ...], as_json: bool) -> None:
    """Change settings, all of them or none; NAME=VALUE will do as well.

    The file keeps its comments, and is kept beside itself as settings.toml.bak. A secret is asked
    for, or read from standard input where its value is `-`.

    \b
    Examples:
      bullpen config set max_hops 5 max_cost 2.50
      bullpen config set time_zone=Europe/Berlin
      bullpen config set anthropic_api_key
      echo "$KEY" | bullpen config set openai_api_key -
    """
    require_person("change settings")
    wanted = parse_assignments(words)
    if wanted.get(DATABASE_SETTING):
        parse_database_url(wanted[DATABASE_SETTING])
    _change(settings, wanted, as_json)


@click.command()
@click.argument("names", nargs=-1, required=True, shell_complete=ids.settings)
@as_json
@click.pass_obj
def unset(settings: Settings, names: tuple[str, ...], as_json: bool) -> None:
    """Take settings back to their defaults: they are removed from the file.

    A name that no setting has is removed as well.

    \b
    Example:
      bullpen config unset max_hops max_cost
    """
    require_person("change settings")
    _change(settings, dict.fromkeys(names), as_json)


@click.command()
@yes
@as_json
@click.pass_obj
def restore(settings: Settings, yes: bool, as_json: bool) -> None:
    """Put the file back as it was before the last change; what it is now is kept in its place.

    \b
    Example:
      bullpen config restore
    """
    require_person("change settings")
    file = _file(settings)
    if not file.backup.exists():
        raise BadSetting(f"there is no {file.backup}", hint="It is made with the first change.")
    confirm(f"Put {file.backup} in the place of {file.path}", yes)
    before = _values(file)
    with file.locked():
        file.restore()
    _tell(settings, file, before, as_json)


def _change(settings: Settings, wanted: Mapping[str, Value | None], as_json: bool) -> None:
    file = _file(settings)
    before = _values(file)
    with file.locked():
        changes = file.check(wanted)
        file.write(changes)
    if isinstance(agent := changes.get("default_agent"), str):
        _warn_unknown_agent(settings, agent)
    _tell(settings, file, before, as_json, changes)


def _file(settings: Settings) -> SettingsFile:
    """The file alone: what this shell has in its environment is not what the services have."""
    return SettingsFile(settings.home, {}, here=True)


def _values(file: SettingsFile) -> dict[str, Value]:
    return {each.name: each.value for each in file.shown()}


def _tell(
    settings: Settings,
    file: SettingsFile,
    before: Mapping[str, Value],
    as_json: bool,
    changes: Mapping[str, Value | None] | None = None,
) -> None:
    """Say what is another value now, and who has to be started anew for it."""
    after = _values(file)
    names = sorted(
        changes or (each for each in after if after[each] != before[each] and changes is None)
    )
    changed = {name: {"before": before.get(name), "after": after.get(name)} for name in names}
    restart, again = _restart(settings, names)
    document = {"changed": changed, "path": str(file.path), "restart": restart}
    lines = [_change_line(name, before, after) for name in names]
    if not names:
        so = "it is so already" if changes is not None else "the file alone is another one"
        lines, again = [f"No setting is changed: {so}."], ""
    print_result(as_json, document, *lines)
    for name in names:
        if os.environ.get(ENVIRONMENT_PREFIX + name.upper()):
            click.echo(
                f"{ENVIRONMENT_PREFIX}{name.upper()} in the environment wins over it here.",
                err=True,
            )
    if again:
        click.echo(again, err=True)


def _change_line(name: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> str:
    if name not in after:
        return f"{name} is removed"
    if before[name] == after[name]:  # as with a secret, of which only the mask is seen
        return f"{name} is set" if after[name] else f"{name} is as by default"
    return f"{name} = {_shown(after[name])} (before: {_shown(before[name])})"


def _shown(value: Value) -> str:
    return str(value) if value != "" else "nothing"


def _restart(settings: Settings, names: list[str]) -> tuple[list[str], str]:
    """The services that read one of these when they start, and what to do about it."""
    supervisor = Supervisor(settings)
    running: list[str] = []
    with suppress(BullpenError):
        if supervisor.alive():
            running = [each["name"] for each in supervisor.services()]
    concerned = services_reading(names, running or CORE_SERVICES)
    if not running:
        return concerned, ""
    if len(concerned) == len(running):
        return concerned, "It counts after a restart. Next: bullpen restart"
    return concerned, f"It counts after a restart. Next: bullpen restart {' '.join(concerned)}"


def _warn_unknown_agent(settings: Settings, agent: str) -> None:
    """Say it if nobody of this name is there; without a database nobody can tell."""
    try:
        with read_transaction(settings) as tx:
            get_agent(tx, agent)
    except UnknownAgent:
        click.echo(f"There is no agent {agent!r} yet. Next: bullpen agent add {agent}", err=True)
    except (BullpenError, OSError):
        return
