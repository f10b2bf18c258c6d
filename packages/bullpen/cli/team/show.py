"""bullpen team show."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.agent.shown import lane_activity
from bullpen.cli.output import as_json, print_json, read_transaction
from bullpen.core.queue.lane_list import get_lane
from bullpen.core.roster.find import get_agent
from bullpen.core.roster.team import Team
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction


@click.command()
@click.argument("team_id", shell_complete=ids.teams)
@as_json
@click.pass_obj
def show(settings: Settings, team_id: str, as_json: bool) -> None:
    """Show everything about one team, and what its members are at.

    \b
    Example:
      bullpen team show dev
    """
    with read_transaction(settings) as tx:
        found = get_team(tx, team_id)
        agents = [_member(tx, each) for each in found.members]
    limits = _limits(found, settings)
    if as_json:
        print_json({**asdict(found), "limits": limits, "agents": agents})
        return
    for name, value in (
        ("id", found.id),
        *((("name", found.name),) if found.name else ()),
        ("leader", f"@{found.leader}"),
        ("delivery", found.delivery.value),
        ("handoffs", f"{limits['max_hops']} in a row"),
        ("messages", f"{limits['max_messages']} of one conversation"),
        ("cost", f"${limits['max_cost']} of one conversation" if limits["max_cost"] else "any"),
    ):
        click.echo(f"{name:<10} {value}".rstrip())
    click.echo("members")
    for each in agents:
        click.echo(f"  @{each['id']}: {each['provider']}, {each['state']}")


def _member(tx: Transaction, agent_id: str) -> dict[str, object]:
    agent, lane = get_agent(tx, agent_id), get_lane(tx, agent_id)
    return {
        "id": agent.id,
        "name": agent.name,
        "provider": agent.provider,
        "model": agent.model,
        "state": lane_activity(lane),
        "pending": lane.pending,
        "processing": lane.processing,
    }


def _limits(team: Team, settings: Settings) -> dict[str, float]:
    """Its own, or the settings where it has none."""
    return {
        "max_hops": settings.max_hops if team.max_hops is None else team.max_hops,
        "max_messages": settings.max_messages if team.max_messages is None else team.max_messages,
        "max_cost": settings.max_cost if team.max_cost is None else team.max_cost,
    }
