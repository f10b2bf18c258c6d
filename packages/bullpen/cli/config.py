"""bullpen config: show, set, unset and check settings."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction, require_person
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.main import print_problems
from bullpen.cli.output import as_json, confirm, print_json, print_result, print_table, yes
from bullpen.core.errors import BadSetting, BullpenError, UnknownAgent
from bullpen.core.roster.agents import get_agent
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX, Settings, is_secret
from bullpen.core.settings.file import (
    SettingsFile,
    SettingSource,
    SettingView,
    Value,
    services_reading,
)
from bullpen.core.settings.parse import (
    DATABASE_SETTING,
    SettingProblem,
    SettingsWithoutDatabase,
    hint_for,
    load_lenient,
)
from bullpen.core.store.open import parse_database_url
from bullpen.ops.services.supervisor import CORE_SERVICES, Supervisor


@click.group(
    cls=LazyGroup,
    modules={
        "check": "bullpen.cli.config:check",
        "get": "bullpen.cli.config:get",
        "list": "bullpen.cli.config:list_",
        "path": "bullpen.cli.config:path",
        "restore": "bullpen.cli.config:restore",
        "set": "bullpen.cli.config:set_",
        "unset": "bullpen.cli.config:unset",
    },
)
@click.pass_context
def config(context: click.Context) -> None:
    """Look at the settings, change them, and check the file that they are in.

    Each stands in settings.toml in the home; a variable of the environment wins, `max_hops` as
    BULLPEN_MAX_HOPS.

    \b
    Examples:
      bullpen config list --changed
      bullpen config set max_hops 5
      bullpen config check
    """
    assert isinstance(context.obj, Settings)
    if context.invoked_subcommand != "check":  # it says them itself
        print_problems(load_lenient(os.environ)[1])


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


@click.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument(
    "words", metavar="NAME VALUE...", nargs=-1, required=True, shell_complete=completion.settings
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
@click.argument("names", nargs=-1, required=True, shell_complete=completion.settings)
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


@click.command(name="list")
@click.option("--changed", is_flag=True, help="Only those that do not have their default.")
@as_json
@click.pass_obj
def list_(settings: Settings, changed: bool, as_json: bool) -> None:
    """List every setting: its value, where that comes from, and what it is for.

    What is secret is masked. A value in the file that is bad counts as if it were not there.

    \b
    Examples:
      bullpen config list
      bullpen config list --changed --json
    """
    file = open_settings_file(settings)
    bad = {each.name: each for each in file.problems() if not each.warning}
    shown = [
        each
        for each in file.shown()
        if not changed or each.source is not SettingSource.DEFAULT or each.name in bad
    ]
    if as_json:
        print_json([_document(each, bad.get(each.name)) for each in shown])
        return
    rows = [("NAME", "VALUE", "FROM", "WHAT FOR")]
    rows += [(each.name, str(each.value), _source(each, bad), each.doc) for each in shown]
    print_table(rows, "Every setting has its default.")


@click.command()
@click.argument("name", shell_complete=completion.settings)
@click.option("--reveal", is_flag=True, help="Print a secret as it is, instead of a mask.")
@as_json
@click.pass_obj
def get(settings: Settings, name: str, reveal: bool, as_json: bool) -> None:
    """Print the value of one setting, and nothing else.

    \b
    Examples:
      bullpen config get api_port
      bullpen config get openai_api_key --reveal
    """
    if reveal:
        require_person("see secrets")
    found = {each.name: each for each in open_settings_file(settings).shown()}.get(name)
    if found is None:
        raise BadSetting(f"there is no setting {name[:60]!r}", hint=hint_for(name))
    if name == DATABASE_SETTING and isinstance(settings, SettingsWithoutDatabase):
        raise BadSetting(settings.why, hint=settings.remedy)
    value: Value = _revealed(settings, name) if reveal else found.value
    if as_json:
        print_json({**_document(found, None), "value": value})
    else:
        click.echo(value)


@click.command()
@as_json
@click.pass_obj
def path(settings: Settings, as_json: bool) -> None:
    """Print where the file is, whether it is there yet or not.

    \b
    Example:
      bullpen config path
    """
    file = open_settings_file(settings)
    if as_json:
        backup = str(file.backup) if file.backup.exists() else None
        print_json({"path": str(file.path), "exists": file.path.exists(), "backup": backup})
    else:
        click.echo(file.path)


def open_settings_file(settings: Settings) -> SettingsFile:
    """The file of this home, under the environment of this command."""
    return SettingsFile(settings.home, os.environ, here=True)


def _document(shown: SettingView, problem: SettingProblem | None) -> dict[str, object]:
    return {**asdict(shown), "problem": None if problem is None else str(problem)}


def _source(shown: SettingView, bad: dict[str, SettingProblem]) -> str:
    problem = bad.get(shown.name)
    if problem is None or shown.source is SettingSource.ENVIRONMENT:
        return shown.source.value
    return f"{shown.source.value} (line {problem.line} is bad)"


def _revealed(settings: Settings, name: str) -> Value:
    value: object = getattr(settings, name)
    return value if isinstance(value, (int, float)) else str(value)


EXIT_WARNINGS = 3


@click.command()
@as_json
@click.pass_obj
def check(settings: Settings, as_json: bool) -> None:
    """Read the file, and show each line that is bad, why, and what would be right.

    The exit status is 3 if anything is bad; a name that no setting has is only a warning.

    \b
    Example:
      bullpen config check
    """
    file = open_settings_file(settings)
    problems = [*file.problems(), *_of_database(settings), *_of_rights(settings)]
    bad = sum(not each.warning for each in problems)
    if as_json:
        found = [{**asdict(each), "where": each.where} for each in problems]
        exists = file.path.exists()
        print_json({"path": str(file.path), "exists": exists, "ok": not bad, "problems": found})
    else:
        for each in problems:
            click.echo(f"{'warning: ' if each.warning else ''}{each}")
            click.echo(f"  {each.hint}")
        _conclude(file.path.exists(), bad, len(problems) - bad)
    if bad:
        sys.exit(EXIT_WARNINGS)


def _of_database(settings: Settings) -> list[SettingProblem]:
    """Whether its address can be opened at all; whether anybody answers there is not asked."""
    from bullpen.core.store.open import parse_database_url  # only here: it takes long to load

    if isinstance(settings, SettingsWithoutDatabase):  # that is said already
        return []
    try:
        parse_database_url(settings.url)
    except BadSetting as error:
        return [SettingProblem(None, DATABASE_SETTING, str(error), error.hint)]
    return []


def _of_rights(settings: Settings) -> list[SettingProblem]:
    """Whether others may read a file with secrets in it."""
    path = open_settings_file(settings).path
    try:
        mode = path.stat().st_mode
    except OSError:
        return []
    if not settings.secrets() or not stat.S_ISREG(mode) or not mode & 0o077:
        return []
    text = "others may read it, and there are secrets in it"
    return [SettingProblem(None, "", text, f"chmod 600 {path}", warning=True)]


def _conclude(exists: bool, bad: int, warnings: int) -> None:
    if not exists and not bad:
        click.echo("There is no settings.toml: every setting has its default.")
    elif not bad and not warnings:
        click.echo("settings.toml is good.")
    else:
        click.echo(f"{_number(bad, 'problem')}, {_number(warnings, 'warning')}.")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
