"""bullpen room: the chat of a team."""

from __future__ import annotations

import sys
from zoneinfo import ZoneInfo

import click
from click.shell_completion import CompletionItem

from bullpen.cli import completion
from bullpen.cli.command import (
    Result,
    command,
    json_requested,
    read_transaction,
    write_transaction,
)
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import limit_option
from bullpen.cli.output import indent_rest
from bullpen.core.clock import owner_zone_name
from bullpen.core.inspect.rooms import newest_posts
from bullpen.core.intake import post_in_room
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible_line

OPEN = "open"
OWNER = "owner"
DEFAULT_POSTS = 50
INDENT = "    "
"""Before the second and later lines of a post; only the first line has the author."""


class RoomCommands(LazyGroup):
    """Commands, and the ids of teams: `room dev` is `room open dev`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; a team's name is the command `open`."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            return OPEN, self.get_command(ctx, OPEN), args
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and teams."""
        named = super().shell_complete(ctx, incomplete)
        return named + completion.teams(
            ctx, self.params[0] if self.params else _NO_PARAMETER, incomplete
        )


_NO_PARAMETER: click.Parameter = click.Argument(["team"])


@click.group(cls=RoomCommands, subcommand_metavar="TEAM | COMMAND [ARGS]...")
def room() -> None:
    """Read and write the chat of a team.

    A team's id alone opens its room.

    \b
    Examples:
      bullpen room dev
      bullpen room post dev "stand-up in ten minutes"
    """


@command(room, OPEN, people_only="open a room as a person")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
def open_(settings: Settings, team_id: str) -> Result:
    """Open a room live: read it and write in it.

    Enter posts, Ctrl-J starts a new line, PageUp shows older posts, Esc leaves. With --json the
    command prints the last posts, as `read` does. `open` is needed only for a team whose id is also
    the name of a command.

    \b
    Examples:
      bullpen room dev
      bullpen room open post
    """
    from bullpen.cli.views.app import require_terminal

    with read_transaction(settings) as tx:  # an unknown team is an error before the view opens
        if json_requested():
            return _newest_posts(tx, team_id, DEFAULT_POSTS)
        get_team(tx, team_id)
    require_terminal(f"bullpen room read {team_id}")
    from bullpen.cli.views.app import run_view
    from bullpen.cli.views.room import RoomView

    sys.exit(run_view(RoomView(settings, team_id, ZoneInfo(owner_zone_name(settings)))))


@command(room, people_only="post as a person")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
@click.argument("words", metavar="TEXT...", nargs=-1, required=True)
def post(settings: Settings, team_id: str, words: tuple[str, ...]) -> Result:
    """Post a message to every member of a team.

    \b
    Examples:
      bullpen room post dev stand-up in ten minutes
      bullpen room post dev "Who takes the login bug?"
    """
    with write_transaction(settings) as tx:
        posted = post_in_room(tx, team_id, " ".join(words), OWNER)
    return Result(
        {"id": posted.id, "team_id": team_id, "conversation_id": posted.conversation_id},
        f"Posted in #{team_id} ({posted.conversation_id}). Next: bullpen room read {team_id}",
    )


@command(room, tx="read")
@click.argument("team_id", metavar="TEAM", shell_complete=completion.teams)
@limit_option(DEFAULT_POSTS)
def read(tx: Transaction, team_id: str, limit: int) -> Result:
    """Print the last posts of a room.

    \b
    Example:
      bullpen room read dev
    """
    return _newest_posts(tx, team_id, limit)


def _newest_posts(tx: Transaction, team_id: str, limit: int) -> Result:
    get_team(tx, team_id)
    posts = newest_posts(tx, team_id, limit)[::-1]
    lines = [
        f"@{visible_line(each.from_agent)}: {indent_rest(each.message, INDENT)}" for each in posts
    ]
    return Result(posts, lines or f"No posts in #{team_id} yet.")
