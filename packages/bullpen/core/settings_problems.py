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
from bullpen.core.settings import DEFAULTS, PREFIX, Settings, parse
from bullpen.core.settings_text import DATABASE, FILE, Problem, SettingsText, read_settings, shown

__all__ = ["NoDatabase", "Problem", "check_values", "hint_for", "load_what_can_be"]


@dataclass(frozen=True, kw_only=True)
class NoDatabase(Settings):
    """Settings that do not say which database is meant: whoever needs the store is told why."""

    why: str
    remedy: str

    @property
    def url(self) -> str:
        """There is none; the default would be another database than the one that was meant."""
        raise BadSetting(f"the database is not known: {self.why}", hint=self.remedy)


def load_what_can_be(environ: Mapping[str, str]) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings, with defaults for what is bad in the file; and what is bad in it.

    A value in the environment that cannot be is an error, whatever the file says.
    """
    home = parse("home", environ.get(f"{PREFIX}HOME") or DEFAULTS["home"])
    found = read_settings(home / FILE)
    values, problems = check_values(found)
    given = {
        each.name: parse(each.name, raw)
        for each in fields(Settings)
        if (raw := environ.get(PREFIX + each.name.upper()))
    }
    values = {"workspace": parse("workspace", DEFAULTS["workspace"]), **values, **given}
    values["home"] = home
    unnamed = None if DATABASE in given else _unnamed(found, problems)
    if unnamed is None:
        return Settings(**values), problems
    values.pop(DATABASE, None)
    return NoDatabase(**values, why=str(unnamed), remedy=unnamed.hint), problems


def check_values(found: SettingsText) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Of what stands in a file the values that can be, and all that is bad."""
    values: dict[str, Any] = {}
    problems = list(found.problems)
    for name, value in found.values.items():
        line = found.lines.get(name)
        if name == "home":
            problems.append(_no_home(line))
        elif name not in DEFAULTS:
            problems += _unknown(name, value, found.lines)
        else:
            try:
                values[name] = parse(name, value)
            except BadSetting as error:
                problems.append(Problem(line, name, str(error), error.hint))
    return values, tuple(sorted(problems, key=lambda each: each.line or 0))


def _unnamed(found: SettingsText, problems: tuple[Problem, ...]) -> Problem | None:
    """Why nobody can tell which database is meant; None if that is clear."""
    if not found.readable:
        return found.problems[0]
    return next((each for each in problems if each.name == DATABASE), None)


def _unknown(name: str, value: object, lines: Mapping[str, int]) -> Iterator[Problem]:
    below = sorted(value.keys() & DEFAULTS.keys()) if isinstance(value, dict) else []
    for each in below:  # meant, and not heard
        text = f"{each} stands below [{shown(name)}], where no setting is read"
        yield Problem(
            lines.get(each), each, text, "Put it at the top of the file, above all [...]."
        )
    if not below:
        text = f"there is no setting {shown(name)}"
        yield Problem(lines.get(name), name, text, hint_for(name), warning=True)


def hint_for(name: str) -> str:
    """What somebody may have meant who wrote a name that no setting has."""
    from difflib import get_close_matches  # only here: the command line starts without

    near = get_close_matches(name, DEFAULTS, 1)
    return f"Did you mean {near[0]}?" if near else "`bullpen config list` shows all settings."


def _no_home(line: int | None) -> Problem:
    return Problem(
        line,
        "home",
        "home has no effect in this file, which lies in it",
        f"Set {PREFIX}HOME in the environment.",
        warning=True,
    )
