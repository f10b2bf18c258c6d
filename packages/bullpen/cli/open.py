"""bullpen open: a browser comes in."""

from __future__ import annotations

import webbrowser

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import as_json, print_json, write_transaction
from bullpen.core.access.keys import LINK_MINUTES, create_login_link
from bullpen.core.listening import api_url
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
    require_person("let a browser in")
    with write_transaction(settings) as tx:
        code = create_login_link(tx)
    url = f"{api_url(settings)}/login?code={code}"
    if as_json:
        print_json({"url": url, "minutes": LINK_MINUTES})
        return
    click.echo(url)
    click.echo(f"It works once, within {LINK_MINUTES} minutes.", err=True)
    if not only_print:
        webbrowser.open(url)
