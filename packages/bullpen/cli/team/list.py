"""bullpen team list."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.core.roster.teams import list_teams
from bullpen.core.settings import Settings


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all teams.

    \b
    Example:
      bullpen team list
    """
    with read_transaction(settings) as tx:
        found = list_teams(tx)
    if as_json:
        print_json(found)
        return
    rows = [("TEAM", "NAME", "LEADER", "MEMBERS", "DELIVERY")]
    rows += [
        (each.id, each.name, each.leader, " ".join(each.members), each.delivery.value)
        for each in found
    ]
    print_table(rows, "There are no teams yet. Next: bullpen team add dev coder --leader coder")
