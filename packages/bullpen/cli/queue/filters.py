"""The options by which messages are chosen, and what they mean together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from bullpen.cli import ids
from bullpen.cli.duration import DURATION, time_range
from bullpen.core.message import ErrorKind
from bullpen.core.queue.selection import Selection

Function = TypeVar("Function", bound=Callable[..., Any])

ERROR_KINDS = click.Choice([*(each.value for each in ErrorKind), "overflow"])

_MESSAGE_OPTIONS = {
    "agent": click.option(
        "--agent", metavar="ID", shell_complete=ids.agents, help="Only those for this agent."
    ),
    "channel": click.option("--channel", metavar="NAME", help="Only those from this channel."),
    "sender": click.option(
        "--sender", metavar="NAME|ID", help="Only those from this person, by name or id."
    ),
    "conversation": click.option(
        "--conversation",
        metavar="ID",
        shell_complete=ids.conversation_ids,
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
