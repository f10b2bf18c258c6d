"""bullpen history: what was said to and by agents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from textwrap import indent
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.command import Result, acting_run, command, read_transaction
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

NOTHING_SAID = "Nothing like that has been said."
INDENT = "    "


@click.group(cls=LazyGroup)
def history() -> None:
    """Look through what was said to agents and by them.

    \b
    Examples:
      bullpen history list --agent coder
      bullpen history search invoice
    """


agent_option = click.option(
    "--agent",
    metavar="ID",
    shell_complete=completion.agents,
    help="Only what was said to this agent and by it.",
)


@command(history, in_runs=True)
@agent_option
@click.option(
    "--team", metavar="ID", shell_complete=completion.teams, help="What was said in its room."
)
@click.option(
    "--person",
    metavar="NAME|ID",
    help="Only what this person wrote, by name or id, and was answered.",
)
@click.option(
    "--since", type=DURATION, metavar="2h", help="Only what was said in the last so long."
)
@limit_option()
def list_(
    settings: Settings,
    agent: str | None,
    team: str | None,
    person: str | None,
    since: int | None,
    limit: int,
) -> Result:
    """Show what was said last, the newest at the end, as in a chat.

    In its run an agent sees the run's conversation, what was said between it and the person it
    answers, and its teams' rooms, unless its `reach` is wider.

    \b
    Examples:
      bullpen history list --limit 50
      bullpen history list --person Ada --since 1d
      bullpen history list --team dev
    """
    if team is not None and None not in (agent, person):
        raise click.UsageError("In a room, give --agent or --person, not both.")
    run = acting_run()
    with read_transaction(settings) as tx:
        moment = None if since is None else max(0, tx.now - since)
        if team is None:
            wanted = HistoryFilter(agent=agent, person=person)
            return _entries(tx, list_history(tx, wanted, moment, limit, run), NOTHING_SAID)
        members = get_team(tx, team).members
        if run is not None and run.reach is not Reach.ALL and run.agent not in members:
            raise OutOfReach(f"@{run.agent} is not in the team {team}")
        posts = list_posts(tx, team, agent or person, moment, limit)
    zone = get_zone(owner_zone_name(settings))
    return Result(posts, [_format_post(zone, each) for each in posts] or NOTHING_SAID)


@command(history, in_runs=True, tx="read")
@click.argument("text")
@agent_option
@limit_option()
def search(tx: Transaction, text: str, agent: str | None, limit: int) -> Result:
    """Find where TEXT occurs, the newest first. In its run an agent finds what `list` shows it.

    \b
    Example:
      bullpen history search "the invoice" --agent coder
    """
    entries = search_history(tx, text, agent, limit, acting_run())
    return _entries(tx, entries, f"Nobody has said {text!r}.")


@command(history, in_runs=True, tx="read")
def people(tx: Transaction) -> Result:
    """List who wrote, on which channel and under which id; in an agent's run, who wrote to it.

    \b
    Example:
      bullpen history people
    """
    people = list_people(tx, acting_run())
    rows = [("CHANNEL", "NAME", "ID")]
    rows += [(each.channel, each.sender, each.sender_id or "") for each in people]
    return Result(people, rows=rows, empty="Nobody has written yet.")


def _entries(tx: Transaction, entries: Sequence[HistoryEntry], empty: str) -> Result:
    zone = get_zone(owner_zone_name(tx.settings))
    lines = (
        _format_line(zone, each.created_at, each.message_id, _participants(each), each.content)
        for each in entries
    )
    return Result(entries, lines if entries else empty)


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
    """Return when, which message, who and what; a text of several lines follows indented."""
    local = datetime.fromtimestamp(at / SECOND, UTC).astimezone(zone)
    when = style(f"{local:%Y-%m-%d %H:%M:%S}", dim=True)
    about = f"  {visible_line(message_id)}" if message_id else ""
    head = join(when, f"{about}  ", style(visible_line(who), bold=True), ":")
    text = visible(text).rstrip("\n")
    if "\n" in text:
        return join(head, "\n", indent(text, INDENT))
    return join(head, f" {text}".rstrip())
