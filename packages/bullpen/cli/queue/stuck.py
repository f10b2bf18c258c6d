"""bullpen queue dead and held: the messages that wait for a person, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from bullpen.cli.output import as_json, limit_option, print_json, print_table, read_transaction
from bullpen.cli.queue.filters import message_filters, message_selection
from bullpen.cli.queue.lines import dead_rows, held_rows, message_fields
from bullpen.cli.queue.reach import visible_agent
from bullpen.core.queue.browse import MessageRecord
from bullpen.core.queue.newest import newest_messages
from bullpen.core.queue.walk import BatchCursor, message_scans
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

Rows = Callable[[Sequence[MessageRecord], int], list[tuple[str, ...]]]

DEAD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue retry ID, bullpen queue drop ID"
HELD_NEXT_STEPS = "Next: bullpen queue show ID, bullpen queue let-go ID, bullpen queue cancel ID"


@click.command()
@message_filters("agent", "kind", "error", "conversation", "since", "before")
@limit_option()
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
    rows = dead_rows, "No message is dead.", DEAD_NEXT_STEPS
    _list(settings, MessageState.DEAD, given, limit, as_json, *rows)


@click.command()
@message_filters("agent", "conversation", "since", "before")
@limit_option()
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
    rows = held_rows, "No message waits for a person.", HELD_NEXT_STEPS
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
    given["agent"] = visible_agent(given["agent"])
    with read_transaction(settings) as tx:
        wanted = message_selection(tx.now, given)
        found = newest_messages(tx, wanted, state, limit)
        count = len(found)
        if count == limit:
            count = BatchCursor(message_scans(tx, (state,), wanted), wanted).count(tx)
        now = tx.now
    if as_json:
        print_json([message_fields(each) for each in found])
        return
    if any(value is not None for value in given.values()):
        empty = f"{empty[:-1]} like that."
    print_table(rows(found, now), empty)
    if count > len(found):
        click.echo(f"These are {len(found)} of {count}: --limit shows more.", err=True)
    if found:
        click.echo(next_, err=True)
