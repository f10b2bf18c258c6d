"""What is bad in settings.toml, said on standard error: it keeps no command from going on."""

from __future__ import annotations

from collections.abc import Iterable

import click

from bullpen.core.settings import DEFAULTS
from bullpen.core.settings_problems import SettingProblem
from bullpen.core.settings_text import DATABASE_SETTING


def print_problems(problems: Iterable[SettingProblem], *, warnings: bool = False) -> None:
    """A line for each, and with `warnings` for names that no setting has."""
    for each in problems:
        if warnings or not each.warning:
            click.echo(f"bullpen: {describe_problem(each)}", err=True)


def describe_problem(problem: SettingProblem) -> str:
    """What is bad, and what counts instead."""
    if problem.warning:
        return f"{problem}. {problem.hint}"
    if problem.name == DATABASE_SETTING:
        return f"{problem}. The database is not touched until this is corrected."
    if problem.name in DEFAULTS:
        return f"{problem}. Its default counts."
    return f"{problem}. {problem.hint}"
