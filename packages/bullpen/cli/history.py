"""bullpen history: what was said."""

from __future__ import annotations

import click

from bullpen.cli.output import as_json, how_many, reading, show_json, show_table
from bullpen.core.history.search import list_people, search_history
from bullpen.core.settings import Settings


@click.group()
def history() -> None:
    """Look through what was said to agents and by them.

    \b
    Example:
      bullpen history search invoice
    """


@history.command()
@click.argument("text")
@click.option("--agent", help="Only what was said to this agent and by it.")
@how_many()
@as_json
@click.pass_obj
def search(settings: Settings, text: str, agent: str | None, limit: int, as_json: bool) -> None:
    """Find where TEXT occurs, the newest first.

    \b
    Example:
      bullpen history search "the invoice" --agent coder
    """
    with reading(settings) as tx:
        found = search_history(tx, text, agent, limit)
    if as_json:
        show_json(found)
        return
    for each in found:
        who = each.sender if each.role != "assistant" else f"@{each.agent_id}"
        to = f" to @{each.agent_id}" if each.role == "user" else ""
        click.echo(f"{each.message_id}  {who}{to} ({each.channel}): {each.content}")
    if not found:
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
    with reading(settings) as tx:
        found = list_people(tx)
    if as_json:
        show_json(found)
        return
    rows = [("CHANNEL", "NAME", "ID")]
    rows += [(each.channel, each.sender, each.sender_id or "") for each in found]
    show_table(rows, "Nobody has written yet.")
