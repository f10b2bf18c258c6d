"""bullpen queue list: messages by what they have in common."""

from __future__ import annotations

from typing import Any

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, show_table
from bullpen.cli.queue.filters import filters, selection
from bullpen.cli.queue.lines import as_fields, rows
from bullpen.cli.queue.reach import reached
from bullpen.core.queue.newest import newest
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

STATES = click.Choice([each.value for each in MessageState])
NONE = 'There is no message like that. Next: bullpen send "hello", or fewer filters.'


@click.command(name="list")
@filters("agent")
@click.option("--state", type=STATES, help="Only those in this state.")
@filters("conversation", "channel", "sender", "since", "before")
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@how_many()
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    /,
    state: str | None,
    archived: bool,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List messages, the newest first.

    \b
    Examples:
      bullpen queue list --state pending --agent coder
      bullpen queue list --since 2h --sender ann --json
    """
    given["agent"] = reached(given["agent"])
    wanted = None if state is None else MessageState(state)
    with reading(settings) as tx:
        found = newest(tx, selection(tx.now, given), wanted, limit, archived=archived)
        now = tx.now
    if as_json:
        show_json([as_fields(each) for each in found])
        return
    show_table(rows(found, now), NONE)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)
