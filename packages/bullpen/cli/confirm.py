"""A question before something is destroyed, with how much of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

yes: Callable[[Function], Function] = click.option(
    "--yes", "-y", is_flag=True, help="Do it without asking."
)
dry_run: Callable[[Function], Function] = click.option(
    "--dry-run", is_flag=True, help="Show what would be done, and do nothing."
)


def confirm(what: str, sure: bool, *, many: bool = False) -> None:
    """Ask a person at a terminal whether to do `what`; end the command if not.

    Without a terminal nobody can be asked: what was named one by one is done, what was chosen by
    filters (`many`) needs --yes.
    """
    if sure:
        return
    if sys.stdin.isatty():
        if not click.confirm(f"{what}?", err=True):
            raise click.Abort
    elif many:
        raise click.UsageError(f"{what}? Say --yes, or look first with --dry-run.")
