"""bullpen agent list."""

from __future__ import annotations

import click

from bullpen.cli.agent.shown import agent_fields, lane_activity
from bullpen.cli.output import as_json, print_json, print_table, read_transaction
from bullpen.core.queue.lane_list import list_lanes
from bullpen.core.roster.find import list_agents
from bullpen.core.settings import Settings


@click.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all agents, and what each is at.

    \b
    Example:
      bullpen agent list
    """
    with read_transaction(settings) as tx:
        found = list_agents(tx)
        lanes = {each.agent: each for each in list_lanes(tx)}
    if as_json:
        print_json([agent_fields(each, lanes[each.id]) for each in found])
        return
    rows = [("AGENT", "NAME", "PROVIDER", "MODEL", "PERMISSION", "STATE", "WAITING")]
    rows += [
        (
            *(a.id, a.name, a.provider, a.model, a.permission.value),
            *(lane_activity(lanes[a.id]), str(lanes[a.id].pending)),
        )
        for a in found
    ]
    print_table(rows, "There are no agents yet. Next: bullpen agent add coder --provider claude")
