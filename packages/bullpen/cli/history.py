"""bullpen history: what was said to and by agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from textwrap import indent
from zoneinfo import ZoneInfo

import click

from bullpen.cli import completion
from bullpen.cli.command import read_transaction
from bullpen.cli.options import DURATION
from bullpen.cli.output import as_json, limit_option, print_json, print_table, sanitize
from bullpen.core.clock import SECOND, get_zone, owner_zone_name
from bullpen.core.inspect.history import (
    HistoryEntry,
    HistoryFilter,
    Post,
    list_history,
    list_people,
    list_posts,
    search_history,
)
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings

INDENT = "    "


def print_spoken(settings: Settings, found: Iterable[HistoryEntry]) -> None:
    """What was said to agents and by them."""
    _show(
        settings, ((each.created_at, each.message_id, _who(each), each.content) for each in found)
    )


def print_posts(settings: Settings, found: Iterable[Post]) -> None:
    """What was said in a room."""
    lines = (
        (each.created_at, "", f"{each.from_agent} → #{each.team_id}", each.message)
        for each in found
    )
    _show(settings, lines)


def _show(settings: Settings, lines: Iterable[tuple[int, str, str, str]]) -> None:
    here = get_zone(owner_zone_name(settings))
    for at, message_id, who, text in lines:
        for line in _lines(_clock(at, here), sanitize(message_id), sanitize(who), sanitize(text)):
            click.echo(line, color=False if os.environ.get("NO_COLOR") else None)


def _lines(when: str, message_id: str, who: str, text: str) -> Iterator[str]:
    head = "  ".join(each for each in (click.style(when, dim=True), message_id) if each)
    head = f"{head}  {click.style(who, bold=True)}:"
    text = text.rstrip("\n")
    if "\n" in text:
        yield head
        yield indent(text, INDENT)
    else:
        yield f"{head} {text}".rstrip()


def _who(said: HistoryEntry) -> str:
    if said.role == "user":
        return f"{said.sender} ({said.channel}) → @{said.agent_id}"
    if said.role == "assistant":
        return f"@{said.agent_id} ({said.channel})"
    return f"note to @{said.agent_id}"


def _clock(at: int, here: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at / SECOND, UTC).astimezone(here):%Y-%m-%d %H:%M:%S}"


@click.group()
def history() -> None:
    """Look through what was said to agents and by them.

    \b
    Examples:
      bullpen history list --agent coder
      bullpen history search invoice
    """


@history.command(name="list")
@click.option(
    "--agent",
    metavar="ID",
    shell_complete=completion.agents,
    help="Only what was said to this agent and by it.",
)
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
@as_json
@click.pass_obj
def list_(
    settings: Settings,
    agent: str | None,
    team: str | None,
    person: str | None,
    since: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what was said last, the newest at the end, as in a chat.

    \b
    Examples:
      bullpen history list --limit 50
      bullpen history list --person Ada --since 1d
      bullpen history list --team dev
    """
    if team is not None and None not in (agent, person):
        raise click.UsageError("In a room, give --agent or --person, not both.")
    with read_transaction(settings) as tx:
        moment = None if since is None else max(0, tx.now - since)
        if team is None:
            wanted = HistoryFilter(agent=agent, person=person)
            said = list_history(tx, wanted, moment, limit)
            posts = []
        else:
            get_team(tx, team)
            posts = list_posts(tx, team, agent or person, moment, limit)
            said = []
    if as_json:
        print_json(said if team is None else posts)
    elif said or posts:
        print_spoken(settings, said)
        print_posts(settings, posts)
    else:
        click.echo("Nothing like that has been said.")


@history.command()
@click.argument("text")
@click.option(
    "--agent",
    metavar="ID",
    shell_complete=completion.agents,
    help="Only what was said to this agent and by it.",
)
@limit_option()
@as_json
@click.pass_obj
def search(settings: Settings, text: str, agent: str | None, limit: int, as_json: bool) -> None:
    """Find where TEXT occurs, the newest first.

    \b
    Example:
      bullpen history search "the invoice" --agent coder
    """
    with read_transaction(settings) as tx:
        found = search_history(tx, text, agent, limit)
    if as_json:
        print_json(found)
    elif found:
        print_spoken(settings, found)
    else:
        click.echo(f"Nobody has said {text!r}.")


@history.command()
@as_json
@click.pass_obj
def people(settings: Settings, as_json: bool) -> None:
    """List who wrote, on which channel and under which id.

    \b
    Example:
      bullpen history people
    """
    with read_transaction(settings) as tx:
        found = list_people(tx)
    if as_json:
        print_json(found)
        return
    rows = [("CHANNEL", "NAME", "ID")]
    rows += [
        (each.channel, sanitize(each.sender), sanitize(each.sender_id or "")) for each in found
    ]
    print_table(rows, "Nobody has written yet.")
