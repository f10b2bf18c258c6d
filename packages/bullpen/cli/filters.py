"""Filters that select messages or responses: the options, and the checks of what they name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

import click
from sqlalchemy import bindparam, select, union_all

from bullpen.cli import completion
from bullpen.cli.errors import UsageError
from bullpen.cli.options import DURATION, Function, combine_options
from bullpen.core.errors import UnknownAgent, UnknownMessage
from bullpen.core.inspect.conversations import count_messages
from bullpen.core.inspect.lanes import get_lane, list_lanes
from bullpen.core.message import INTERNAL_CHANNELS, PULL_CHANNELS, ErrorKind
from bullpen.core.models import MESSAGES, RESPONSES
from bullpen.core.models.base import const
from bullpen.core.registry import CHANNELS
from bullpen.core.store.scan import Selection
from bullpen.core.store.statement import Statement
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import describe_unknown

ERROR_KINDS = click.Choice([*(each.value for each in ErrorKind), "overflow"])

_MESSAGE_OPTIONS = {
    "agent": click.option(
        "--agent",
        metavar="AGENT",
        shell_complete=completion.agents,
        help="Only messages for this agent.",
    ),
    "channel": click.option("--channel", metavar="NAME", help="Only messages from this channel."),
    "sender": click.option("--sender", metavar="NAME|ID", help="Only messages from this person."),
    "conversation": click.option(
        "--conversation",
        metavar="ID",
        shell_complete=completion.conversation_ids,
        help="Only messages of this conversation.",
    ),
    "kind": click.option(
        "--kind", type=ERROR_KINDS, help="Only messages that failed with this kind of error."
    ),
    "error": click.option(
        "--error", metavar="TEXT", help="Only messages whose error or its kind contains TEXT."
    ),
    "since": click.option("--since", type=DURATION, help="Only messages newer than DURATION."),
    "before": click.option("--before", type=DURATION, help="Only messages older than DURATION."),
}


def message_filters(*names: str) -> Callable[[Function], Function]:
    """The options that filter messages by these attributes."""
    return combine_options(*(_MESSAGE_OPTIONS[each] for each in names))


_RESPONSE_OPTIONS = {
    "channel": click.option("--channel", metavar="NAME", help="Only responses on this channel."),
    "agent": click.option(
        "--agent",
        metavar="AGENT",
        shell_complete=completion.agents,
        help="Only responses of this agent.",
    ),
    "sender": click.option(
        "--to", "sender", metavar="NAME|ID", help="Only responses to this person."
    ),
    "error": click.option(
        "--error", metavar="TEXT", help="Only responses whose last error contains TEXT."
    ),
    "since": click.option("--since", type=DURATION, help="Only responses newer than DURATION."),
    "before": click.option("--before", type=DURATION, help="Only responses older than DURATION."),
}


def response_filters(*names: str) -> Callable[[Function], Function]:
    """The options that filter responses by these attributes."""
    return combine_options(*(_RESPONSE_OPTIONS[each] for each in names))


def parse_filters(tx: Transaction, options: dict[str, Any]) -> Selection:
    """The selection that the options describe; what they name must exist."""
    check_filters(
        tx,
        agent=options.get("agent"),
        channel=options.get("channel"),
        conversation=options.get("conversation"),
    )
    times = {"since", "before"}
    since, before = _time_range(tx.now, options.get("since"), options.get("before"))
    attributes = {name: value for name, value in options.items() if name not in times}
    return Selection(since=since, before=before, **attributes)


def check_filters(
    tx: Transaction,
    *,
    agent: str | None = None,
    channel: str | None = None,
    conversation: str | None = None,
) -> None:
    """Refuse a filter for an agent, a channel or a conversation that does not exist."""
    if agent is not None:
        try:
            get_lane(tx, agent)  # removed agents have a lane as well
        except UnknownAgent:
            agents = [each.agent for each in list_lanes(tx)]
            raise UnknownAgent(describe_unknown("agent", agent, agents)) from None
    if channel is not None and not _channel_exists(tx, channel):
        known = {*CHANNELS.built_in, *CHANNELS.plugin_names(), *INTERNAL_CHANNELS, *PULL_CHANNELS}
        raise click.UsageError(describe_unknown("channel", channel, sorted(known)))
    if conversation is not None and not count_messages(tx, conversation).messages:
        raise UnknownMessage(describe_unknown("conversation", conversation))


def _channel_exists(tx: Transaction, channel: str) -> bool:
    """Whether it is known here, or was: its package may have been uninstalled."""
    if channel in INTERNAL_CHANNELS or channel in PULL_CHANNELS:
        return True
    return (
        CHANNELS.find(channel) is not None
        or tx.one(SELECT_ON_CHANNEL, {"channel": channel}) is not None
    )


def check_delivery_channel(name: str) -> None:
    """Refuse a channel that delivers nothing to people; `slack-sage` is an account of slack."""
    if CHANNELS.find(name) is None:
        known = [*CHANNELS.built_in, *CHANNELS.plugin_names()]
        raise UsageError(
            describe_unknown("channel", name, known), f"Channels: {', '.join(sorted(known))}."
        )


SELECT_ON_CHANNEL: Statement[tuple[int]] = Statement(
    lambda: union_all(
        *(
            select(table.c.id).where(table.c.channel == bindparam("channel"))
            for table in (MESSAGES, RESPONSES)
        )
    ).limit(const(1))
)


EARLIER_STATES = {
    "waiting": "pending",
    "queued": "pending",
    "running": "processing",
    "working": "processing",
    "done": "completed",
    "finished": "completed",
    "failed": "dead",
    "undelivered": "dead",
    "canceled": "cancelled",
    "delivered": "acked",
    "read": "acked",
}
"""Other words for states."""


class StateType(click.Choice[str]):
    """A state; the error for another word suggests one and lists them all."""

    name = "state"

    def __init__(self, states: Iterable[StrEnum]) -> None:
        super().__init__([each.value for each in states])

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The state of this name."""
        known: Sequence[str] = self.choices
        if value in known:
            return value
        text = describe_unknown("state", value, known)
        if (meant := EARLIER_STATES.get(value.lower())) in known:
            text = f"{describe_unknown('state', value)}. Did you mean {meant!r}?"
        raise UsageError(text, f"States: {', '.join(known)}.")


def _time_range(now: int, since: int | None, before: int | None) -> tuple[int | None, int | None]:
    """The moments that --since and --before name, counted back from now."""
    if since is not None and before is not None and since <= before:
        raise click.UsageError("--since must be longer than --before")
    return _ago(now, since), _ago(now, before)


def _ago(now: int, milliseconds: int | None) -> int | None:
    return None if milliseconds is None else max(0, now - milliseconds)
