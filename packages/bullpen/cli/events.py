"""bullpen events: past and live events."""

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
from bullpen.cli.command import Result, command, json_requested, print_notes
from bullpen.cli.errors import UsageError
from bullpen.cli.filters import check_filters
from bullpen.cli.options import DURATION, MAX_LIMIT, Count
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
from bullpen.core.text import describe_unknown, visible_line

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
"""Shown with a preview of their message; others with their own text."""

DEFAULT_EVENTS = 20
FOLLOWED_EVENTS = 10
"""Past events before the new ones of --follow."""
POLL_SECONDS = 1.0
SETTLE_SECONDS = 0.01
"""The time between two reads while an earlier event is not committed."""
FOLLOWING = "Following new events. Press Ctrl-C to stop."


class EventType(click.Choice[str]):
    """The name of an event type; the error for another name suggests one."""

    name = "type"

    def __init__(self) -> None:
        super().__init__(list(EVENT_TYPES))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The names are too many for the help."""
        return "TYPE"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The type of this name."""
        if value not in EVENT_TYPES:
            raise UsageError(describe_unknown("event type", value, EVENT_TYPES), TYPES_HINT)
        return value


TYPES_HINT = "List event types: bullpen events --list-types"


@dataclass(frozen=True, slots=True)
class EventFormatter:
    """Formats events as lines in the owner's zone."""

    zone: ZoneInfo

    def lines(self, tx: Transaction, events: Sequence[EventRecord]) -> list[str]:
        """One line for each event."""
        return [self._line(*each) for each in zip(events, event_details(tx, events), strict=True)]

    def _line(self, event: EventRecord, facts: EventDetails) -> str:
        local = datetime.fromtimestamp(event.created_at / SECOND, UTC).astimezone(self.zone)
        # A terminal is narrow: the date of today is left out.
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
    """The data of the event that is not elsewhere in the line."""
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
@click.option("--follow", "-f", is_flag=True, help="Print new events until Ctrl-C.")
@click.option(
    "--type",
    "types",
    type=EventType(),
    multiple=True,
    help="Only events of this type, for example message_dead. Repeatable.",
)
@click.option("--list-types", is_flag=True, help="List the event types.")
@click.option(
    "--agent",
    "agents",
    metavar="AGENT",
    multiple=True,
    shell_complete=completion.agents,
    help="Only events of this agent. Repeatable.",
)
@click.option(
    "--conversation",
    metavar="ID",
    shell_complete=completion.conversation_ids,
    help="Only events of this conversation.",
)
@click.option("--since", type=DURATION, help="Only events newer than DURATION.")
@click.option(
    "--since-id",
    type=Count(0, MAX_ROW_ID),
    metavar="ID",
    help="Only events after the one with this id.",
)
@click.option(
    "-n",
    "--limit",
    type=Count(1, MAX_LIMIT),
    show_default=f"{DEFAULT_EVENTS}, with --follow {FOLLOWED_EVENTS}",
    help="Show at most N past events.",
)
def events(
    settings: Settings,
    follow: bool,
    types: tuple[str, ...],
    list_types: bool,
    agents: tuple[str, ...],
    conversation: str | None,
    since: int | None,
    since_id: int | None,
    limit: int | None,
) -> Result | None:
    """Show past events, newest last, and follow new ones.

    --follow starts with the last events, or with --since-id after that event without missing any.
    --json prints one document. With --follow, --json prints one document a line, and past events
    only if --limit, --since or --since-id is given.

    \b
    Examples:
      bullpen events --type message_dead --type message_held --since 1d
      bullpen events --follow --agent coder
      bullpen events --follow --since-id 4711 --json
    """
    if since is not None and since_id is not None:
        raise click.UsageError("give --since or --since-id, not both")
    if list_types:
        return _list_types()
    wanted = EventFilter(
        types=frozenset(types) or None,
        agents=frozenset(agents) or None,
        conversation_id=conversation,
    )
    as_json = json_requested()
    with closing(open_store(settings)) as store:
        start = None if since is None else max(0, store.clock.now() - since)
        with store.read() as tx:
            for each in wanted.agents or ():
                check_filters(tx, agent=each)
        if follow:
            if not as_json and limit is None and start is None and since_id is None:
                limit = FOLLOWED_EVENTS
            _follow(store, wanted, start, since_id, limit, as_json=as_json)
            return None
        last = _last(store, wanted, start, since_id, limit or DEFAULT_EVENTS)
        lines = [] if as_json else _format_lines(store, last)
    return Result(last, lines or "No events match.")


def _list_types() -> Result:
    rows = [(name, (each.__doc__ or "").partition("\n")[0]) for name, each in EVENT_TYPES.items()]
    return Result(list(EVENT_TYPES), rows=[("TYPE", "TEXT"), *rows])


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
    """Print new events, until Ctrl-C or until the pipe has no reader."""
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
        if sys.stdout.isatty():
            print_notes([FOLLOWING])
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
    # The buffer has no reader; a flush at exit would fail.
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
    """Whether standard output still has a reader; without it, only the next write would fail."""
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(sys.stdout.fileno(), 0)
        return not any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
    return True
