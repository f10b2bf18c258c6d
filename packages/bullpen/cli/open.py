"""bullpen open: a browser comes in."""

from __future__ import annotations

import webbrowser

import click

from bullpen.cli.acting import only_people
from bullpen.cli.output import as_json, show_json, writing
from bullpen.core.access.keys import LINK_MINUTES, make_link
from bullpen.core.listening import address
from bullpen.core.settings import Settings


@click.command(name="open")
@click.option("--print", "only_print", is_flag=True, help="Print the link and open nothing.")
@as_json
@click.pass_obj
def open_(settings: Settings, only_print: bool, as_json: bool) -> None:
    """Let a browser in: open the API's page by a link that works once.

    \b
    Example:
      bullpen open --print
    """
    only_people("let a browser in")
    with writing(settings) as tx:
        code = make_link(tx)
    url = f"{address(settings)}/login?code={code}"
    if as_json:
        show_json({"url": url, "minutes": LINK_MINUTES})
        return
    click.echo(url)
    click.echo(f"It works once, within {LINK_MINUTES} minutes.", err=True)
    if not only_print:
        webbrowser.open(url)
