"""bullpen room: what a team says among itself."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, writing
from bullpen.core.history.rooms import last_posts
from bullpen.core.queue.room import post_in_room
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings


@click.group()
def room() -> None:
    """Read a team's room, and post in it.

    \b
    Example:
      bullpen room post dev "stand-up in ten minutes"
    """


@room.command()
@click.argument("team_id")
@click.argument("text")
@click.pass_obj
def post(settings: Settings, team_id: str, text: str) -> None:
    """Say something to every member of a team.

    \b
    Example:
      bullpen room post dev "stand-up in ten minutes"
    """
    with writing(settings) as tx:
        posted = post_in_room(tx, team_id, text, "owner")
    click.echo(f"{posted.conversation_id} is posted. Next: bullpen room read {team_id}")


@room.command()
@click.argument("team_id")
@how_many(50)
@as_json
@click.pass_obj
def read(settings: Settings, team_id: str, limit: int, as_json: bool) -> None:
    """Print the last posts of a room.

    \b
    Example:
      bullpen room read dev
    """
    with reading(settings) as tx:
        get_team(tx, team_id)
        found = last_posts(tx, team_id, limit)[::-1]
    if as_json:
        show_json(found)
        return
    for each in found:
        click.echo(f"@{each.from_agent}: {each.message}")
    if not found:
        click.echo(f"Nobody has said anything in #{team_id} yet.")
