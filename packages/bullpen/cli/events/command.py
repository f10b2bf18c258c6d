"""bullpen events: the last ones, or all as they come."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import acting_agent
from bullpen.cli.duration import DURATION
from bullpen.cli.events.lines import EventFormatter, colours
from bullpen.cli.output import MAX_LIMIT, as_json, print_json
from bullpen.core.errors import OutOfReach
from bullpen.core.events.append import EventType
from bullpen.core.events.browse import EventFilter, last_events, list_events
from bullpen.core.events.tail import Event, EventTail, id_before_oldest
from bullpen.core.models import EVENTS
from bullpen.core.settings import Settings
from bullpen.core.store.base import Store
from bullpen.core.store.open import open_store
from bullpen.core.store.place import first_id_since
from bullpen.core.time_zone import get_zone, owner_zone_name

DEFAULT_EVENTS = 20
POLL_SECONDS = 1.0
SETTLE_SECONDS = 0.01
"""So soon again, while somebody is still writing what has an earlier number."""

TYPES = click.Choice([each.value for each in EventType])


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Show what happens as it happens, until Ctrl-C.")
@click.option("--type", "types", type=TYPES, multiple=True, help="Only this; may be repeated.")
@click.option(
    "--agent",
    "agents",
    metavar="ID",
    multiple=True,
    shell_complete=ids.agents,
    help="Only what is about this agent; may be repeated.",
)
@click.option(
    "--conversation",
    metavar="ID",
    shell_complete=ids.conversation_ids,
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
) -> list[Event]:
    upto = EventTail.from_now(store).position
    with store.read() as tx:
        if since_id is not None:
            return list_events(tx, wanted, since_id, upto, limit)
        return last_events(tx, wanted, moment, upto, limit)


def _follow(
    store: Store,
    wanted: EventFilter,
    show: Callable[[Sequence[Event]], None],
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


def _printer(store: Store, as_json: bool) -> Callable[[Sequence[Event]], None]:
    lines = EventFormatter(get_zone(owner_zone_name(store.settings)))

    def show(found: Sequence[Event]) -> None:
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
