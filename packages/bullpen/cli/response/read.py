"""bullpen response read: what came to whoever sits here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click

from bullpen.cli.acting import require_person
from bullpen.cli.output import MAX_LIMIT, as_json, print_json, read_transaction, write_transaction
from bullpen.cli.response import CLI
from bullpen.cli.response.lines import author, file_names
from bullpen.cli.visible import sanitize
from bullpen.core.errors import IllegalMove
from bullpen.core.message import PULL_CHANNELS
from bullpen.core.outbox.browse import ResponseRecord, list_deliverable
from bullpen.core.outbox.person import ack_response
from bullpen.core.schedules.when import format_time
from bullpen.core.settings import Settings
from bullpen.core.time_zone import owner_zone_name


@click.command()
@click.option(
    "--channel",
    type=click.Choice(sorted(PULL_CHANNELS)),
    default=CLI,
    show_default=True,
    help="Where it lies until somebody reads it.",
)
@as_json
@click.pass_obj
def read(settings: Settings, channel: str, as_json: bool) -> None:
    """Show what waits to be read, the oldest first; afterwards it has been read.

    It is what came to you unasked, or after you had stopped waiting: notices of Bullpen's, answers
    of schedules, what heartbeats had to say.

    \b
    Example:
      bullpen response read
    """
    require_person("read what is for people")
    with read_transaction(settings) as tx:
        found = list_deliverable(tx, channel, 0, MAX_LIMIT)
    if as_json:
        print_json(found)
    elif found:
        _show(found, owner_zone_name(settings))
    else:
        click.echo("There is nothing that you have not read.")
    with write_transaction(settings) as tx:  # now that it was shown
        for each in found:
            with suppress(IllegalMove):  # somebody else was quicker
                ack_response(tx, each.id)
    if len(found) == MAX_LIMIT:
        click.echo("There is more. Next: bullpen response read", err=True)


def _show(found: Sequence[ResponseRecord], here: str) -> None:
    for each in found:
        named = [f"[file: {file}]" for file in file_names(each)]
        text = "\n".join([*([each.message] if each.message else []), *named])
        click.echo(f"{format_time(each.created_at, here)}  {author(each)}: {sanitize(text)}")
