"""bullpen events: the record of events, past and live."""

from __future__ import annotations

import json
import os
import select
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.command import acting_agent
from bullpen.cli.options import DURATION
from bullpen.cli.output import MAX_LIMIT, as_json, one_line, print_json, sanitize
from bullpen.core.clock import SECOND, get_zone, owner_zone_name
from bullpen.core.errors import OutOfReach
from bullpen.core.events.base import Level
from bullpen.core.events.conversation import ChainHandoff, MessageEnqueued, MessageReceived
from bullpen.core.events.log import EventFilter, last_events, list_events
from bullpen.core.events.tail import EventRecord, EventTail, id_before_oldest
from bullpen.core.events.vocabulary import EVENT_TYPES
from bullpen.core.inspect.event_details import EventDetails, event_details
from bullpen.core.models import EVENTS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.paging import first_id_since
from bullpen.core.store.transaction import Transaction

TYPE_COLUMNS = 18
MAX_COLUMNS = 2000
"""So long is a line where no terminal says how wide it is."""

COLOURS = {
    Level.PROGRESS: "bright_black",
    Level.INFO: "cyan",
    Level.NOTICE: "yellow",
    Level.WARNING: "yellow",
    Level.FAILURE: "red",
}

PREVIEWED = (MessageReceived, MessageEnqueued, ChainHandoff)
"""Shown with the beginning of their message; others with what was said."""


@dataclass(frozen=True, slots=True)
class EventFormatter:
    """How lines are written here."""

    here: ZoneInfo

    def of(self, tx: Transaction, events: Sequence[EventRecord]) -> list[str]:
        """A line for each."""
        return [self._line(*each) for each in zip(events, event_details(tx, events), strict=True)]

    def _line(self, event: EventRecord, facts: EventDetails) -> str:
        local = datetime.fromtimestamp(event.created_at / SECOND, UTC).astimezone(self.here)
        # A terminal has little room: there the day is said only if it is another one.
        today = sys.stdout.isatty() and local.date() == datetime.now(self.here).date()
        head = f"{event.id:>6}  {local:{'%H:%M:%S' if today else '%Y-%m-%d %H:%M:%S'}}  "
        whose = f"@{event.agent}" if event.agent else ""
        about = sanitize(event.message_id or event.conversation_id or "")
        rest = [
            *(f"{name}={_word(value)}" for name, value in _data(event)),
            _said(event, facts),
        ]
        words = f"{sanitize(whose)}  {about}  "
        room = max(0, _wide() - len(head) - max(TYPE_COLUMNS, len(event.type)) - 2 - len(words))
        kind = click.style(f"{event.type:<{TYPE_COLUMNS}}", fg=COLOURS[event.event.level])
        text = one_line(" ".join(each for each in rest if each), room) if room else ""
        return f"{head}{kind}  {words}{text}".rstrip()


def _wide() -> int:
    """As wide as the terminal, or all of it for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_COLUMNS


def _data(event: EventRecord) -> Iterator[tuple[str, object]]:
    """What goes with it, without what the line says already."""
    for name, value in event.data.items():
        if value is not None and name != "said" and value != [event.message_id]:
            yield name, value


def colours() -> bool | None:
    """Whether there are colours: None is as the terminal says."""
    return False if os.environ.get("NO_COLOR") else None


def _said(event: EventRecord, facts: EventDetails) -> str:
    text = facts.text
    if text is None and isinstance(event.event, PREVIEWED) and facts.origin is not None:
        text = facts.origin.preview
    return f'"{text}"' if text else ""


def _word(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{_word(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ",".join(map(_word, value))
    text = str(value)
    return f'"{text}"' if " " in text or not text else text


DEFAULT_EVENTS = 20
POLL_SECONDS = 1.0
SETTLE_SECONDS = 0.01
"""So soon again, while somebody is still writing what has an earlier number."""

TYPES = click.Choice(list(EVENT_TYPES))


@click.command()
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
    "--since-id", type=click.IntRange(0), metavar="NUMBER", help="Only what has a later number."
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    help=f"How many: {DEFAULT_EVENTS}, if not said; with --follow, so many from before.",
)
@as_json
@click.pass_obj
def events(
    settings: Settings,
    follow: bool,
    types: tuple[str, ...],
    agents: tuple[str, ...],
    conversation: str | None,
    since: int | None,
    since_id: int | None,
    limit: int | None,
    as_json: bool,
) -> None:
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
        types=frozenset(types) or None, agents=_visible_agents(agents), conversation_id=conversation
    )
    with closing(open_store(settings)) as store:
        moment = None if since is None else max(0, store.clock.now() - since)
        if follow:
            _follow(store, wanted, _printer(store, as_json), moment, since_id, limit)
            return
        found = _last(store, wanted, moment, since_id, limit or DEFAULT_EVENTS)
        if as_json:
            print_json(found)
        elif found:
            _printer(store, as_json)(found)
        else:
            click.echo("Nothing like that has happened.")


def _visible_agents(agents: tuple[str, ...]) -> frozenset[str] | None:
    """About whom: anybody, if a person asks; an agent sees what is about itself."""
    agent = acting_agent()
    if agent is None:
        return frozenset(agents) or None
    if set(agents) - {agent}:
        raise OutOfReach(
            f"@{agent} may not look at what happens to others", hint="Ask a person to do it."
        )
    return frozenset({agent})


def _last(
    store: Store, wanted: EventFilter, moment: int | None, since_id: int | None, limit: int
) -> list[EventRecord]:
    upto = EventTail.from_now(store).position
    with store.read() as tx:
        if since_id is not None:
            return list_events(tx, wanted, since_id, upto, limit)
        return last_events(tx, wanted, moment, upto, limit)


def _follow(
    store: Store,
    wanted: EventFilter,
    show: Callable[[Sequence[EventRecord]], None],
    moment: int | None,
    since_id: int | None,
    limit: int | None,
) -> None:
    """Show each as it comes, until Ctrl-C, or until nobody reads any more."""
    with suppress(KeyboardInterrupt, BrokenPipeError), closing(store.listen()) as listener:
        tail = EventTail.from_now(store)
        if since_id is not None:
            tail.position = min(max(since_id, id_before_oldest(store)), tail.position)
        elif limit is not None:
            with store.read() as tx:
                found = last_events(tx, wanted, moment, tail.position, limit)
            show(found)
        elif moment is not None:
            with store.read() as tx:
                tail.position = first_id_since(tx, EVENTS, moment)
        early = 0 if moment is None else moment
        while _has_reader():
            page = tail.read()
            show([each for each in page if wanted.matches(each) and each.created_at >= early])
            if not page:
                listener.wait(SETTLE_SECONDS if tail.has_uncommitted else POLL_SECONDS)
        return
    # What is still to be written has nobody to read it.
    with suppress(OSError):
        sys.stdout.close()


def _printer(store: Store, as_json: bool) -> Callable[[Sequence[EventRecord]], None]:
    lines = EventFormatter(get_zone(owner_zone_name(store.settings)))

    def show(found: Sequence[EventRecord]) -> None:
        if not found:
            return
        if as_json:
            texts = [json.dumps(asdict(each)) for each in found]
        else:
            with store.read() as tx:
                texts = lines.of(tx, found)
        for each in texts:
            click.echo(each, color=colours())  # it flushes

    return show


def _has_reader() -> bool:
    """Whether a pipe has another end still: a write would tell only with the next event."""
    poll = select.poll()
    with suppress(OSError, ValueError):
        poll.register(sys.stdout.fileno(), 0)
        return not any(what & (select.POLLERR | select.POLLHUP) for _, what in poll.poll(0))
    return True
