"""bullpen history: messages to and from agents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import indent
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, acting_run, command, read_transaction
from bullpen.cli.filters import check_filters
from bullpen.cli.lazy import LazyGroup
from bullpen.cli.options import DURATION, limit_option
from bullpen.cli.output import join, style
from bullpen.core.clock import SECOND, get_zone, owner_zone_name
from bullpen.core.errors import OutOfReach
from bullpen.core.inspect.history import (
    HistoryEntry,
    HistoryFilter,
    list_history,
    list_people,
    search_history,
)
from bullpen.core.inspect.rooms import Post, list_posts
from bullpen.core.roster.agents import Reach
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings
from bullpen.core.store.transaction import Transaction
from bullpen.core.text import visible, visible_line

NO_MESSAGES = "No messages match."
INDENT = "    "


class HistoryGroup(LazyGroup):
    """A group whose options without a command are those of `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; options alone are those of `list`."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=HistoryGroup)
def history() -> None:
    """List and search messages to and from agents.

    With options alone, `bullpen history` lists messages.

    \b
    Examples:
      bullpen history -n 5
      bullpen history list --agent coder
      bullpen history search invoice
    """


agent_option = click.option(
    "--agent",
    metavar="AGENT",
    shell_complete=completion.agents,
    help="Only messages to and from this agent.",
)


@command(history, in_runs=True, listing=True)
@agent_option
@click.option(
    "--team",
    metavar="TEAM",
    shell_complete=completion.teams,
    help="Posts in the room of this team.",
)
@click.option(
    "--person",
    metavar="NAME|ID",
    help="Only messages from this person and the answers to them.",
)
@click.option("--since", type=DURATION, help="Only messages newer than DURATION.")
@limit_option()
def list_(
    settings: Settings,
    agent: str | None,
    team: str | None,
    person: str | None,
    since: int | None,
    limit: int,
) -> Result:
    """List messages and answers, newest last.

    In its run, an agent sees the conversation of the run, its messages with the person whom it
    answers, and the rooms of its teams. A wider `reach` shows more.

    \b
    Examples:
      bullpen history list -n 50
      bullpen history list --person Ada --since 1d
      bullpen history list --team dev
    """
    if team is not None and None not in (agent, person):
        raise click.UsageError("give --agent or --person with --team, not both")
    run = acting_run()
    with read_transaction(settings) as tx:
        moment = None if since is None else max(0, tx.now - since)
        check_filters(tx, agent=agent)
        if team is None:
            wanted = HistoryFilter(agent=agent, person=person)
            return _entries(tx, list_history(tx, wanted, moment, limit, run), NO_MESSAGES)
        members = get_team(tx, team).members
        if run is not None and run.reach is not Reach.ALL and run.agent not in members:
            raise OutOfReach(f"@{run.agent} is not a member of team {team}")
        posts = list_posts(tx, team, agent or person, moment, limit)
    zone = get_zone(owner_zone_name(settings))
    lines = [_format_post(zone, each) for each in posts] or NO_MESSAGES
    return Result(posts, lines, ids=(str(each.id) for each in posts))


@command(history, in_runs=True, tx="read", listing=True)
@click.argument("text", metavar="TEXT")
@agent_option
@limit_option()
def search(tx: Transaction, text: str, agent: str | None, limit: int) -> Result:
    """Find messages that contain TEXT, newest first.

    In its run, an agent finds only what `bullpen history list` shows it.

    \b
    Example:
      bullpen history search "the invoice" --agent coder
    """
    check_filters(tx, agent=agent)
    entries = search_history(tx, text, agent, limit, acting_run())
    return _entries(tx, entries, f"No messages contain {text!r}.")


@command(history, in_runs=True, tx="read", listing=True)
def people(tx: Transaction) -> Result:
    """List people who wrote, with channel and id.

    In its run, an agent sees the people who wrote to it.

    \b
    Example:
      bullpen history people
    """
    people = list_people(tx, acting_run())
    rows = [("CHANNEL", "NAME", "ID")]
    rows += [(each.channel, each.sender, each.sender_id or "") for each in people]
    return Result(
        people,
        rows=rows,
        empty="No messages from people yet.",
        ids=(each.sender_id or each.sender for each in people),
    )


def _entries(tx: Transaction, entries: Sequence[HistoryEntry], empty: str) -> Result:
    zone = get_zone(owner_zone_name(tx.settings))
    lines = (
        _format_line(zone, each.created_at, each.message_id, _participants(each), each.content)
        for each in entries
    )
    ids = dict.fromkeys(each.message_id for each in entries)
    return Result(entries, lines if entries else (empty,), ids=ids)


def _participants(entry: HistoryEntry) -> str:
    if entry.role == "user":
        return f"{entry.sender} ({entry.channel}) → @{entry.agent_id}"
    if entry.role == "assistant":
        return f"@{entry.agent_id} ({entry.channel})"
    return f"note to @{entry.agent_id}"


def _format_post(zone: ZoneInfo, post: Post) -> str:
    who = f"{post.from_agent} → #{post.team_id}"
    return _format_line(zone, post.created_at, "", who, post.message)


def _format_line(zone: ZoneInfo, at: int, message_id: str, who: str, text: str) -> str:
    """Return time, message, author and text; a text of several lines follows indented."""
    local = datetime.fromtimestamp(at / SECOND, UTC).astimezone(zone)
    when = style(f"{local:%Y-%m-%d %H:%M:%S}", dim=True)
    about = f"  {visible_line(message_id)}" if message_id else ""
    head = join(when, f"{about}  ", style(visible_line(who), bold=True), ":")
    text = visible(text).rstrip("\n")
    if "\n" in text:
        return join(head, "\n", indent(text, INDENT))
    return join(head, f" {text}".rstrip())
