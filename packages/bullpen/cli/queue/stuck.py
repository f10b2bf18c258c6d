"""bullpen queue dead and held: the messages that wait for a person, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, show_table
from bullpen.cli.queue.filters import filters, selection
from bullpen.cli.queue.lines import as_fields, dead_rows, held_rows
from bullpen.cli.queue.reach import reached
from bullpen.core.queue.browse import Seen
from bullpen.core.queue.newest import newest
from bullpen.core.queue.walk import Walk, ways_to
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

Rows = Callable[[Sequence[Seen], int], list[tuple[str, ...]]]

DO_WITH_DEAD = "Next: bullpen queue show ID, bullpen queue retry ID, bullpen queue drop ID"
DO_WITH_HELD = "Next: bullpen queue show ID, bullpen queue let-go ID, bullpen queue cancel ID"


@click.command()
@filters("agent", "kind", "error", "conversation", "since", "before")
@how_many()
@as_json
@click.pass_obj
def dead(
    settings: Settings,
    /,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List the messages that will not be tried again by themselves, and why.

    The latest to die come first. What they died of, counted: bullpen queue causes.

    \b
    Examples:
      bullpen queue dead
      bullpen queue dead --agent coder --error timeout --since 2h
    """
    rows = dead_rows, "No message is dead.", DO_WITH_DEAD
    _list(settings, MessageState.DEAD, given, limit, as_json, *rows)


@click.command()
@filters("agent", "conversation", "since", "before")
@how_many()
@as_json
@click.pass_obj
def held(
    settings: Settings,
    /,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List the messages that wait for a person, and why.

    \b
    Example:
      bullpen queue held
    """
    rows = held_rows, "No message waits for a person.", DO_WITH_HELD
    _list(settings, MessageState.HELD, given, limit, as_json, *rows)


def _list(
    settings: Settings,
    state: MessageState,
    given: dict[str, Any],
    limit: int,
    as_json: bool,
    rows: Rows,
    empty: str,
    next_: str,
) -> None:
    given["agent"] = reached(given["agent"])
    with reading(settings) as tx:
        wanted = selection(tx.now, given)
        found = newest(tx, wanted, state, limit)
        count = len(found)
        if count == limit:
            count = Walk(ways_to(tx, (state,), wanted), wanted).count(tx)
        now = tx.now
    if as_json:
        show_json([as_fields(each) for each in found])
        return
    if any(value is not None for value in given.values()):
        empty = f"{empty[:-1]} like that."
    show_table(rows(found, now), empty)
    if count > len(found):
        click.echo(f"These are {len(found)} of {count}: --limit shows more.", err=True)
    if found:
        click.echo(next_, err=True)
