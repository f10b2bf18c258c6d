"""bullpen config: show and check settings."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, require_person
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.main import print_problems
from bullpen.cli.output import format_count
from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings
from bullpen.core.settings.file import (
    SettingsFile,
    SettingSource,
    SettingView,
    Value,
)
from bullpen.core.settings.parse import (
    DATABASE_SETTING,
    SettingProblem,
    SettingsWithoutDatabase,
    hint_for,
    load_lenient,
)
from bullpen.core.store.open import parse_database_url

EXIT_BAD_SETTINGS = 3


@click.group(
    cls=LazyGroup,
    modules={
        "restore": "bullpen.cli.config_set:restore",
        "set": "bullpen.cli.config_set:set_",
        "unset": "bullpen.cli.config_set:unset",
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
    if context.invoked_subcommand != "check":  # it reports them itself
        print_problems(load_lenient(os.environ)[1])


@command(config, listing=True)
@click.option("--changed", is_flag=True, help="Only those that do not have their default.")
def list_(settings: Settings, changed: bool) -> Result:
    """List every setting: its value, where that comes from, and what it is for.

    What is secret is masked. A value in the file that is bad counts as if it were not there.

    \b
    Examples:
      bullpen config list
      bullpen config list --changed --json
    """
    file = _open_file(settings)
    bad = {each.name: each for each in file.problems() if not each.warning}
    views = [
        each
        for each in file.list_settings()
        if not changed or each.source is not SettingSource.DEFAULT or each.name in bad
    ]
    rows = [("NAME", "VALUE", "FROM", "WHAT FOR")]
    rows += [(each.name, str(each.value), _source(each, bad), each.doc) for each in views]
    fields = [_setting_fields(each, bad.get(each.name)) for each in views]
    return Result(
        fields, rows=rows, ids=(each.name for each in views), empty="Every setting has its default."
    )


@command(config)
@click.argument("name", shell_complete=completion.settings)
@click.option("--reveal", is_flag=True, help="Print a secret as it is, instead of a mask.")
def get(settings: Settings, name: str, reveal: bool) -> Result:
    """Print the value of one setting, and nothing else.

    \b
    Examples:
      bullpen config get api_port
      bullpen config get openai_api_key --reveal
    """
    if reveal:
        require_person("see secrets")
    view = {each.name: each for each in _open_file(settings).list_settings()}.get(name)
    if view is None:
        raise BadSetting(f"there is no setting {name[:60]!r}", hint=hint_for(name))
    if name == DATABASE_SETTING and isinstance(settings, SettingsWithoutDatabase):
        raise BadSetting(settings.why, hint=settings.remedy)
    value: Value = _revealed(settings, name) if reveal else view.value
    return Result({**_setting_fields(view, None), "value": value}, str(value))


@command(config)
def path(settings: Settings) -> Result:
    """Print where the file is, whether it is there yet or not.

    \b
    Example:
      bullpen config path
    """
    file = _open_file(settings)
    backup = str(file.backup) if file.backup.exists() else None
    document = {"path": str(file.path), "exists": file.path.exists(), "backup": backup}
    return Result(document, str(file.path))


def _open_file(settings: Settings) -> SettingsFile:
    """Open the file under the environment of this command, whose variables win."""
    return SettingsFile(settings.home, os.environ, here=True)


def _setting_fields(view: SettingView, problem: SettingProblem | None) -> dict[str, object]:
    return {**asdict(view), "problem": None if problem is None else str(problem)}


def _source(view: SettingView, bad: dict[str, SettingProblem]) -> str:
    problem = bad.get(view.name)
    if problem is None or view.source is SettingSource.ENVIRONMENT:
        return view.source.value
    return f"{view.source.value} (line {problem.line} is bad)"


def _revealed(settings: Settings, name: str) -> Value:
    value: object = getattr(settings, name)
    return value if isinstance(value, (int, float)) else str(value)


@command(config)
def check(settings: Settings) -> Result:
    """Read the file, and show each line that is bad, why, and what would be right.

    The exit status is 3 if anything is bad; a name that no setting has is only a warning.

    \b
    Example:
      bullpen config check
    """
    file = _open_file(settings)
    problems = [*file.problems(), *_database_problems(settings), *_permission_problems(settings)]
    bad = sum(not each.warning for each in problems)
    exists = file.path.exists()
    lines = []
    for each in problems:
        lines += [f"{'warning: ' if each.warning else ''}{each}", f"  {each.hint}"]
    fields = [{**asdict(each), "where": each.where} for each in problems]
    return Result(
        {"path": str(file.path), "exists": exists, "ok": not bad, "problems": fields},
        [*lines, _conclusion(exists, bad, len(problems) - bad)],
        status=EXIT_BAD_SETTINGS if bad else 0,
    )


def _database_problems(settings: Settings) -> list[SettingProblem]:
    """Return what is wrong with the database's address; nothing is connected to."""
    if isinstance(settings, SettingsWithoutDatabase):  # already one of the file's problems
        return []
    try:
        parse_database_url(settings.url)
    except BadSetting as error:
        return [SettingProblem(None, DATABASE_SETTING, str(error), error.hint)]
    return []


def _permission_problems(settings: Settings) -> list[SettingProblem]:
    """Warn of a file with secrets that other users may read."""
    path = _open_file(settings).path
    try:
        mode = path.stat().st_mode
    except OSError:
        return []
    if not settings.secrets() or not stat.S_ISREG(mode) or not mode & 0o077:
        return []
    text = "others may read it, and there are secrets in it"
    return [SettingProblem(None, "", text, f"chmod 600 {path}", warning=True)]


def _conclusion(exists: bool, bad: int, warnings: int) -> str:
    if not exists and not bad:
        return "There is no settings.toml: every setting has its default."
    if not bad and not warnings:
        return "settings.toml is good."
    return f"{format_count(bad, 'problem')}, {format_count(warnings, 'warning')}."
