"""bullpen events: the record of events, past and live."""

from __future__ import annotations

import json
import select
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, command, json_requested
from bullpen.cli.options import DURATION, MAX_LIMIT
from bullpen.cli.output import echo, join, one_line, style
from bullpen.core.clock import SECOND, get_zone, owner_zone_name
from bullpen.core.events.base import Level
from bullpen.core.events.conversation import ChainHandoff, MessageEnqueued, MessageReceived
from bullpen.core.events.log import (
    EventFilter,
    EventRecord,
    id_before_oldest,
    last_events,
    list_events,
)
from bullpen.core.events.tail import EventTail
from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.inspect.event_details import EventDetails, event_details
from bullpen.core.models import EVENTS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.paging import MAX_ROW_ID, first_id_since
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

TYPE_COLUMNS = 18
MAX_COLUMNS = 2000
"""The longest line without a terminal."""

COLOURS = {
    Level.PROGRESS: "bright_black",
    Level.INFO: "cyan",
    Level.NOTICE: "yellow",
    Level.WARNING: "yellow",
    Level.FAILURE: "red",
}

PREVIEWED = (MessageReceived, MessageEnqueued, ChainHandoff)
"""Shown with the beginning of their message; others with what was said."""

DEFAULT_EVENTS = 20
POLL_SECONDS = 1.0
SETTLE_SECONDS = 0.01
"""The time between two looks while an earlier event is not committed."""
TYPES = click.Choice(list(EVENT_TYPES))


@dataclass(frozen=True, slots=True)
class EventFormatter:
    """Formats events as lines in the owner's zone."""

    zone: ZoneInfo

    def lines(self, tx: Transaction, events: Sequence[EventRecord]) -> list[str]:
        """A line for each."""
        return [self._line(*each) for each in zip(events, event_details(tx, events), strict=True)]

    def _line(self, event: EventRecord, facts: EventDetails) -> str:
        local = datetime.fromtimestamp(event.created_at / SECOND, UTC).astimezone(self.zone)
        # A terminal has little room: there the date of today is left out.
        today = sys.stdout.isatty() and local.date() == datetime.now(self.zone).date()
        head = f"{event.id:>6}  {local:{'%H:%M:%S' if today else '%Y-%m-%d %H:%M:%S'}}  "
        whose = f"@{event.agent}" if event.agent else ""
        about = visible_line(event.message_id or event.conversation_id or "")
        rest = [
            *(f"{name}={_format_value(value)}" for name, value in _data(event)),
            _quoted_text(event, facts),
        ]
        words = f"{visible_line(whose)}  {about}  "
        used = len(head) + max(TYPE_COLUMNS, len(event.type)) + 2 + len(words)
        room = max(0, _line_width() - used)
        kind = style(f"{event.type:<{TYPE_COLUMNS}}", fg=COLOURS[event.event.level])
        text = one_line(" ".join(each for each in rest if each), room) if room else ""
        return join(head, kind, f"  {words}{text}".rstrip())


