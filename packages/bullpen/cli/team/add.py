"""bullpen team add."""

from __future__ import annotations

from dataclasses import asdict

import click

from bullpen.cli import ids
from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_result, write_transaction
from bullpen.core.roster.team import DeliveryMode, Team
from bullpen.core.roster.teams import add_team
from bullpen.core.settings import Settings

DELIVERIES = click.Choice([each.value for each in DeliveryMode])


@click.command()
@click.argument("team_id")
@click.argument("members", nargs=-1, required=True, shell_complete=ids.agents)
@click.option(
    "--leader",
    shell_complete=ids.agents,
    help="Who gets what is said to the team; the first, if not said.",
)
@click.option("--name", default="", help="What people call it.")
@click.option(
    "--delivery",
    type=DELIVERIES,
    default=DeliveryMode.STREAM.value,
    show_default=True,
    help="How answers come: each, or all as one.",
)
@as_json
@click.pass_obj
def add(
    settings: Settings,
    team_id: str,
    members: tuple[str, ...],
    leader: str | None,
    name: str,
    delivery: str,
    as_json: bool,
) -> None:
    """Make a team of agents.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """
    require_person("make teams")
    made = Team(
        id=team_id,
        name=name,
        leader=leader or members[0],
        members=members,
        delivery=DeliveryMode(delivery),
    )
    with write_transaction(settings) as tx:
        add_team(tx, made)
    print_result(
        as_json, asdict(made), f"@{team_id} is there. Next: bullpen send '@{team_id} hello'"
    )
