"""bullpen config list, get and path: the settings as they are."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_json, print_table
from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings
from bullpen.core.settings_file import SettingsFile, SettingSource, SettingView, Value
from bullpen.core.settings_problems import SettingProblem, SettingsWithoutDatabase, hint_for
from bullpen.core.settings_text import DATABASE_SETTING


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
@click.argument("name", shell_complete=ids.settings)
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
