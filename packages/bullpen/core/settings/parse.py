"""Read settings from the file and the environment, and report what is wrong in the file.

An invalid line or value affects no other setting. Settings are flat, one `name = value` a line, or
in the table of a channel's account, such as [slack]. So a file that is not valid TOML is parsed
line by line.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bullpen.core.errors import BadSetting
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX, FIELDS, Settings
from bullpen.core.settings.accounts import (
    AccountValues,
    account_settings,
    is_table,
    read_variables,
)
from bullpen.core.settings.values import parse_setting
from bullpen.core.text import describe_unknown

SETTINGS_FILE = "settings.toml"
DATABASE_SETTING = "database_url"
UNKNOWN_SETTING_HINT = "Run `bullpen config list` to see all settings."
OWN_VARIABLES = frozenset(ENVIRONMENT_PREFIX + name.upper() for name in FIELDS)
BOM = b"\xef\xbb\xbf"

_NAME = re.compile(r"""\s*\[*\s*["']?(?P<name>[a-z_][a-z0-9_-]{0,40})["']?\s*[=.\]]""")
_POSITION = re.compile(r" \(at (?:line \d+, column (?P<column>\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A part of the file that is ignored, and why; contains no secret."""

    line: int | None
    """None for the file as a whole."""
    name: str
    """The setting; empty if unknown."""
    text: str
    hint: str
    warning: bool = False
    """Whether it is harmless, such as an unknown name."""

    @property
    def where(self) -> str:
        """The file, and the line in it."""
        return SETTINGS_FILE if self.line is None else f"{SETTINGS_FILE} line {self.line}"

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(slots=True)
class SettingsText:
    """The names and values of a file, and its problems."""

    values: dict[str, object] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[SettingProblem] = field(default_factory=list)
    whole: bool = True
    """Whether the file is valid TOML, so that it can be changed."""
    readable: bool = True
    """Whether the file could be read at all."""

    def has(self, name: str) -> bool:
        """Whether the file has this name, such as `max_hops` or `slack.bot_token`."""
        table, dot, below = name.partition(".")
        value = self.values.get(table)
        return below in value if dot and is_table(value) else name in self.values


def read_settings(path: Path) -> SettingsText:
    """Read the file; empty if it is missing."""
    try:
        data = _read_file(path)
    except FileNotFoundError:
        return SettingsText()
    except NotADirectoryError as error:
        raise BadSetting(
            f"the home {path.parent} is not a directory", hint="Set BULLPEN_HOME to a directory."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        return _unreadable_file(reason, f"Check the permissions of {path}.", readable=False)
    if data is None:
        return _unreadable_file("not a regular file", f"Remove {path}, or replace it by a file.")
    return parse_settings(data)


def parse_settings(data: bytes) -> SettingsText:
    """Parse the bytes of a file."""
    data = data.removeprefix(BOM)
    try:
        text = data.decode()
        values = tomllib.loads(text)
    except (ValueError, RecursionError):
        return _parse_by_lines(data)
    return SettingsText(values, _lines(text))


def _read_file(path: Path) -> bytes | None:
    """The bytes of the file; None if it is not a file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():  # its target may be on a disk that is not mounted
            raise OSError(0, f"it links to {path.readlink()}, which does not exist") from None
        raise
    # Reading a pipe could block forever; a device such as /dev/null is fine.
    return path.read_bytes() if stat.S_ISREG(mode) or stat.S_ISCHR(mode) else None


def _unreadable_file(reason: str, hint: str, *, readable: bool = True) -> SettingsText:
    problem = SettingProblem(None, "", f"cannot read the file: {reason}", hint)
    return SettingsText(problems=[problem], whole=False, readable=readable)


def _parse_by_lines(data: bytes) -> SettingsText:
    found = SettingsText(whole=False)
    table: dict[str, object] | None = None
    header = ""
    for number, raw in enumerate(data.split(b"\n"), 1):
        try:
            line = raw.decode().rstrip("\r")
            values = tomllib.loads(line)
        except (ValueError, RecursionError) as error:
            found.problems.append(_unreadable_line(number, raw, error, header))
            if raw.lstrip().startswith(b"["):  # the next lines are in no table that is known
                table, header = {}, ""
            continue
        if table is not None and not line.lstrip().startswith("["):
            for name, value in values.items():
                if name in table:
                    first = found.lines[f"{header}.{name}"]
                    found.problems.append(_duplicate(number, name, first))
                else:
                    table[name] = value
                    found.lines.setdefault(name, number)
                    found.lines.setdefault(f"{header}.{name}", number)
            continue
        if line.lstrip().startswith("["):
            table, header = {}, next(iter(values), "")
            values = dict.fromkeys(values, table)
        for name, value in values.items():
            if name in found.values:
                found.problems.append(_duplicate(number, name, found.lines[name]))
            else:
                found.values[name] = value
                found.lines[name] = number
    return found


def _lines(text: str) -> dict[str, int]:
    """The first line of each name; of a name in a table as `table.name` as well."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if named := _NAME.match(line):
            name = named["name"]
            found.setdefault(name, number)
            if line.lstrip().startswith("["):
                table = name
            elif table:
                found.setdefault(f"{table}.{name}", number)
    return found


def _unreadable_line(number: int, raw: bytes, error: Exception, table: str) -> SettingProblem:
    text = raw.decode(errors="replace").replace("\0", "")
    named = _NAME.match(text)
    name = named["name"] if named else ""
    if name and table and not text.lstrip().startswith("["):
        name = f"{table}.{name}"
    if DATABASE_SETTING in text:  # an invalid line must not select the default database
        name = DATABASE_SETTING
    about = f"cannot read {name}" if name else "cannot read this line"
    return SettingProblem(
        number, name, f"{about}: {_reason(error)}", "Write `name = value`, with text in quotes."
    )


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error)
    place = _POSITION.search(text)
    if place is None:
        return text[:1].lower() + text[1:]
    words = text[: place.start()]
    where = f" at column {place['column']}" if place["column"] else " at its end"
    return words[:1].lower() + words[1:] + where


def _duplicate(number: int, name: str, first: int) -> SettingProblem:
    return SettingProblem(
        number,
        name,
        f"{printable_name(name)} is already set on line {first}",
        "Remove one of the two lines.",
    )


def printable_name(name: str) -> str:
    """Return a name from the file in a form that is safe to print."""
    return name[:60] if name.isprintable() else ascii(name[:60])


@dataclass(frozen=True, kw_only=True)
class SettingsWithoutDatabase(Settings):
    """Settings with an invalid database URL: using the store raises an error with the reason."""

    why: str
    remedy: str

    @property
    def url(self) -> str:
        """Raise BadSetting, because the default database would be the wrong one."""
        raise BadSetting(f"the database is unknown: {self.why}", hint=self.remedy)


def load_lenient(environ: Mapping[str, str]) -> tuple[Settings, tuple[SettingProblem, ...]]:
    """Load the settings, with defaults for invalid values of the file, and the file's problems.

    An invalid value in the environment raises BadSetting. Processes that start runs use
    `Settings.load` instead, because a default must not replace a limit such as `max_cost`.
    """
    home = parse_setting("home", environ.get(f"{ENVIRONMENT_PREFIX}HOME") or DEFAULTS["home"])
    found = read_settings(home / SETTINGS_FILE)
    values, problems = check_values(found)
    given = {
        name: parse_setting(name, raw)
        for name in FIELDS
        if (raw := environ.get(ENVIRONMENT_PREFIX + name.upper()))
    }
    of_accounts = {name: value for name, value in values.items() if "." in name}
    variables = read_variables(environ, OWN_VARIABLES)
    flat = {name: value for name, value in values.items() if name not in of_accounts}
    values = {"workspace": parse_setting("workspace", DEFAULTS["workspace"]), **flat, **given}
    values["home"] = home
    values["accounts"] = AccountValues({**of_accounts, **variables.named}, variables.variables)
    unnamed = None if DATABASE_SETTING in given else _database_problem(found, problems)
    if unnamed is None:
        return Settings(**values), problems
    values.pop(DATABASE_SETTING, None)
    return SettingsWithoutDatabase(**values, why=str(unnamed), remedy=unnamed.hint), problems


def check_values(found: SettingsText) -> tuple[dict[str, Any], tuple[SettingProblem, ...]]:
    """Return the valid values of a file by name, such as `slack.port`, and its problems."""
    values: dict[str, Any] = {}
    problems = list(found.problems)
    for name, value in found.values.items():
        line = found.lines.get(name)
        if name == "home":
            problems.append(_home_problem(line))
        elif name not in DEFAULTS and is_table(value) and account_settings(name):
            valid, invalid = _check_table(name, value, found.lines)
            values.update(valid)
            problems += invalid
        elif name not in DEFAULTS:
            problems += _unknown_name(name, value, found.lines)
        else:
            try:
                values[name] = parse_setting(name, value)
            except BadSetting as error:
                problems.append(SettingProblem(line, name, str(error), error.hint))
    return values, tuple(sorted(problems, key=lambda each: each.line or 0))


def _check_table(
    account: str, table: Mapping[str, object], lines: Mapping[str, int]
) -> tuple[dict[str, str], list[SettingProblem]]:
    """Return the valid values of an account's table, and its problems."""
    known = {each.name for each in account_settings(account)}
    values: dict[str, str] = {}
    problems = []
    for below, value in table.items():
        name = f"{account}.{below}"
        line = lines.get(name, lines.get(account))
        if below in known:
            try:
                values[name] = parse_setting(name, value)
            except BadSetting as error:
                problems.append(SettingProblem(line, name, str(error), error.hint))
        elif below in DEFAULTS:
            problems.append(_misplaced(line, below, account))
        else:
            text = describe_unknown("setting", printable_name(name), _names_of(account, known))
            hint = f"Run `bullpen config list {account}` to see all settings of {account}."
            problems.append(SettingProblem(line, name, text, hint, warning=True))
    return values, problems


def _names_of(account: str, settings: Iterable[str]) -> list[str]:
    return [f"{account}.{each}" for each in settings]


def _misplaced(line: int | None, name: str, table: str) -> SettingProblem:
    text = f"{name} is ignored in the table [{printable_name(table)}]"
    return SettingProblem(line, name, text, "Move it to the top of the file, above every [table].")


def _database_problem(
    found: SettingsText, problems: tuple[SettingProblem, ...]
) -> SettingProblem | None:
    """Return the problem that makes the database unknown; None if it is known."""
    if not found.readable:
        return found.problems[0]
    return next((each for each in problems if each.name == DATABASE_SETTING), None)


def _unknown_name(name: str, value: object, lines: Mapping[str, int]) -> Iterator[SettingProblem]:
    below = sorted(value.keys() & DEFAULTS.keys()) if isinstance(value, dict) else []
    for each in below:  # a setting in a table
        yield _misplaced(lines.get(each), each, name)
    if not below:
        text = describe_unknown("setting", printable_name(name), DEFAULTS)
        yield SettingProblem(lines.get(name), name, text, UNKNOWN_SETTING_HINT, warning=True)


def _home_problem(line: int | None) -> SettingProblem:
    return SettingProblem(
        line,
        "home",
        "home has no effect in settings.toml",
        f"Set {ENVIRONMENT_PREFIX}HOME in the environment.",
        warning=True,
    )
