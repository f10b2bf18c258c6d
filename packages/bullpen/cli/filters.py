"""Filters that select messages or responses: the options, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bullpen.cli import completion
from bullpen.cli.options import DURATION, Function, combine_options
from bullpen.core.message import ErrorKind
from bullpen.core.states import ResponseState
from bullpen.core.store.scan import Selection

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
    """The options that filter messages by these attributes."""
    return combine_options(*(_MESSAGE_OPTIONS[each] for each in names))


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
    """The options that filter responses by these attributes."""
    return combine_options(*(_RESPONSE_OPTIONS[each] for each in names))


def parse_filters(now: int, options: dict[str, Any]) -> Selection:
    """The selection that the options of these filters describe."""
    times = {"since", "before"}
    since, before = _time_range(now, options.get("since"), options.get("before"))
    attributes = {name: value for name, value in options.items() if name not in times}
    return Selection(since=since, before=before, **attributes)


def _time_range(now: int, since: int | None, before: int | None) -> tuple[int | None, int | None]:
    """The moments that --since and --before name, counted back from now."""
    if since is not None and before is not None and since <= before:
        raise click.UsageError("Nothing is younger than --since and older than --before.")
    return _ago(now, since), _ago(now, before)


def _ago(now: int, milliseconds: int | None) -> int | None:
    return None if milliseconds is None else max(0, now - milliseconds)
