"""bullpen team: agents with a leader, a room and limits."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, reading, show_json, show_table, writing
from bullpen.cli.schedule_shown import telling_what_is_paused
from bullpen.core.roster.team import Delivery, Team, TeamChange
from bullpen.core.roster.teams import add_team, change_team, list_teams, remove_team
from bullpen.core.settings import Settings

DELIVERIES = click.Choice([each.value for each in Delivery])


@click.group()
def team() -> None:
    """Add, change, list and remove teams.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """


@team.command(name="list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all teams.

    \b
    Example:
      bullpen team list
    """
    with reading(settings) as tx:
        found = list_teams(tx)
    if as_json:
        show_json(found)
        return
    rows = [("TEAM", "NAME", "LEADER", "MEMBERS", "DELIVERY")]
    rows += [
        (each.id, each.name, each.leader, " ".join(each.members), each.delivery.value)
        for each in found
    ]
    show_table(rows, "There are no teams yet. Next: bullpen team add dev coder --leader coder")


@team.command()
@click.argument("team_id")
@click.argument("members", nargs=-1, required=True)
@click.option("--leader", help="Who gets what is said to the team; the first, if not said.")
@click.option("--name", default="", help="What people call it.")
@click.option("--delivery", type=DELIVERIES, default="stream", show_default=True, help="How.")
@click.pass_obj
def add(
    settings: Settings,
    team_id: str,
    members: tuple[str, ...],
    leader: str | None,
    name: str,
    delivery: str,
) -> None:
    """Make a team of agents.

    \b
    Example:
      bullpen team add dev coder reviewer --leader coder
    """
    made = Team(
        id=team_id,
        name=name,
        leader=leader or members[0],
        members=members,
        delivery=Delivery(delivery),
    )
    with writing(settings) as tx:
        add_team(tx, made)
    click.echo(f"@{team_id} is there. Next: bullpen send '@{team_id} hello'")


@team.command(name="set")
@click.argument("team_id")
@click.option("--leader", help="Who gets what is said to the team.")
@click.option("--member", "members", multiple=True, help="A member; give all of them.")
@click.option("--name", help="What people call it.")
@click.option("--delivery", type=DELIVERIES, help="How answers come: each, or all as one.")
@click.option("--max-hops", type=int, help="Handoffs in a row.")
@click.option("--max-messages", type=int, help="Messages of one conversation.")
@click.option("--max-cost", type=float, help="Dollars of one conversation; 0 is any.")
@click.pass_obj
def set_(settings: Settings, /, team_id: str, **given: object) -> None:
    """Change what is named; the rest stays.

    \b
    Example:
      bullpen team set dev --delivery aggregate --max-hops 4
    """
    change = TeamChange()
    for name, value in given.items():
        if value is not None and value != ():
            change[name] = value  # type: ignore[literal-required]
    if "delivery" in change:
        change["delivery"] = Delivery(change["delivery"])
    with writing(settings) as tx:
        change_team(tx, team_id, **change)
    click.echo(f"@{team_id} is changed")


@team.command()
@click.argument("team_id")
@click.pass_obj
def remove(settings: Settings, team_id: str) -> None:
    """Disband a team; its agents stay.

    \b
    Example:
      bullpen team remove dev
    """
    with writing(settings) as tx, telling_what_is_paused(tx) as said:
        remove_team(tx, team_id)
    click.echo("\n".join((f"@{team_id} is disbanded; its agents stay", *said)))
