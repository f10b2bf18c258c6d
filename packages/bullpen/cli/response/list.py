"""bullpen response list: what goes out and went out."""

from __future__ import annotations

from typing import Any

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, show_table
from bullpen.cli.queue.filters import selection
from bullpen.cli.queue.reach import reached
from bullpen.cli.response.filters import STATES, filters
from bullpen.cli.response.lines import rows
from bullpen.core.outbox.newest import newest_responses
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState

NONE = "There is none like that. Next: fewer filters, or --archived."
DO_WITH_LOST = "Next: bullpen response show ID, bullpen response retry ID"


@click.command(name="list")
@filters("channel", "agent", "sender", "error", "since", "before")
@click.option(
    "--state", "states", type=STATES, multiple=True, help="Only those in this state, or in these."
)
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@how_many()
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    /,
    states: tuple[str, ...],
    archived: bool,
    limit: int,
    as_json: bool,
    **given: Any,  # noqa: ANN401 - the filters
) -> None:
    """List what goes out and what went out within the last day, the newest first.

    \b
    Examples:
      bullpen response list --channel telegram --state dead
      bullpen response list --state dead --state unknown --since 2h
    """
    given["agent"] = reached(given["agent"])
    wanted = [ResponseState(each) for each in dict.fromkeys(states)]
    with reading(settings) as tx:
        chosen = selection(tx.now, given)
        found = newest_responses(tx, chosen, wanted, limit, archived=archived)
        now = tx.now
    if as_json:
        show_json(found)
        return
    show_table(rows(found, now), NONE)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)
    if any(each.status in (ResponseState.DEAD, ResponseState.UNKNOWN) for each in found):
        click.echo(DO_WITH_LOST, err=True)
