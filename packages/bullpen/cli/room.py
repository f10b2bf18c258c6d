"""bullpen room: what a team says among itself."""

from __future__ import annotations

import click
from sqlalchemy import bindparam, select

from bullpen.cli.output import as_json, reading, show_json, writing
from bullpen.core.models import CHAT_MESSAGES
from bullpen.core.queue.room import post_in_room
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings
from bullpen.core.store.statement import Statement

C = CHAT_MESSAGES.c

POSTS: Statement[tuple[int, str, str, int]] = Statement(
    select(C.id, C.from_agent, C.message, C.created_at)
    .where(C.team_id == bindparam("team"))
    .order_by(C.id.desc())
    .limit(bindparam("limit"))
)


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
        conversation = post_in_room(tx, team_id, text, "owner")
    click.echo(f"{conversation} is posted. Next: bullpen room read {team_id}")


@room.command()
@click.argument("team_id")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many.")
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
        found = tx.all(POSTS, {"team": team_id, "limit": limit})[::-1]
    if as_json:
        names = ("id", "from_agent", "message", "created_at")
        show_json([dict(zip(names, row, strict=True)) for row in found])
        return
    for _, author, text, _ in found:
        click.echo(f"@{author}: {text}")
    if not found:
        click.echo(f"Nobody has said anything in #{team_id} yet.")
