"""bullpen room: what a team says among itself."""

from __future__ import annotations

import sys
from zoneinfo import ZoneInfo

import click
from click.shell_completion import CompletionItem

from bullpen.cli import completion
from bullpen.cli.command import acting_agent, read_transaction, require_person, write_transaction
from bullpen.cli.output import as_json, limit_option, print_json, print_result, sanitize
from bullpen.core.clock import owner_zone_name
from bullpen.core.errors import OutOfReach
from bullpen.core.inspect.history import newest_posts
from bullpen.core.intake import post_in_room
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings

OPEN = "open"
OWNER = "owner"


class RoomCommands(click.Group):
    """A name that is no command's is a team's, whose room is opened."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, and what is left for it."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            return OPEN, self.get_command(ctx, OPEN), args
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, and the teams."""
        named = super().shell_complete(ctx, incomplete)
        return named + completion.teams(
            ctx, self.params[0] if self.params else _NO_PARAMETER, incomplete
        )


_NO_PARAMETER: click.Parameter = click.Argument(["team"])


@click.group(cls=RoomCommands, subcommand_metavar="TEAM | COMMAND [ARGS]...")
def room() -> None:
    """Open a team's room, read it, and post in it. TEAM alone opens its room.

    \b
    Examples:
      bullpen room dev
      bullpen room post dev "stand-up in ten minutes"
    """


@room.command(name=OPEN)
@click.argument("team_id", shell_complete=completion.teams)
@as_json
@click.pass_obj
def open_(settings: Settings, team_id: str, as_json: bool) -> None:
    """Read and write a room live, also of a team that is called like a command.

    Enter posts, Ctrl-J begins a new line, PageUp shows older posts, Esc leaves. With --json print
    the last posts, as `read` does.

    \b
    Examples:
      bullpen room dev
      bullpen room open post
    """
    from bullpen.cli.views.app import require_terminal

    require_person("sit in a room as a person")
    if as_json:
        _read(settings, team_id, limit=50, as_json=True)
        return
    with read_transaction(
        settings
    ) as tx:  # a name that is wrong is told before the screen is taken
        get_team(tx, team_id)
    require_terminal(f"bullpen room read {team_id}")
    from bullpen.cli.views.app import run_view
    from bullpen.cli.views.room import RoomView

    sys.exit(run_view(RoomView(settings, team_id, ZoneInfo(owner_zone_name(settings)))))


@room.command()
@click.argument("team_id", shell_complete=completion.teams)
@click.argument("text")
@as_json
@click.pass_obj
def post(settings: Settings, team_id: str, text: str, as_json: bool) -> None:
    """Say something to every member of a team.

    \b
    Example:
      bullpen room post dev "stand-up in ten minutes"
    """
    agent = acting_agent()
    if agent is not None:  # it would speak with its owner's voice
        raise OutOfReach(
            f"@{agent} may not post as a person", hint=f"Write [#{team_id}: ...] in the answer."
        )
    with write_transaction(settings) as tx:
        posted = post_in_room(tx, team_id, text, OWNER)
    print_result(
        as_json,
        {"id": posted.id, "team_id": team_id, "conversation_id": posted.conversation_id},
        f"{posted.conversation_id} is posted. Next: bullpen room read {team_id}",
    )


@room.command()
@click.argument("team_id", shell_complete=completion.teams)
@limit_option(50)
@as_json
@click.pass_obj
def read(settings: Settings, team_id: str, limit: int, as_json: bool) -> None:
    """Print the last posts of a room.

    \b
    Example:
      bullpen room read dev
    """
    _read(settings, team_id, limit, as_json)


def _read(settings: Settings, team_id: str, limit: int, as_json: bool) -> None:
    with read_transaction(settings) as tx:
        get_team(tx, team_id)
        found = newest_posts(tx, team_id, limit)[::-1]
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo(f"@{each.from_agent}: {sanitize(each.message)}")
    if not found:
        click.echo(f"Nobody has said anything in #{team_id} yet.")
