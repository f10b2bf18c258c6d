"""bullpen response list: what goes out and went out."""

from __future__ import annotations

from typing import Any

import click

from bullpen.cli.output import as_json, limit_option, print_json, print_table, read_transaction
from bullpen.cli.queue.filters import message_selection
from bullpen.cli.queue.reach import visible_agent
from bullpen.cli.response.filters import RESPONSE_STATES, response_filters
from bullpen.cli.response.lines import response_rows
from bullpen.core.outbox.newest import newest_responses
from bullpen.core.settings import Settings
from bullpen.core.states import ResponseState

NO_RESPONSES = "There is none like that. Next: fewer filters, or --archived."
LOST_NEXT_STEPS = "Next: bullpen response show ID, bullpen response retry ID"


@click.command(name="list")
@response_filters("channel", "agent", "sender", "error", "since", "before")
@click.option(
    "--state",
    "states",
    type=RESPONSE_STATES,
    multiple=True,
    help="Only those in this state, or in these.",
)
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@limit_option()
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
    given["agent"] = visible_agent(given["agent"])
    wanted = [ResponseState(each) for each in dict.fromkeys(states)]
    with read_transaction(settings) as tx:
        chosen = message_selection(tx.now, given)
        found = newest_responses(tx, chosen, wanted, limit, archived=archived)
        now = tx.now
    if as_json:
        print_json(found)
        return
    print_table(response_rows(found, now), NO_RESPONSES)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)
    if any(each.status in (ResponseState.DEAD, ResponseState.UNKNOWN) for each in found):
        click.echo(LOST_NEXT_STEPS, err=True)
