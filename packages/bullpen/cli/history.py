"""bullpen history: what was said."""

from __future__ import annotations

import click

from bullpen.cli import ids
from bullpen.cli.duration import DURATION
from bullpen.cli.history_shown import print_posts, print_spoken
from bullpen.cli.output import as_json, limit_option, print_json, print_table, read_transaction
from bullpen.cli.visible import sanitize
from bullpen.core.history.last import HistoryFilter, list_history, list_posts
from bullpen.core.history.search import list_people, search_history
from bullpen.core.roster.teams import get_team
from bullpen.core.settings import Settings


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
    shell_complete=ids.agents,
    help="Only what was said to this agent and by it.",
)
@click.option("--team", metavar="ID", shell_complete=ids.teams, help="What was said in its room.")
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
    shell_complete=ids.agents,
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
