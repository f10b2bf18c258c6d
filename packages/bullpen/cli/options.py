"""Options and parameter types that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from bullpen.cli import completion
from bullpen.cli.output import as_json, dry_run, yes
from bullpen.core.clock import parse_duration
from bullpen.core.errors import BadSchedule
from bullpen.core.message import ErrorKind
from bullpen.core.states import ResponseState
from bullpen.core.store.scan import Selection
from bullpen.ops.services.programs import list_programs
from bullpen.ops.services.supervisor import RENAMED_SERVICES

Function = TypeVar("Function", bound=Callable[..., Any])


def combine_options(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Combine the decorators of several options into one; the first is the first in the help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


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


class Duration(click.ParamType[int]):
    """Milliseconds, written as people write a length of time."""

    name = "duration"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The milliseconds; a text that is no length of time is a mistake of usage."""
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except BadSchedule as error:
            self.fail(f"{error}. {error.hint}", param, ctx)


DURATION = Duration()


def time_range(now: int, since: int | None, before: int | None) -> tuple[int | None, int | None]:
    """The moments from which and up to which something is meant, so long ago each."""
    if since is not None and before is not None and since <= before:
        raise click.UsageError("Nothing is younger than --since and older than --before.")
    return _ago(now, since), _ago(now, before)


def _ago(now: int, milliseconds: int | None) -> int | None:
    return None if milliseconds is None else max(0, now - milliseconds)


ERROR_KINDS = click.Choice([*(each.value for each in ErrorKind), "overflow"])

_MESSAGE_OPTIONS = {
    "agent": click.option(
        "--agent", metavar="ID", shell_complete=completion.agents, help="Only those for this agent."
    ),
    "channel": click.option("--channel", metavar="NAME", help="Only those from this channel."),
    "sender": click.option(
        "--sender", metavar="NAME|ID", help="Only those from this person, by name or id."
    ),
    "conversation": click.option(
        "--conversation",
        metavar="ID",
        shell_complete=completion.conversation_ids,
        help="Only those of this one.",
    ),
    "kind": click.option("--kind", type=ERROR_KINDS, help="Only those that failed with this kind."),
    "error": click.option(
        "--error", metavar="TEXT", help="Only those whose error has this in it, or is of this kind."
    ),
    "since": click.option(
        "--since", type=DURATION, metavar="2h", help="Only those of the last so long."
    ),
    "before": click.option(
        "--before", type=DURATION, metavar="2h", help="Only those that are older than so long."
    ),
}


def message_filters(*names: str) -> Callable[[Function], Function]:
    """The filters of these names, as options."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = _MESSAGE_OPTIONS[name](function)
        return function

    return decorate


def message_selection(now: int, given: dict[str, Any]) -> Selection:
    """What the options that were given choose."""
    times = {"since", "before"}
    since, before = time_range(now, given.get("since"), given.get("before"))
    rest = {name: value for name, value in given.items() if name not in times}
    return Selection(since=since, before=before, **rest)


def selection_until_now(now: int, chosen: Selection) -> Selection:
    """The same, without what comes while the work goes on: it might come for ever."""
    return chosen if chosen.before is not None else replace(chosen, before=now)


RESPONSE_STATES = click.Choice([each.value for each in ResponseState])

_RESPONSE_OPTIONS = {
    "channel": click.option("--channel", metavar="NAME", help="Only what goes to this channel."),
    "agent": click.option(
        "--agent", metavar="ID", shell_complete=completion.agents, help="Only what this agent said."
    ),
    "sender": click.option(
        "--to", "sender", metavar="NAME|ID", help="Only what goes to this person, by name or id."
    ),
    "error": click.option(
        "--error", metavar="TEXT", help="Only those whose last error has this in it."
    ),
    "since": click.option(
        "--since", type=DURATION, metavar="2h", help="Only what was said within so long."
    ),
    "before": click.option(
        "--before", type=DURATION, metavar="2h", help="Only what was said longer ago."
    ),
}


def response_filters(*names: str) -> Callable[[Function], Function]:
    """The filters of these names, as options."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            function = _RESPONSE_OPTIONS[name](function)
        return function

    return decorate


class ServiceName(click.ParamType[str]):
    """One of the services; another is refused with the list of them."""

    name = "service"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a service."""
        known = [each.name for each in list_programs()]
        value = RENAMED_SERVICES.get(value, value)
        if value not in known:
            self.fail(f"there is no service {value!r}; there are {', '.join(known)}", param, ctx)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Those that begin like this."""
        return [
            CompletionItem(each.name)
            for each in list_programs()
            if each.name.startswith(incomplete)
        ]


SERVICES = ServiceName()
