"""What a command is about: named one by one, or chosen by filters; nothing by accident."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from bullpen.cli.confirm import dry_run, yes
from bullpen.cli.output import as_json

Function = TypeVar("Function", bound=Callable[..., Any])

BULK_OPTIONS = ("named", "everything", "states", "limit", "yes", "dry_run", "as_json")


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSelection:
    """What a person has said of what is meant, and of how it is done."""

    named: tuple[str, ...]
    filters: dict[str, Any]
    everything: bool
    states: tuple[str, ...]
    limit: int | None
    sure: bool
    dry_run: bool
    as_json: bool

    @property
    def has_filters(self) -> bool:
        """Whether a filter was given."""
        return any(value is not None for value in self.filters.values())


def parse_selection(given: dict[str, Any], noun: str) -> BulkSelection:
    """The options of a command; who says nothing of what is meant is told how to say it."""
    chosen = BulkSelection(
        named=tuple(dict.fromkeys(given["named"])),
        filters={name: value for name, value in given.items() if name not in BULK_OPTIONS},
        everything=given["everything"],
        states=tuple(dict.fromkeys(given["states"])),
        limit=given["limit"],
        sure=given["yes"],
        dry_run=given["dry_run"],
        as_json=given["as_json"],
    )
    if chosen.named and (chosen.has_filters or chosen.everything or chosen.states or chosen.limit):
        raise click.UsageError(f"Name {noun}s, or choose them by filters, not both.")
    if not (chosen.named or chosen.has_filters or chosen.everything):
        raise click.UsageError(
            f"Say which {noun}s: their ids, filters as --agent or --since, or --all.\n"
            f"To look first: {click.get_current_context().command_path} --all --dry-run"
        )
    return chosen


def bulk_options(states: click.Choice[str], about: str) -> Callable[[Function], Function]:
    """The options of every command that may be about many things."""

    def decorate(function: Function) -> Function:
        options = (
            click.option("--state", "states", type=states, multiple=True, help=about),
            click.option(
                "--all",
                "everything",
                is_flag=True,
                help="Do it to all; else a filter has to say to which.",
            ),
            click.option(
                "--limit",
                type=click.IntRange(1),
                metavar="N",
                help="So many at the most, the oldest first.",
            ),
            dry_run,
            yes,
            as_json,
        )
        for each in reversed(options):
            function = each(function)
        return function

    return decorate
