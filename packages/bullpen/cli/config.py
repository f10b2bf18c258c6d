"""bullpen config: list, print, edit and check settings."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import asdict

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, require_person
from bullpen.cli.errors import UsageError
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
    UNKNOWN_SETTING_HINT,
    SettingProblem,
    SettingsWithoutDatabase,
    load_lenient,
)
from bullpen.core.store.open import parse_database_url
from bullpen.core.text import describe_unknown

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
    """Show, change and check settings.

    Settings are stored in settings.toml in the home. An environment variable overrides the file:
    BULLPEN_MAX_HOPS for `max_hops`. A channel has a table of its own: `slack.port` is `port` in the
    table [slack], and BULLPEN_SLACK_PORT in the environment.

    \b
    Examples:
      bullpen config list --changed
      bullpen config set max_hops 5
      bullpen config check
    """
    assert isinstance(context.obj, Settings)
    if context.invoked_subcommand not in ("check", "edit"):  # they report them
        print_problems(load_lenient(os.environ)[1])


@command(config, listing=True)
@click.argument("words", metavar="[TEXT]...", nargs=-1)
@click.option("--changed", is_flag=True, help="Only settings that differ from their default.")
def list_(settings: Settings, words: tuple[str, ...], changed: bool) -> Result:
    """List settings, their values and where they are set.

    With TEXT only settings whose name or description contains it are listed. Secrets are masked.
    For an invalid value in the file the default is shown. The settings of a channel are listed if
    one of them is set, or if its name is TEXT.

    \b
    Examples:
      bullpen config list
      bullpen config list api
      bullpen config list slack
      bullpen config list --changed --json
    """
    file = _open_file(settings)
    bad = {each.name: each for each in file.problems() if not each.warning}
    found = file.list_settings()
    listed = {each.name for each in found}
    for word in words:
        found += (each for each in file.list_account(word) if each.name not in listed)
    views = [
        each
        for each in found
        if not changed or each.source is not SettingSource.DEFAULT or each.name in bad
        if all(word.casefold() in f"{each.name} {each.doc}".casefold() for word in words)
    ]
    rows = [("NAME", "VALUE", "SET IN", "DESCRIPTION")]
    rows += [(each.name, str(each.value), _source(each, bad), each.doc) for each in views]
    fields = [_setting_fields(each, bad.get(each.name)) for each in views]
    return Result(
        fields, rows=rows, ids=(each.name for each in views), empty=_describe_empty(words, changed)
    )


@command(config)
@click.argument("name", shell_complete=completion.settings)
@click.option("--reveal", is_flag=True, help="Print a secret instead of its mask.")
def get(settings: Settings, name: str, reveal: bool) -> Result:
    """Print the value of one setting.

    \b
    Examples:
      bullpen config get api_port
      bullpen config get openai_api_key --reveal
    """
    if reveal:
        require_person("read secrets")
    file = _open_file(settings)
    view = file.find_setting(name)
    if view is None:
        raise BadSetting(describe_unknown("setting", name, file.names()), hint=UNKNOWN_SETTING_HINT)
    if name == DATABASE_SETTING and isinstance(settings, SettingsWithoutDatabase):
        raise BadSetting(settings.why, hint=settings.remedy)
    value: Value = _revealed(settings, name) if reveal else view.value
    return Result({**_setting_fields(view, None), "value": value}, str(value))


@command(config)
def path(settings: Settings) -> Result:
    """Print the path of the settings file.

    \b
    Example:
      bullpen config path
    """
    file = _open_file(settings)
    backup = str(file.backup) if file.backup.exists() else None
    document = {"path": str(file.path), "exists": file.path.exists(), "backup": backup}
    return Result(document, str(file.path))


@config.command()
@click.pass_obj
def edit(settings: Settings) -> None:
    """Open settings.toml in an editor, then check it.

    The editor is the one in $VISUAL or $EDITOR. The exit status is 3 if a setting is invalid.

    \b
    Example:
      bullpen config edit
    """
    require_person("change settings")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("an editor needs a terminal", "Use `bullpen config set`.")
    path = _open_file(settings).path
    path.parent.mkdir(parents=True, exist_ok=True)  # the umask of the command is private
    path.touch()
    click.edit(filename=str(path))
    _check(load_lenient(os.environ)[0]).print(as_json=False)


def _open_file(settings: Settings) -> SettingsFile:
    """Open the file with the environment of this command, which overrides it."""
    return SettingsFile(settings.home, os.environ, here=True)


def _setting_fields(view: SettingView, problem: SettingProblem | None) -> dict[str, object]:
    return {**asdict(view), "problem": None if problem is None else str(problem)}


def _source(view: SettingView, bad: dict[str, SettingProblem]) -> str:
    problem = bad.get(view.name)
    if problem is None or view.source is SettingSource.ENVIRONMENT:
        return view.source.value
    return f"{view.source.value} (line {problem.line} is invalid)"


def _describe_empty(words: tuple[str, ...], changed: bool) -> str:
    if words:
        return "No setting matches. Next: bullpen config list"
    return "Every setting has its default." if changed else "No settings."


def _revealed(settings: Settings, name: str) -> Value:
    account, dot, below = name.partition(".")
    value: object = settings.account(account)[below] if dot else getattr(settings, name)
    return value if isinstance(value, (int, float)) else str(value)


@command(config)
def check(settings: Settings) -> Result:
    """Check settings.toml and show each invalid line.

    The exit status is 3 if a setting is invalid. An unknown name is only a warning.

    \b
    Example:
      bullpen config check
    """
    return _check(settings)


def _check(settings: Settings) -> Result:
    file = _open_file(settings)
    problems = [*file.problems(), *_database_problems(settings), *_permission_problems(settings)]
    problems += _owner_problems(settings)
    bad = sum(not each.warning for each in problems)
    exists = file.path.exists()
    lines = []
    for each in problems:
        lines += [f"{'Warning' if each.warning else 'Error'}: {each}", f"  {each.hint}"]
    fields = [{**asdict(each), "where": each.where} for each in problems]
    return Result(
        {"path": str(file.path), "exists": exists, "ok": not bad, "problems": fields},
        [*lines, _conclusion(exists, bad, len(problems) - bad)],
        status=EXIT_BAD_SETTINGS if bad else 0,
    )


def _database_problems(settings: Settings) -> list[SettingProblem]:
    """Return the problems of the database's URL, without connecting to it."""
    if isinstance(settings, SettingsWithoutDatabase):  # one of the file's problems
        return []
    try:
        parse_database_url(settings.url)
    except BadSetting as error:
        return [SettingProblem(None, DATABASE_SETTING, str(error), error.hint)]
    return []


def _owner_problems(settings: Settings) -> list[SettingProblem]:
    """Warn of an owner who gets no notices."""
    from bullpen.core.inspect.channels import owner_channel_problem  # loads the models

    text = owner_channel_problem(settings)
    if not text:
        return []
    hint = "Run `bullpen channel list --all`, or `bullpen config set owner_channel cli`."
    return [SettingProblem(None, "owner_channel", text, hint, warning=True)]


def _permission_problems(settings: Settings) -> list[SettingProblem]:
    """Warn of a file with secrets that other users can read."""
    path = _open_file(settings).path
    try:
        mode = path.stat().st_mode
    except OSError:
        return []
    if not settings.secrets() or not stat.S_ISREG(mode) or not mode & 0o077:
        return []
    text = "it contains secrets, and other users can read it"
    return [SettingProblem(None, "", text, f"Run `chmod 600 {path}`.", warning=True)]


def _conclusion(exists: bool, bad: int, warnings: int) -> str:
    if not exists and not bad:
        return "No settings.toml: every setting has its default."
    if not bad and not warnings:
        return "settings.toml is valid."
    return f"{format_count(bad, 'problem')}, {format_count(warnings, 'warning')}."
