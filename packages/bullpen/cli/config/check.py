"""bullpen config check: all that is bad in the file, with what to do about it."""

from __future__ import annotations

import stat
import sys
from dataclasses import asdict

import click

from bullpen.cli.config.show import open_settings_file
from bullpen.cli.output import as_json, print_json
from bullpen.core.errors import BadSetting
from bullpen.core.settings import Settings
from bullpen.core.settings_problems import SettingProblem, SettingsWithoutDatabase
from bullpen.core.settings_text import DATABASE_SETTING

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
    from bullpen.core.store.url import parse_database_url  # only here: it takes long to load

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