def _line_width() -> int:
    """The width of the terminal, or the longest line for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_COLUMNS


def _data(event: EventRecord) -> Iterator[tuple[str, object]]:
    """The data of the event, without what the line has already."""
    for name, value in event.data.items():
        if value is not None and name != "said" and value != [event.message_id]:
            yield name, value


def _quoted_text(event: EventRecord, facts: EventDetails) -> str:
    text = facts.text
    if text is None and isinstance(event.event, PREVIEWED) and facts.origin is not None:
        text = facts.origin.preview
    return f'"{text}"' if text else ""


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{_format_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ",".join(map(_format_value, value))
    text = str(value)
    return f'"{text}"' if " " in text or not text else text


@command()
@click.option("--follow", "-f", is_flag=True, help="Show what happens as it happens, until Ctrl-C.")
@click.option("--type", "types", type=TYPES, multiple=True, help="Only this; may be repeated.")
@click.option(
    "--agent",
    "agents",
    metavar="ID",
    multiple=True,
    shell_complete=completion.agents,
    help="Only what is about this agent; may be repeated.",
)
@click.option(
    "--conversation",
    metavar="ID",
    shell_complete=completion.conversation_ids,
    help="Only what is of this one.",
)
@click.option(
    "--since", type=DURATION, metavar="2h", help="Only what happened in the last so long."
)
@click.option(
    "--since-id",
    type=click.IntRange(0, MAX_ROW_ID),
    metavar="NUMBER",
    help="Only what has a later number.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    help=f"How many: {DEFAULT_EVENTS}, if not said; with --follow, so many from before.",
)
def events(
    settings: Settings,
    follow: bool,
    types: tuple[str, ...],
    agents: tuple[str, ...],
    conversation: str | None,
    since: int | None,
    since_id: int | None,
    limit: int | None,
) -> Result | None:
    """Show what happened last, the newest at the end; or with --follow all that happens from now.

    With --since-id it goes on after that event, and misses none. --json prints one document; with
    --follow, one document a line.

    \b
    Examples:
      bullpen events --type message_dead --type message_held --since 1d
      bullpen events --follow --agent coder
      bullpen events --follow --since-id 4711 --json
    """
    if since is not None and since_id is not None:
        raise click.UsageError("Give --since or --since-id, not both.")
    wanted = EventFilter(
        types=frozenset(types) or None,
        agents=frozenset(agents) or None,
        conversation_id=conversation,
    )
    as_json = json_requested()
    with closing(open_store(settings)) as store:
        start = None if since is None else max(0, store.clock.now() - since)
        if follow:
            _follow(store, wanted, start, since_id, limit, as_json=as_json)
            return None
        last = _last(store, wanted, start, since_id, limit or DEFAULT_EVENTS)
        lines = [] if as_json else _format_lines(store, last)
    return Result(last, lines or "Nothing like that has happened.")


def _last(
    store: Store, wanted: EventFilter, start: int | None, since_id: int | None, limit: int
) -> list[EventRecord]:
    upto = EventTail.from_now(store).position
    with store.read() as tx:
        if since_id is not None:
            return list_events(tx, wanted, since_id, upto, limit)
        return last_events(tx, wanted, start, upto, limit)


def _follow(
    store: Store,
    wanted: EventFilter,
    start: int | None,
    since_id: int | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """Show events as they come, until Ctrl-C or until the pipe has no reader."""
    with suppress(KeyboardInterrupt, BrokenPipeError), closing(store.listen()) as listener:
        tail = EventTail.from_now(store)
        if since_id is not None:
            tail.position = min(max(since_id, id_before_oldest(store)), tail.position)
        elif limit is not None:
            with store.read() as tx:
                last = last_events(tx, wanted, start, tail.position, limit)
            _print(store, last, as_json)
        elif start is not None:
            with store.read() as tx:
                tail.position = first_id_since(tx, EVENTS, start)
        earliest = 0 if start is None else start
        while _has_reader():
            page = tail.read()
            matching = [
                each for each in page if wanted.matches(each) and each.created_at >= earliest
            ]
            _print(store, matching, as_json)
            if not page:
                listener.wait(SETTLE_SECONDS if tail.has_uncommitted else POLL_SECONDS)
        return
    # The rest of the buffer has no reader; a flush at exit would fail.
    with suppress(OSError):
        sys.stdout.close()


def _print(store: Store, events: Sequence[EventRecord], as_json: bool) -> None:
    if as_json:
        lines = [json.dumps(asdict(each)) for each in events]
    else:
        lines = _format_lines(store, events)
    for each in lines:
        echo(each)  # it flushes


def _format_lines(store: Store, events: Sequence[EventRecord]) -> list[str]:
    if not events:
        return []
    formatter = EventFormatter(get_zone(owner_zone_name(store.settings)))
    with store.read() as tx:
        return formatter.lines(tx, events)


def _has_reader() -> bool:
    """Whether standard output still has a reader; a write would tell only with the next event."""
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(sys.stdout.fileno(), 0)
        return not any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
    return True
