"""Options and parameter types that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from bullpen.cli.errors import UsageError
from bullpen.core.clock import parse_duration
from bullpen.core.errors import BadSchedule, BullpenError
from bullpen.core.registry import CHANNELS
from bullpen.core.settings.parse import load_lenient
from bullpen.core.text import describe_unknown
from bullpen.ops.services.programs import RENAMED_SERVICES, programs_set_up

Function = TypeVar("Function", bound=Callable[..., Any])


def combine_options(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Combine the decorators of several options into one; the first is the first in the help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, without doing it.")

MAX_LIMIT = 1000
"""The most rows that a command shows."""


class Count(click.ParamType[int]):
    """A whole number within bounds; the help shows it as N."""

    name = "n"

    def __init__(self, least: int = 0, most: int = 1_000_000_000) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number; anything else is a usage error."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number", param, ctx)
        if not self._least <= number <= self._most:
            self.fail(f"{number} is not between {self._least} and {self._most}", param, ctx)
        return number


class Amount(click.ParamType[float]):
    """A number with or without decimals, such as seconds or dollars; the help shows it as N."""

    name = "n"

    def __init__(self, least: float = 0.0) -> None:
        self._least = least

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; anything else is a usage error."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not self._least <= number < float("inf"):
            self.fail(f"{value} is less than {self._least:g} or not a finite number", param, ctx)
        return number


def limit_option(default: int = 20) -> Callable[[Function], Function]:
    """Return the option that limits how many rows are shown."""
    return click.option(
        "-n",
        "--limit",
        type=Count(1, MAX_LIMIT),
        default=default,
        show_default=True,
        help="Show at most N rows.",
    )


def require_change(options: Mapping[str, object]) -> None:
    """Refuse a `set` command to which no option was given."""
    if all(each is None or each is False or each == () for each in options.values()):
        raise click.UsageError("nothing to change: give at least one option")


class Date(click.ParamType[date]):
    """A date in the form YYYY-MM-DD."""

    name = "date"

    def convert(
        self, value: str | date, param: click.Parameter | None, ctx: click.Context | None
    ) -> date:
        """Return the date; anything else is a usage error."""
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a date in the form YYYY-MM-DD", param, ctx)


class Duration(click.ParamType[int]):
    """A duration such as `30m` or `2h`, converted to milliseconds."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the milliseconds; anything but a duration is a usage error."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except BadSchedule as error:
            name = "" if param is None else f" for {param.get_error_hint(ctx)}"
            raise UsageError(f"invalid value{name}: {error}", error.hint, ctx) from None


DURATION = Duration()


class ServiceName(click.ParamType[str]):
    """The name of a service; any other name is a usage error that lists the services."""

    name = "service"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name if the service exists."""
        known = _service_names()
        value = RENAMED_SERVICES.get(value, value)
        if value not in known and value not in CHANNELS.built_in:
            raise UsageError(
                describe_unknown("service", value, known), f"Services: {', '.join(known)}.", ctx
            )
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the names of services."""
        with suppress(BullpenError):
            names = _service_names()
            return [CompletionItem(each) for each in names if each.startswith(incomplete)]
        return []


def _service_names() -> list[str]:
    """The services of this home; not the channels that are not set up."""
    settings, _ = load_lenient(os.environ)
    # An account that was just set up gets its file when its service is started.
    return sorted({*(each.name for each in programs_set_up(settings)), *settings.accounts.names()})


SERVICES = ServiceName()
