"""bullpen queue list: messages by what they have in common."""

from __future__ import annotations

from typing import Any

import click

from bullpen.cli.output import as_json, limit_option, print_json, print_table, read_transaction
from bullpen.cli.queue.filters import message_filters, message_selection
from bullpen.cli.queue.lines import message_fields, message_rows
from bullpen.cli.queue.reach import visible_agent
from bullpen.core.queue.newest import newest_messages
from bullpen.core.settings import Settings
from bullpen.core.states import MessageState

STATES = click.Choice([each.value for each in MessageState])
NO_MESSAGES = 'There is no message like that. Next: bullpen send "hello", or fewer filters.'


@click.command(name="list")
@message_filters("agent")
@click.option("--state", type=STATES, help="Only those in this state.")
@message_filters("conversation", "channel", "sender", "since", "before")
@click.option("--archived", is_flag=True, help="Those that were archived after a day as well.")
@limit_option()
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
    given["agent"] = visible_agent(given["agent"])
    wanted = None if state is None else MessageState(state)
    with read_transaction(settings) as tx:
        found = newest_messages(
            tx, message_selection(tx.now, given), wanted, limit, archived=archived
        )
        now = tx.now
    if as_json:
        print_json([message_fields(each) for each in found])
        return
    print_table(message_rows(found, now), NO_MESSAGES)
    if len(found) == limit:
        click.echo("There may be more: --limit shows them.", err=True)
