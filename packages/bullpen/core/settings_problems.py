"""The settings that can be had from a file that is partly bad, and what is bad in it.

A bad value costs only itself: the default stands in. What must not fall back to a default is not
for this: whatever starts runs asks for `Settings.load`, and a database that is named wrongly is
never another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from bullpen.core.errors import BadSetting
from bullpen.core.settings import DEFAULTS, ENVIRONMENT_PREFIX, Settings, parse_setting
from bullpen.core.settings_text import (
    DATABASE_SETTING,
    SETTINGS_FILE,
    SettingProblem,
    SettingsText,
    printable_name,
    read_settings,
)

__all__ = [
    "SettingProblem",
    "SettingsWithoutDatabase",
    "check_values",
    "hint_for",
    "load_lenient",
]


@dataclass(frozen=True, kw_only=True)
class SettingsWithoutDatabase(Settings):
    """Settings that do not say which database is meant: whoever needs the store is told why."""

    why: str
    remedy: str

    @property
    def url(self) -> str:
        """There is none; the default would be another database than the one that was meant."""
        raise BadSetting(f"the database is not known: {self.why}", hint=self.remedy)


def load_lenient(environ: Mapping[str, str]) -> tuple[Settings, tuple[SettingProblem, ...]]:
    """The settings, with defaults for what is bad in the file; and what is bad in it.

    A value in the environment that cannot be is an error, whatever the file says.
    """
    home = parse_setting("home", environ.get(f"{ENVIRONMENT_PREFIX}HOME") or DEFAULTS["home"])
    found = read_settings(home / SETTINGS_FILE)
    values, problems = check_values(found)
    given = {
        each.name: parse_setting(each.name, raw)
        for each in fields(Settings)
        if (raw := environ.get(ENVIRONMENT_PREFIX + each.name.upper()))
    }
    values = {"workspace": parse_setting("workspace", DEFAULTS["workspace"]), **values, **given}
    values["home"] = home
    unnamed = None if DATABASE_SETTING in given else _database_problem(found, problems)
    if unnamed is None:
        return Settings(**values), problems
    values.pop(DATABASE_SETTING, None)
    return SettingsWithoutDatabase(**values, why=str(unnamed), remedy=unnamed.hint), problems


def check_values(found: SettingsText) -> tuple[dict[str, Any], tuple[SettingProblem, ...]]:
    """Of what stands in a file the values that can be, and all that is bad."""
    values: dict[str, Any] = {}
    problems = list(found.problems)
    for name, value in found.values.items():
        line = found.lines.get(name)
        if name == "home":
            problems.append(_home_problem(line))
        elif name not in DEFAULTS:
            problems += _unknown_name(name, value, found.lines)
        else:
            try:
                values[name] = parse_setting(name, value)
            except BadSetting as error:
                problems.append(SettingProblem(line, name, str(error), error.hint))
    return values, tuple(sorted(problems, key=lambda each: each.line or 0))


def _database_problem(
    found: SettingsText, problems: tuple[SettingProblem, ...]
) -> SettingProblem | None:
    """Why nobody can tell which database is meant; None if that is clear."""
    if not found.readable:
        return found.problems[0]
    return next((each for each in problems if each.name == DATABASE_SETTING), None)


def _unknown_name(name: str, value: object, lines: Mapping[str, int]) -> Iterator[SettingProblem]:
    below = sorted(value.keys() & DEFAULTS.keys()) if isinstance(value, dict) else []
    for each in below:  # meant, and not heard
        text = f"{each} stands below [{printable_name(name)}], where no setting is read"
        yield SettingProblem(
            lines.get(each), each, text, "Put it at the top of the file, above all [...]."
        )
    if not below:
        text = f"there is no setting {printable_name(name)}"
        yield SettingProblem(lines.get(name), name, text, hint_for(name), warning=True)


def hint_for(name: str) -> str:
    """What somebody may have meant who wrote a name that no setting has."""
    from difflib import get_close_matches  # only here: the command line starts without

    near = get_close_matches(name, DEFAULTS, 1)
    return f"Did you mean {near[0]}?" if near else "`bullpen config list` shows all settings."


def _home_problem(line: int | None) -> SettingProblem:
    return SettingProblem(
        line,
        "home",
        "home has no effect in this file, which lies in it",
        f"Set {ENVIRONMENT_PREFIX}HOME in the environment.",
        warning=True,
    )
